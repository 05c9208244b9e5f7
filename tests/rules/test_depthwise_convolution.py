"""depthwise-convolution: time above what the memory would need, and kernels that stay constant."""

import pytest

from tests.builders import line
from tests.rules.kit import *
from tfdoctor.rules.operations import depthwise_convolution
from tfdoctor.rules.operations.depthwise_convolution import FixedConvolution, FixedKernels

EXAMPLE_GPU = Hardware(DeviceKind.GPU, "example", peak_flop_s=1e14, bandwidth_bytes_s=4e10)

FAST = OperationTime(name="gradient_tape/model/conv", type="Conv2D", ms=20.0, flops=7e9)


def one_depthwise(time_ms: float = 12.0, end: str = "", **more: Any) -> OperationTime:
    """Build a depthwise convolution of 96 channels, or one of its gradients."""
    kind = f"DepthwiseConv2dNative{end}"
    shape = (32, 64, 64, 96)
    tensors = (("float32", shape), ("float32", (3, 3, 96, 1)))
    graph = Operation(name="model/depthwise", type=kind, inputs=tensors, outputs=(("float32", shape),))
    parts: dict[str, Any] = {
        "name": graph.name, "layer": "depthwise", "at": Location("train.py", 11), "operation": graph,
        "nbytes": 1e8, "flops": 2.3e8,
    }  # fmt: skip
    return OperationTime(type=kind, ms=time_ms, **(parts | more))


def example(
    *rows: OperationTime, hardware: Hardware = EXAMPLE_GPU, constant: tuple[FixedConvolution, ...] = ()
) -> Verdict:
    """A depthwise convolution takes 12 ms; a memory of 40 GB/s moves its bytes in 2.5 ms."""
    operations = Operations(rows or (one_depthwise(), FAST))
    return depthwise_convolution.check(operations, hardware, FixedKernels(constant) if constant else None)


sick = example


def healthy() -> Verdict:
    """The step runs regular convolutions only."""
    return example(FAST)


GPU = Hardware(DeviceKind.GPU, "x", bandwidth_bytes_s=1e12)
CPU = Hardware(DeviceKind.CPU, "x")
AT = Location("train.py", 44)
DEPTHWISE = "DepthwiseConv2dNative"


def depthwise(ms: float = 10.0, end: str = "", **more: Any) -> OperationTime:
    parts: dict[str, Any] = {"name": f"m/{DEPTHWISE}{end}", "layer": "dw", "at": None}
    return one_depthwise(ms, end, **(parts | {"operation": None, "flops": None, "nbytes": 2e9} | more))


check = partial(example, hardware=GPU)


@pytest.mark.parametrize(
    ("row", "left"),
    [
        (depthwise(), 0.0),
        (
            depthwise(end="BackpropInput"),
            0.0,
        ),  # a regular convolution replaces both, and moves no bytes between them
        (depthwise(end="BackpropFilter"), 0.0),
        (depthwise(ms=1.5), 1.0),  # at the memory's rate
        (depthwise(calls=4.9), 0.0),  # each call moves its bytes
        (depthwise(calls=5.0), 1.0),
    ],
)
def test_the_whole_time_is_saved_at_most(row: OperationTime, left: float) -> None:
    (effect,) = as_finding(check(row, FAST)).effects
    assert (effect.scales, effect.bound) == (left, Bound.AT_MOST)


@pytest.mark.parametrize(("ms", "left"), [(9.9, 0.0), (10.0, 1.0)])
def test_the_runs_own_rate_stands_in_for_an_unknown_memory(ms: float, left: float) -> None:
    add = OperationTime(name="a", type="AddV2", ms=ms, nbytes=2e9)
    assert next(iter(scales(check(depthwise(), add, hardware=Hardware(DeviceKind.GPU, "x"))).values())) == left


def test_a_layers_operations_are_one_row() -> None:
    rows = [depthwise(), depthwise(6.0, "BackpropInput"), depthwise(1.0, layer="other", name="o")]
    found = table(check(*rows, FAST)).rows
    assert [row[0] for row in found] == ["dw", "other"]
    assert [row[3].value for row in found if isinstance(row[3], Quantity)] == [16.0, 1.0]


def test_a_step_of_unnamed_work_is_not_called_healthy() -> None:
    assert isinstance(check(OperationTime(name="k", type="compiled or unnamed", ms=9.0)), NotApplicable)


@pytest.mark.parametrize(("took", "kind"), [(0.02, Finding), (0.0, NotApplicable)])
def test_unknown_hardware_with_a_cpus_trace_gets_a_note(took: float, kind: type) -> None:
    """The engine computes no saving for it; operations without duration tell nothing."""
    steps = line("p", *(marker(n, 10 * n, 10 * n + 9) for n in range(6)))
    rows = [(f"d:{DEPTHWISE}", 10 * n + 1, 10 * n + 1 + took) for n in range(6)]
    facts = chart(trace([markers(6, 10) if took else steps, line("t", *rows)]))
    (result,) = engine.examine(facts, [Rule.from_module(depthwise_convolution)])
    assert isinstance(result.outcome, kind)
    assert (result.saving, result.severity) == (None, Severity.NOTE if took else None)


def on_cpu(ms: float = 30.0, flop_s: float = 4e11, others_ms: float = 30.0, hardware: Hardware = CPU) -> Verdict:
    """Return the verdict on 7 x 7 depthwise convolutions beside a convolution that reaches ``flop_s``.

    A regular 3 x 3 convolution of 64 channels needs 64 * 9 / 49 times their 6e8 FLOP: 7.05e9, in 30 ms 2.35e11/s.
    """
    kernel = ("bfloat16", (7, 7, 64, 1))
    graph = Operation(name="m/d", type=DEPTHWISE, inputs=(("bfloat16", (8, 9, 9, 64)), kernel))
    slow = depthwise(ms, flops=6e8, nbytes=1e6, operation=graph)
    conv = matmul(ms=others_ms, weights=(3, 3, 64, 64), dtype="bfloat16", layer="gradient")
    return check(slow, replace(conv, flops=flop_s * others_ms * 1e-3), hardware=hardware)


def test_on_a_cpu_the_rates_of_the_run_decide() -> None:
    finding = as_finding(on_cpu(flop_s=2.4e11))
    assert {effect.bound for effect in finding.effects} == {Bound.AT_MOST}
    assert finding.severity is None
    slower = as_healthy(on_cpu(flop_s=2.3e11))
    assert "from 235 GFLOP/s on, and reach at most 230 GFLOP/s here" in slower.summary
    assert 2.3e11 in figures(slower).values()


test_both_sides_of_each_limit = each_is(
    # A known peak rate decides where the run's convolutions are slow
    (on_cpu(flop_s=1e11, hardware=replace(GPU, peak_flop_s=2.4e11)), Finding),
    (on_cpu(flop_s=1e11, hardware=replace(GPU, peak_flop_s=2.3e11)), Healthy),
    (on_cpu(10.0, flop_s=1e12, others_ms=90.0), Finding),  # a tenth of the compute time
    (on_cpu(9.9, flop_s=1e12, others_ms=90.1), Healthy),
)


def test_unknown_rates_promise_nothing_on_a_cpu() -> None:
    assert as_finding(check(depthwise(), FAST, hardware=CPU)).effects == ()


def constant(ms: float = 10.0, size: tuple[int, int] | None = (9, 9), **more: Any) -> FixedConvolution:
    parts: dict[str, Any] = {"separable": True, "at": AT, **more}
    return FixedConvolution((depthwise(ms, name="blur"),), size, **parts)


def check_constant(one: FixedConvolution, *rows: OperationTime) -> Verdict:
    return check(*one.rows, *rows, FAST, constant=(one,))


def test_a_constant_kernel_of_a_column_and_a_row_is_named_by_its_line() -> None:
    finding = as_finding(check_constant(constant()))
    (effect,), (remedy,) = finding.effects, finding.remedies
    assert (effect.scales, effect.bound) == (18 / 81, Bound.AT_MOST)
    assert remedy.at == AT
    assert "regular" not in remedy.action


@pytest.mark.parametrize(
    "one",
    [
        constant(separable=False),
        constant(size=(3, 4)),
        constant(size=(3, 5)),
        constant(size=(1, 9)),
        constant(ms=0.4),
    ],
    ids=["full", "small", "more than half", "line", "short"],
)
def test_trap_no_regular_convolution_replaces_a_constant_kernel(one: FixedConvolution) -> None:
    """Of the arithmetic of a 4 x 4 kernel a column and a row keep half, which is the smallest that is reported."""
    assert "constant kernels" in as_healthy(check_constant(one)).summary
    assert isinstance(check_constant(constant(size=(4, 4))), Finding)


def test_trained_kernels_beside_constant_ones_are_both_named() -> None:
    finding = as_finding(check_constant(constant(), depthwise(name="trained", ms=10.0)))
    assert [*scales(finding)] == ["blur", "trained"]
    assert len(finding.remedies) == 2


def test_the_line_is_that_of_a_forward_operation() -> None:
    """The gradient of an operation that a layer's call calls has the line that made the layer."""
    gradient = depthwise(12.0, "BackpropInput", name="gradient_tape/m/dw/x", at=Location("train.py", 69))
    assert as_finding(check(gradient, depthwise(5.0, at=AT), FAST)).remedies[0].at == AT


# Which kernels are constant, their gradients and lines, and what is left of them


IMAGE, KERNEL = ["float32", [8, 64, 64, 2]], ["float32", [27, 27, 2, 1]]
BACKWARD = f"gradient_tape/blur/{DEPTHWISE}BackpropInput"


def found_in(*kernel: dict[str, Any], names: Any = ("blur", BACKWARD), **graph: Any) -> Any:
    """Measure a graph of an image, a kernel whose last operation is the second input, and a convolution."""
    made = {"at": ["train.py", 44], "direct": True, "attrs": {"strides": graph.pop("strides", [1, 1, 1, 1])}}
    rows = [
        graph_operation("x", "Placeholder", [], [IMAGE]),
        *kernel,
        graph_operation("blur", DEPTHWISE, [IMAGE, KERNEL], [IMAGE], **made, **{"from": [0, len(kernel)]}),
        graph_operation(BACKWARD, f"{DEPTHWISE}BackpropInput", [KERNEL], [IMAGE], at=["train.py", 90]),
    ]
    record = {"graphs": [{"kind": "function", "operations": rows, **graph}]}
    program: Program = chart(trace([]), recording(record)).fact(Program)
    kinds = {name: DEPTHWISE + ("BackpropInput" if "grad" in name else "") for name in names}
    times = (
        OperationTime(name=name, type=kind, ms=1.0, operation=program.by_name.get(name))
        for name, kind in kinds.items()
    )
    return Chart([program, Operations(tuple(times))]).fact(FixedKernels).rows


def op(name: str, kind: str, given: Any, made: Any, *sources: int) -> dict[str, Any]:
    return graph_operation(name, kind, given, [made], **({"from": list(sources)} if sources else {}))


CAPTURED = op("kernel", "Placeholder", [], KERNEL)
HELD = {"captured": ["kernel"], "kernels": [{"name": "kernel", "separable": True}]}
HANDLE = ["resource", []]


def test_a_captured_kernel_with_its_gradient() -> None:
    (found,) = found_in(CAPTURED, **HELD)
    assert [row.name for row in found.rows] == ["blur", BACKWARD]
    assert (found.ms, found.size, found.separable, found.at.line) == (2.0, (27, 27), True, 44)
    assert found.left == pytest.approx(54 / 729)


@pytest.mark.parametrize(
    "more",
    [{"kernels": []}, {"kernels": [{"name": "kernel", "separable": False}]}, {"strides": [1, 2, 2, 1]}],
    ids=["unknown", "full", "strides"],
)
def test_other_captured_kernels_leave_all_arithmetic(more: dict[str, Any]) -> None:
    (found,) = found_in(CAPTURED, **HELD | more)
    assert (found.separable, found.left) == (False, 1.0)


def test_a_kernel_that_the_step_computes_from_constants_and_shapes() -> None:
    """The window of tf.image.ssim is repeated for as many channels as the image has."""
    window, channels = op("window", "Const", [], KERNEL), op("channels", "Shape", [IMAGE], ["int32", [4]], 0)
    (found,) = found_in(window, channels, op("Tile", "Tile", [KERNEL], KERNEL, 1, 2))
    assert not found.separable


@pytest.mark.parametrize(
    "kernel",
    [
        [op("w", "Placeholder", [], HANDLE), op("read", "ReadVariableOp", [HANDLE], KERNEL, 1)],
        [op("dynamic", "Mean", [IMAGE], KERNEL, 0)],
        [op("noise", "RandomUniform", [], KERNEL)],
    ],
    ids=["variable", "batch", "random"],
)
def test_trap_other_kernels_are_not_constant(kernel: list[dict[str, Any]]) -> None:
    assert found_in(*kernel) == ()


def test_names_of_a_loop_that_runs_in_place() -> None:
    """The trace names them with the frames of the loop, and they have no operation of their own."""
    frame = "gradient_tape/map/while/map/while_grad/body/_99"
    names = (
        "map/while/body/_69/blur",
        f"{frame}/gradient_tape/map/while/gradients/blur_grad/{DEPTHWISE}BackpropInput",
        "map/while/body/_69/other",
    )
    (found,) = found_in(CAPTURED, names=names, **HELD)
    assert [row.name for row in found.rows] == list(names[:2])


def test_what_is_left_is_never_more_than_all() -> None:
    assert constant(size=(2, 2)).left == constant(size=None).left == 1.0
