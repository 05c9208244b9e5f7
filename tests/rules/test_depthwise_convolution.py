"""depthwise-convolution: time above what the memory would need, and kernels that stay constant."""

from tests.rules.kit import *
from tfdoctor.rules.operations import depthwise_convolution
from tfdoctor.rules.operations.depthwise_convolution import FixedConvolution, FixedKernels

EXAMPLE_GPU = Hardware(DeviceKind.GPU, "example", peak_flop_s=1e14, bandwidth_bytes_s=4e10)
FAST = took("gradient_tape/model/conv", "Conv2D", 20.0, flops=7e9)
AT = script(44)
DEPTHWISE = "DepthwiseConv2dNative"
GPU = Hardware(DeviceKind.GPU, "x", bandwidth_bytes_s=1e12)
CPU = Hardware(DeviceKind.CPU, "x")


def depthwise(ms: float = 10.0, end: str = "", **more: Any) -> OperationTime:
    """Build a depthwise convolution, or one of its gradients."""
    parts: dict[str, Any] = {"name": f"m/{DEPTHWISE}{end}", "layer": "dw", "nbytes": 2e9}
    return OperationTime(type=f"{DEPTHWISE}{end}", ms=ms, **(parts | more))


def of_96_channels() -> OperationTime:
    tensors = (("float32", (32, 64, 64, 96)), ("float32", (3, 3, 96, 1)))
    graph = Operation(name="model/depthwise", type=DEPTHWISE, inputs=tensors, outputs=tensors[:1])
    parts: dict[str, Any] = {"name": graph.name, "layer": "depthwise", "operation": graph, "nbytes": 1e8}
    return depthwise(12.0, at=script(11), flops=2.3e8, **parts)


def example(
    *rows: OperationTime, hardware: Hardware = EXAMPLE_GPU, constant: tuple[FixedConvolution, ...] = ()
) -> Verdict:
    """A depthwise convolution takes 12 ms; a memory of 40 GB/s moves its bytes in 2.5 ms."""
    operations = Operations(rows or (of_96_channels(), FAST))
    return depthwise_convolution.check(operations, hardware, FixedKernels(constant) if constant else None)


def on_unknown_gpu(ms: float) -> Verdict:
    add = took("a", "AddV2", ms, nbytes=2e9)
    return check(depthwise(), add, hardware=Hardware(DeviceKind.GPU, "x"))


def traced(took: float) -> Result:
    """Judge a CPU's trace, whose hardware is unknown; operations without duration tell nothing."""
    steps = line("p", *(marker(n, 10 * n, 10 * n + 9) for n in range(6)))
    rows = [(f"d:{DEPTHWISE}", 10 * n + 1, 10 * n + 1 + took) for n in range(6)]
    facts = chart(trace([markers(6, 10) if took else steps, line("t", *rows)]))
    return examined(depthwise_convolution, facts)


def on_cpu(ms: float = 30.0, flop_s: float = 4e11, others_ms: float = 30.0, hardware: Hardware = CPU) -> Verdict:
    """Return the verdict on 7 x 7 depthwise convolutions beside a convolution that reaches ``flop_s``.

    A regular 3 x 3 convolution of 64 channels needs 64 * 9 / 49 times their 6e8 FLOP: 7.05e9, in 30 ms 2.35e11/s.
    """
    kernel = ("bfloat16", (7, 7, 64, 1))
    graph = Operation(name="m/d", type=DEPTHWISE, inputs=(("bfloat16", (8, 9, 9, 64)), kernel))
    slow = depthwise(ms, flops=6e8, nbytes=1e6, operation=graph)
    conv = matmul(ms=others_ms, weights=(3, 3, 64, 64), dtype="bfloat16", layer="gradient")
    return check(slow, replace(conv, flops=flop_s * others_ms * 1e-3), hardware=hardware)


def constant(ms: float = 10.0, size: tuple[int, int] | None = (9, 9), **more: Any) -> FixedConvolution:
    parts: dict[str, Any] = {"separable": True, "at": AT, **more}
    return FixedConvolution((depthwise(ms, name="blur"),), size, **parts)


def check_constant(one: FixedConvolution, *rows: OperationTime) -> Verdict:
    return check(*one.rows, *rows, FAST, constant=(one,))


sick = example
healthy = described("The step runs regular convolutions only.", example, FAST)
check = partial(example, hardware=GPU)


# Which kernels are constant, their gradients and lines, and what is left of them
IMAGE, KERNEL = ["float32", [8, 64, 64, 2]], ["float32", [27, 27, 2, 1]]
BACKWARD = f"gradient_tape/blur/{DEPTHWISE}BackpropInput"
HELD = {"captured": ["kernel"], "kernels": [{"name": "kernel", "separable": True}]}
HANDLE = ["resource", []]
# The trace names what runs in place with the frames of the loop, and they have no operation of their own
FRAMES = "gradient_tape/map/while/map/while_grad/body/_99/gradient_tape/map/while/gradients"
LOOP = ("map/while/body/_69/blur", f"{FRAMES}/blur_grad/{DEPTHWISE}BackpropInput", "map/while/body/_69/other")


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
    times = (took(name, kind, 1.0, operation=program.by_name.get(name)) for name, kind in kinds.items())
    return Chart([program, Operations(tuple(times))]).fact(FixedKernels).rows


def op(name: str, kind: str, given: Any, made: Any, *sources: int) -> dict[str, Any]:
    return graph_operation(name, kind, given, [made], **({"from": list(sources)} if sources else {}))


def measured(*kernel: dict[str, Any], **more: Any) -> list[str]:
    """Return each kernel: its place and size, and what is left of the time of its operations."""
    return [
        f"line {one.at.line}, {one.size}{', separable' if one.separable else ''}, leaves {one.left:.5g} of "
        f"{one.ms:g} ms: {', '.join(row.name for row in one.rows)}"
        for one in found_in(*kernel, **more)
    ]


CAPTURED = op("kernel", "Placeholder", [], KERNEL)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a regular convolution replaces it and both gradients, and moves no bytes between them"] = [
        check(depthwise(end=end), FAST) for end in ("", "BackpropInput", "BackpropFilter")
    ]
    told["it runs at the memory's rate"] = check(depthwise(ms=1.5), FAST)
    told["each call moves its bytes"] = [check(depthwise(calls=calls), FAST) for calls in (4.9, 5.0)]
    told["the run's own rate stands in for an unknown memory"] = on_unknown_gpu(9.9), on_unknown_gpu(10.0)
    told["a layer's operations are one row"] = check(
        depthwise(), depthwise(6.0, "BackpropInput"), depthwise(1.0, layer="other", name="o"), FAST
    )
    told["a step of unnamed work"] = check(UNNAMED)
    for took in (0.02, 0.0):
        one = traced(took)
        told[f"a CPU's trace with operations of {took} ms, and its saving"] = one.outcome, one.severity, one.saving
    told["on a CPU the rates of the run decide"] = on_cpu(flop_s=2.4e11), on_cpu(flop_s=2.3e11)
    told["a known peak, for slow convolutions"] = on_cpu(flop_s=1e11, hardware=replace(GPU, peak_flop_s=2.4e11))
    told[...] = on_cpu(flop_s=1e11, hardware=replace(GPU, peak_flop_s=2.3e11))
    told["a tenth of the compute time, and less"] = on_cpu(10.0, flop_s=1e12, others_ms=90.0)
    told[...] = on_cpu(9.9, flop_s=1e12, others_ms=90.1)
    told["unknown rates promise nothing on a CPU"] = check(depthwise(), FAST, hardware=CPU)
    # The gradient of an operation that a layer's call calls has the line that made the layer
    gradient = depthwise(12.0, "BackpropInput", name="gradient_tape/m/dw/x", at=script(69))
    told["the line is that of a forward operation"] = check(gradient, depthwise(5.0, at=AT), FAST)
    told["a constant kernel of a column and a row is named by its line"] = check_constant(constant())
    told["of the arithmetic of a 4 x 4 kernel a column and a row keep half"] = check_constant(constant(size=(4, 4)))
    sizes = (1, 9), (3, 4), (3, 5)
    told["no regular convolution replaces a full kernel, one of a line, and small and short ones"] = [
        check_constant(one)
        for one in (constant(separable=False), *(constant(size=size) for size in sizes), constant(ms=0.4))
    ]
    told["a trained kernel beside a constant one"] = check_constant(constant(), depthwise(name="trained", ms=10.0))
    told["what is left is never more than all"] = constant(size=(2, 2)).left, constant(size=None).left
    told["a captured kernel with its gradient"] = measured(CAPTURED, **HELD)
    full = [{"name": "kernel", "separable": False}]
    others: list[dict[str, Any]] = [{"kernels": []}, {"kernels": full}, {"strides": [1, 2, 2, 1]}]
    told["captured kernels: unknown, full, strided"] = [measured(CAPTURED, **HELD | other) for other in others]
    window, channels = op("window", "Const", [], KERNEL), op("channels", "Shape", [IMAGE], ["int32", [4]], 0)
    told["the window of tf.image.ssim is repeated for as many channels as the image has"] = measured(
        window, channels, op("Tile", "Tile", [KERNEL], KERNEL, 1, 2)
    )
    told["a variable, a mean of the batch, and a random kernel are not constant"] = (
        measured(op("w", "Placeholder", [], HANDLE), op("read", "ReadVariableOp", [HANDLE], KERNEL, 1)),
        measured(op("dynamic", "Mean", [IMAGE], KERNEL, 0)),
        measured(op("noise", "RandomUniform", [], KERNEL)),
    )
    told["names of a loop that runs in place"] = measured(CAPTURED, names=LOOP, **HELD)
