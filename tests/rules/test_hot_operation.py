"""hot-operation: what takes long for its bytes and FLOPs, where no other finding explains it; and cheaper forms."""

import pytest

from tests.rules.kit import *
from tfdoctor.facts.savings.layer_work import CalledLayer, LayerCall, LayerCalls
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups
from tfdoctor.rules.operations import hot_operation
from tfdoctor.rules.operations.hot_operation.cheaper_forms import CheaperForm, CheaperForms, FormKind
from tfdoctor.terms.humanize import milliseconds


def one_group(
    kind: str = "Tile",
    time_ms: float = 20.0,
    least: float | None = 0.4,
    calls: float = 1.0,
    at: Location = Location("train.py", 14),
    **more: Any,
) -> OperationGroup:
    """Build the group of one operation."""
    row = OperationTime(name=kind, type=kind, ms=time_ms, calls=calls, at=at)
    missing = "" if least is not None else "shapes unknown"
    parts: dict[str, Any] = {"layers": (), "rows": (row,), "missing": missing}
    return OperationGroup(type=kind, at=at, least_ms=least, **(parts | more))


def example(  # noqa: PLR0913 - one argument for each fact of the rule
    *groups: OperationGroup, step: Breakdown | None = None, left: Mapping[str, float] | None = None,
    subjects: frozenset[str] = frozenset(), lines: HostLines | None = None, unnamed: str = "",
    calls: LayerCalls | None = None, loops: LoopWork | None = None, model: StepModel | None = None,
    forms: CheaperForms | None = None, optimizer: OptimizerWork | None = None,
) -> Verdict:  # fmt: skip
    """Repeating a tensor takes 20 of 40 ms, where reading and writing it takes 0.4 ms."""
    return hot_operation.check(
        Unexplained({Stage.DEVICE: 38.0} if left is None else left, subjects),
        step or Breakdown.of(device=38.0, host=2.0),
        OperationGroups(groups or (() if unnamed else (one_group(),)), unnamed),
        lines,
        calls,
        loops,
        model,
        forms,
        optimizer,
    )


sick = example


def healthy() -> Verdict:
    """An operation takes half of the step, and its bytes need nearly all of that time."""
    return example(one_group(least=18.0))


AT = Location("train.py", 14)


def group(
    kind: str = "Unique", time_ms: float = 10.0, least: float | None = 0.1, calls: float = 1.0, **more: Any
) -> OperationGroup:
    return one_group(kind, time_ms, least, calls, **more)


def check(
    *groups: OperationGroup, left: float = 30.0, host: float = 0.0, dispatching: float = 0.0, **more: Any
) -> Verdict:
    """Judge groups of steps of 40 ms."""
    parts: dict[str, float] = {Stage.DEVICE: left, Stage.HOST: host}
    waits = TimedLine(AT, 9, dispatching, work=LineWork.DISPATCHING)
    return example(
        *groups,
        step=Breakdown.of(device=30.0, host=10.0),
        left={part: ms for part, ms in parts.items() if ms},
        lines=HostLines({Stage.HOST: (waits,)}),
        **more,
    )


def on_host(verdict: Verdict) -> dict[str, float]:
    return {e.subject: e.of.value for e in as_finding(verdict).effects if e.stage is Stage.HOST and e.of}


def form(kind: FormKind, *names: str, left: float = 0.0) -> CheaperForms:
    return CheaperForms((CheaperForm(kind, AT, frozenset(names), "of 96 values one is used", left),))


def loop_of_short(each_ms: float) -> list[OperationGroup]:
    more: dict[str, Any] = {"loop": "map/while", "loop_at": AT}
    return [group(kind, 200 * each_ms, 100 * each_ms + 1, 200.0, **more) for kind in ("Mul", "AddV2", "Tanh")]


SHORT = group("Mul", 5.0, None, 900.0)
LOSS = "SparseSoftmaxCrossEntropyWithLogits"
TRACED = TracingCost.of({"device": 30.0, "host": 10.0}, {"device": 1e4, "host": 0.0}, 2.0)
PROFILED: dict[str, Any] = {"model": StepModel(device=DeviceKind.CPU, exposed=TRACED.untraced, tracing=TRACED)}
SHORT_STEP: dict[str, Any] = {"step": Breakdown.of(device=0.3, host=0.1), "left": {Stage.DEVICE: 0.3}}
MANY: dict[str, Any] = {"host": 5.0, "dispatching": 20.0}
SORTS: dict[str, Any] = {"forms": form(FormKind.FEW_OF_A_SORT, "TopKV2")}
MANY_CLASSES: dict[str, Any] = {"forms": form(FormKind.LARGE_SOFTMAX, LOSS)}


def slow(kind: str, least: float | None = None) -> Verdict:
    return check(group(kind, 20.0, least, gflop_s=12.0, best_gflop_s=90.0))


test_both_sides_of_each_limit = each_is(
    (check(group(time_ms=4.0)), Finding),
    (check(group(time_ms=3.99)), Healthy),
    (check(group(least=4.99)), Finding),
    (check(group(least=5.0)), Healthy),
    (check(group(time_ms=4.6), **PROFILED), Finding),  # 4.5 of 40 traced ms are 2.0 of 20, a tenth
    (check(group(time_ms=4.5), **PROFILED), Healthy),
    (example(group(time_ms=0.2, least=0.0), **SHORT_STEP), Finding),
    (example(group(time_ms=0.199, least=0.0), **SHORT_STEP), Healthy),  # what tracing itself may add
    (check(group("Mul", 0.5, None, 100.0), **MANY), Finding),
    (check(group("Mul", 0.5, None, 99.0), **MANY), Healthy),
    (check(*loop_of_short(0.01)), Finding),
    (check(*loop_of_short(0.0101)), Healthy),
    (check(group("TopKV2", 4.0, None), **SORTS), Finding),
    (check(group("TopKV2", 3.99, None), **SORTS), Healthy),
    # Trap: a language model, whose loss takes a third of the step: sampling trains another objective
    (check(group(LOSS, 20.0, None), **MANY_CLASSES), Finding),
    (check(group(LOSS, 19.9, None), **MANY_CLASSES), Healthy),
    # Trap: a convolution of unknown peak, far below this run's fastest, in a healthy network
    (slow("MatMul"), Healthy, "MatMul at train.py:14 takes 50 % of the step, and nothing measured shows"),
    (slow("Unique"), Healthy, "Unique at train.py:14 takes 50 % of the step, and nothing measured shows"),
    (slow("Conv2D", 16.6), Healthy, "Conv2D at train.py:14 takes 50 % of the step at 83 % of what this hardware"),
    # Explained operations
    (check(group(), subjects=frozenset((group().rows[0].name,))), Healthy),
    (check(group(), left=0.0), Healthy),
    # Trap: apply_gradients of a plain loop, on whose line Keras updates each variable
    (check(SHORT), Finding),
    (check(SHORT, optimizer=OptimizerWork(SHORT.rows, 900.0)), Healthy),
    (check(unnamed="XLA compiled the step"), NotApplicable),
)


def test_a_line_has_one_change_and_evidence_the_time_of_all() -> None:
    finding = as_finding(check(group("Unique", 9.0), group("Sort", 6.0)))
    (remedy,) = finding.remedies
    assert "Unique" in remedy.action
    assert "?" not in remedy.action
    assert "15.0" not in finding.summary
    assert figures(finding)["time in this and one more group of operations, per step"] == 15.0
    assert sum(effect.of.value for effect in finding.effects if effect.of) == pytest.approx(15.0)


@pytest.mark.parametrize(
    ("tracing", "left", "takes", "step"),
    [(None, 30.0, 9.0, 40.0), (None, 6.0, 6.0, 40.0), (TRACED, 30.0, 9.0 * TRACED.kept("device"), 20.0)],
    ids=["as traced", "partly named", "without the profiler"],
)
def test_a_finding_states_one_time(tracing: TracingCost | None, left: float, takes: float, step: float) -> None:
    """The summary, the list, the share and the table: of the 9 of 30 ms, the profiler has its part."""
    exposed = tracing.untraced if tracing else Breakdown.of(device=30.0, host=10.0).median
    model = StepModel(device=DeviceKind.CPU, exposed=exposed, tracing=tracing)
    finding = as_finding(check(group("Unique", 9.0), group("Sort", 6.0), left=left, model=model))
    assert finding.takes is not None
    assert finding.takes.value == pytest.approx(takes)
    assert f"takes {milliseconds(finding.takes.value)} of " in finding.summary
    assert next(iter(figures(finding).values())) == pytest.approx(finding.takes.value / step)


def test_the_effects_name_the_time_of_the_summary() -> None:
    """At most what is unexplained, so that the summary, the list and the evidence state one time."""
    finding = as_finding(check(group(time_ms=10.0, least=1.0), group("Sort", 10.0, 1.0), left=10.0))
    assert [(effect.scales, effect.bound) for effect in finding.effects] == [(0.0, Bound.AT_MOST)] * 2
    assert sum(effect.of.value for effect in finding.effects if effect.of) == pytest.approx(10.0)


def test_the_host_s_time_to_dispatch_belongs_to_short_operations() -> None:
    short = group("Mul", 1.0, None, 400.0)
    finding = as_finding(check(short, host=5.0, dispatching=6.0))
    assert "dispatching included" in finding.summary
    assert [*on_host(finding).values()] == [pytest.approx(5.0)]
    named = frozenset((StepWork.LAUNCHING,))
    assert isinstance(check(short, host=5.0, dispatching=6.0, subjects=named), Healthy)


@pytest.mark.parametrize(("scheduling", "loop_ms"), [(8.0, 8.0), (6.0, 6.0), (9.0, 8.0)])
def test_the_time_to_dispatch_in_a_loop_belongs_to_its_operations(scheduling: float, loop_ms: float) -> None:
    """Trap: the short operations of an optimizer, as many as the recorded ones of the loop."""
    looped = group("Mul", 0.1, None, 200.0, loop="gru/while", loop_at=Location("train.py", 10))
    work = LoopWork((GraphLoop("gru/while", 100.0, 200.0, 0.1),), scheduling)
    host = on_host(check(looped, group("Pow", 4.5, None, 500.0), host=8.0, dispatching=8.0, loops=work))
    assert host.pop("dispatching gru/while") == pytest.approx(loop_ms)
    assert sum(host.values()) == pytest.approx(8.0 - loop_ms)


def test_two_loops_of_a_line_and_explained_operations_have_their_own_part() -> None:
    """Trap: a bidirectional layer, of whose 800 operations a specific finding names 400."""
    ways = [group(kind, 0.5, None, 200.0, loop=f"{kind}/while", loop_at=AT) for kind in ("Mul", "Add")]
    named = group("Tanh", 0.5, None, 400.0, loop="Mul/while", loop_at=AT)
    work = LoopWork((GraphLoop("Mul/while", 100.0, 800.0, 1.5),), 24.0)
    subjects = frozenset((named.rows[0].name,))
    verdict = check(*ways, named, host=24.0, dispatching=24.0, loops=work, subjects=subjects)
    assert on_host(verdict) == pytest.approx({"dispatching Mul/while": 6.0, "dispatching Add/while": 6.0})


def test_operations_near_the_hardware_s_rates_are_necessary_work() -> None:
    (time,) = as_healthy(check(group("Conv2D", 20.0, 14.0), group("Unique", 3.0, 0.1))).necessary
    assert (time.part, time.of.value) == (Stage.DEVICE, 20.0)
    assert "70 %" in time.why


def group_of(names: tuple[str, ...], kind: str, ms: float, layer: str = "", **more: Any) -> OperationGroup:
    made = {name: Operation(name=name, type=kind, layer=layer, at=AT, **more.get("made", {})) for name in names}
    rest: dict[str, Any] = {"ms": ms, "layer": layer, "at": AT, "calls": more.get("calls", 1.0)}
    rows = tuple(OperationTime(name=name, type=kind, operation=one, **rest) for name, one in made.items())
    return OperationGroup(type=kind, at=AT, layers=(layer,) if layer else (), rows=rows, least_ms=more.get("least"))


@pytest.mark.parametrize("compiled", [True, False])
def test_short_operations_that_xla_compiled_are_not_to_be_compiled(*, compiled: bool) -> None:
    made = {"compiled": compiled, "direct": True}
    many = group_of(("f",), "mul (fused)", 9.0, calls=3000.0, made=made, least=0.1)
    assert ("jit_compile" in as_finding(check(many)).remedies[0].action) != compiled


def test_python_in_the_graph_is_named_and_a_matmul_not_moved_to_the_input_pipeline() -> None:
    action = as_finding(check(group("PyFunc", least=None))).remedies[0].action
    assert action.startswith("PyFunc runs Python")
    assert "input pipeline" not in as_finding(check(group("MatMul", 20.0, 2.0))).remedies[0].action


def test_what_only_metrics_use_counts_together() -> None:
    def used(ms: float) -> Verdict:
        more: dict[str, Any] = {"only_metrics": True, "metrics": ("auc",)}
        return check(*(group(name, ms, 0.9 * ms, **more) for name in ("Cast", "Tile")))

    finding = as_finding(used(1.0))
    assert finding.summary.startswith("auc (metrics) at train.py:14 take 2.00 ms")
    assert finding.severity is Severity.WARNING
    assert isinstance(used(0.99), Healthy)


def test_what_depends_on_constants_only_is_computed_once() -> None:
    finding = as_finding(check(group("Range", 10.0, 9.0, inputs=frozenset())))
    assert finding.severity is Severity.CRITICAL
    assert finding.remedies[0].action.startswith("Compute Range once")


def test_a_cheaper_form_is_as_severe_as_what_it_saves_at_most() -> None:
    names = ("Svd0", "Svd1", "Svd2", "Svd3")
    svd, rest = group_of(names, "Svd", 2.0), group("Unique", 9.0, None)
    finding = as_finding(check(svd, rest, forms=form(FormKind.LARGEST_SINGULAR_VALUE, *names)))
    assert finding.summary == "Svd at train.py:14 takes 8.00 ms of each step; of 96 values one is used"
    assert finding.severity is Severity.CRITICAL
    assert "power iteration" in finding.remedies[0].action
    half = as_finding(check(svd, rest, forms=form(FormKind.CONVOLUTION_AFTER_RESIZE, *names, left=0.5)))
    assert half.severity is Severity.WARNING
    assert scales(half).keys() == set(names)


def called(repeated_ms: float | None) -> LayerCalls:
    """A layer that helpers of lines 30 and 31 call twice, from line 22."""
    calls = tuple(
        LayerCall(f"dense_{n}", Location("train.py", 22), Location("train.py", 30 + n), ms, (f"dense_{n}/MatMul",))
        for n, ms in enumerate([repeated_ms or 1.0] * 2)
    )
    return LayerCalls((CalledLayer("dense", calls, (calls,) if repeated_ms else ()),))


@pytest.mark.parametrize(("again", "severity"), [(8.0, Severity.CRITICAL), (2.0, Severity.WARNING), (1.9, None)])
def test_repeating_a_computation_is_as_severe_as_its_time(again: float, severity: Severity | None) -> None:
    """Of a step of 40 ms; the repeated call can be left out whole, and the first cannot."""
    both = group_of(("dense_0/MatMul", "dense_1/MatMul"), "MatMul", again, "dense")
    verdict = check(both, calls=called(again))
    assert isinstance(verdict, Finding if severity else Healthy)
    if isinstance(verdict, Finding):
        assert verdict.severity is severity
        assert "train.py:30, train.py:31" in verdict.remedies[0].action
        assert [*scales(verdict)] == ["dense_1/MatMul"]


def layer(**more: Any) -> OperationGroup:
    return group_of(("dense_1/MatMul",), "MatMul", 10.0, "dense", **more)


test_operations_of_a_layer_are_not_the_user_s_unless_called_directly = each_is(
    (check(layer(), calls=called(None)), Healthy),  # trap: a layer that is called twice on other inputs
    (check(layer(calls=2000.0)), Healthy),  # trap: an unrolled GRU, whose operations Keras chose
    (check(layer(calls=2000.0, made={"direct": True})), Finding),
)


# Cheaper forms: what of the graph shows that one applies, and the graphs beside them that need the operation


Row = dict[str, Any]


def tensor(*shape: int, kind: str = "float32") -> list[Any]:
    return [kind, list(shape)]


def op(name: str, kind: str, sources: list[int], given: list[Any], *made: Any, **more: Any) -> Row:
    return graph_operation(name, kind, given, list(made), **{"from": sources}, **more)


def forms(*rows: Row) -> tuple[CheaperForm, ...]:
    """Measure a graph whose operations but the placeholders each take 1 ms."""
    program = program_of(*rows)
    ran = Operations(all_ran(program, 1.0, "Placeholder", "Const"))
    return Chart([program, ran]).fact(CheaperForms).forms


def given(name: str, *shape: int) -> Row:
    return op(name, "Placeholder", [], [], tensor(*shape))


MATRIX, VALUES, EMPTY, SQUARE = tensor(96, 64), tensor(64), tensor(0), tensor(64, 64)
SVD = (given("w", 96, 64), op("norm/Svd", "Svd", [0], [MATRIX], VALUES, EMPTY, EMPTY))
ROWS, TILED, IMAGE = tensor(8, 256), tensor(4, 144), tensor(4, 8, 8, 64)
SORT = (given("x", 8, 256), op("TopKV2", "TopKV2", [0], [ROWS], ROWS, tensor(8, 256, kind="int32")))
FEW = op("few", "StridedSlice", [1], [ROWS], tensor(8, 12))
TILE = (given("x", 4, 48), op("Tile", "Tile", [0], [tensor(4, 48)], TILED))


def pairs(nodes: int, *, repeated: int = 2) -> tuple[Row, ...]:
    """Multiply the concatenated rows of both ends of 200 edges, of which so many are taken from the nodes."""
    row, both = tensor(200, 32), tensor(200, 64)
    taken = [op(f"end{n}", "GatherV2", [0, 1], [tensor(nodes, 32), tensor(200)], row) for n in range(repeated)]
    return (
        given("nodes", nodes, 32),
        given("index", 200),
        *(*taken, *(given(f"end{n}", 200, 32) for n in range(repeated, 2))),
        op("axis", "Const", [], [], tensor()),
        op("concat", "ConcatV2", [2, 3, 4], [row, row, tensor()], both),
        given("w", 64, 16),
        op("MatMul", "MatMul", [5, 6], [both, tensor(64, 16)], tensor(200, 16)),
    )


def resized(channels: int, kernel: int = 1, scale: int = 4, *, ways: int = 1) -> tuple[Row, ...]:
    """Convolve an image of 32 channels that was enlarged."""
    small, large = tensor(4, 24, 24, 32), tensor(4, 24 * scale, 24 * scale, 32)
    weights, out = tensor(kernel, kernel, 32, channels), tensor(4, 24 * scale, 24 * scale, channels)
    return (
        given("x", 4, 24, 24, 32),
        op("resize", "ResizeBilinear", [0], [small], large),
        given("k", *weights[1]),
        *(op(f"conv{n}", "Conv2D", [1, 2], [large, weights], out) for n in range(ways)),
    )


def diagonal(kind: str) -> tuple[Row, ...]:
    made, product = op("diag", kind, [0], [VALUES], SQUARE), op("m", "MatMul", [1, 2], [SQUARE, SQUARE], SQUARE)
    return given("d", 64), made, given("x", 64, 64), product


def loss_of(classes: int) -> tuple[Row, ...]:
    logits = tensor(128, classes)
    return given("x", 128, classes), op("l", LOSS.removeprefix("Sparse"), [0, 0], [logits, logits], tensor(128))


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (FormKind.LARGEST_SINGULAR_VALUE, (*SVD, op("largest", "StridedSlice", [1], [VALUES], tensor()))),
        (FormKind.LARGEST_SINGULAR_VALUE, (*SVD, op("largest", "Max", [1], [VALUES], tensor()))),
        (None, (*SVD, op("nuclear norm", "Sum", [1], [VALUES], tensor()))),
        (None, (*SVD, op("ten", "StridedSlice", [1], [VALUES], tensor(10)))),
        (None, (*SVD, op("vectors", "MatMul", [1], [MATRIX], tensor(96, 96), ports=[1]))),
        (FormKind.FEW_OF_A_SORT, (*SORT, op("quarter", "StridedSlice", [1], [ROWS], tensor(8, 64)))),
        (None, (*SORT, op("more", "StridedSlice", [1], [ROWS], tensor(8, 65)))),
        (None, (*SORT, FEW, op("every", "Sum", [1], [ROWS], tensor(8)))),  # trap: the sort also feeds a slice
        (None, (*SORT, FEW, op("every", "GatherV2", [1], [ROWS], tensor(8)))),
        (FormKind.PAIRS_BEFORE_PRODUCT, pairs(100)),
        (FormKind.PAIRS_BEFORE_PRODUCT, pairs(50)),
        (None, pairs(101)),
        (None, pairs(50, repeated=1)),  # trap: the difference to a neighbour, which no node has
        (FormKind.CONVOLUTION_AFTER_RESIZE, resized(4)),
        (FormKind.CONVOLUTION_AFTER_RESIZE, resized(16)),
        (None, resized(17)),  # trap: more channels, which are then dearer to enlarge
        (None, resized(4, kernel=3)),  # it sees neighbours
        (None, resized(4, scale=1)),
        (None, resized(4, ways=2)),  # the enlarged image is needed for the other
        (FormKind.PRODUCT_WITH_DIAGONAL, diagonal("MatrixDiagV3")),
        (FormKind.PRODUCT_WITH_DIAGONAL, diagonal("Diag")),
        (None, diagonal("MatrixBandPart")),
        (None, diagonal("MatrixDiagPart")),
        (FormKind.REPEATED_FOR_A_SLICE, (*TILE, op("crop", "StridedSlice", [1], [TILED], tensor(4, 36)))),
        (None, (*TILE, op("crop", "StridedSlice", [1], [TILED], tensor(4, 37)))),
        (FormKind.LARGE_SOFTMAX, loss_of(10_000)),
        (None, loss_of(9_999)),
        (FormKind.RESPONSE_NORMALIZATION, (given("x", 4, 8, 8, 64), op("LRN", "LRN", [0], [IMAGE], IMAGE))),
    ],
)
def test_a_cheaper_form_of_what_is_used(kind: FormKind | None, rows: tuple[Row, ...]) -> None:
    assert [form.kind for form in forms(*rows)] == ([kind] if kind else [])


def test_the_gradient_of_a_decomposition_belongs_to_it() -> None:
    largest = op("norm/largest", "StridedSlice", [1], [VALUES], tensor())
    back = op("gradient_tape/norm/Svd", "Svd", [0], [MATRIX], VALUES, MATRIX, MATRIX)
    (form,) = forms(*SVD, largest, back)
    assert form.names == frozenset(("norm/Svd", "gradient_tape/norm/Svd"))


def test_few_values_of_a_sort_in_the_other_direction() -> None:
    back, slices = op("Neg", "Neg", [1], [ROWS], ROWS), op("few", "Slice", [2], [ROWS], tensor(8, 12))
    (form,) = forms(*SORT, back, slices)
    assert form.because == "12 of the 256 sorted values of each row are used"


def test_what_is_left_of_the_product_of_pairs_is_that_of_the_nodes() -> None:
    assert [form.left for form in forms(*pairs(50))] == [50 / 200]
