"""hot-operation: what takes long for its bytes and FLOPs, where no other finding explains it."""

from tests.rules.kit import *
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups
from tfdoctor.rules.operations import hot_operation

AT = script(14)
LOSS = "SparseSoftmaxCrossEntropyWithLogits"
TRACED = TracingCost.of({"device": 30.0, "host": 10.0}, {"device": 1e4, "host": 0.0}, 2.0)
PROFILED: dict[str, Any] = {"model": StepModel(device=DeviceKind.CPU, exposed=TRACED.untraced, tracing=TRACED)}
SHORT_STEP: dict[str, Any] = {"step": Breakdown.of(device=0.3, host=0.1), "left": {Stage.DEVICE: 0.3}}
MANY: dict[str, Any] = {"host": 5.0, "dispatching": 20.0}


def one_group(
    kind: str = "Tile", time_ms: float = 20.0, least: float | None = 0.4, calls: float = 1.0, **more: Any
) -> OperationGroup:
    """Build the group of one operation."""
    at = more.pop("at", AT)
    row = took(kind, kind, time_ms, calls=calls, at=at)
    missing = "" if least is not None else "shapes unknown"
    parts: dict[str, Any] = {"layers": (), "rows": (row,), "missing": missing}
    return OperationGroup(type=kind, at=at, least_ms=least, **(parts | more))


def example(  # noqa: PLR0913 - one argument for each fact of the rule
    *groups: OperationGroup, step: Breakdown | None = None, left: Mapping[str, float] | None = None,
    subjects: frozenset[str] = frozenset(), lines: HostLines | None = None, unnamed: str = "",
    loops: LoopWork | None = None, model: StepModel | None = None,
    optimizer: OptimizerWork | None = None,
) -> Verdict:  # fmt: skip
    """Repeating a tensor takes 20 of 40 ms, where reading and writing it takes 0.4 ms."""
    unexplained = Unexplained({Stage.DEVICE: 38.0} if left is None else left, subjects)
    found = OperationGroups(groups or (() if unnamed else (one_group(),)), unnamed)
    facts = (unexplained, step or Breakdown.of(device=38.0, host=2.0), found)
    return hot_operation.check(*facts, lines, loops, model, optimizer)


def group(kind: str = "Unique", time_ms: float = 10.0, least: float | None = 0.1, *rest: float, **more: Any) -> Any:
    return one_group(kind, time_ms, least, *rest, **more)


def check(
    *groups: OperationGroup, left: float = 30.0, host: float = 0.0, dispatching: float = 0.0, **more: Any
) -> Verdict:
    """Judge groups of steps of 40 ms."""
    parts: dict[str, float] = {part: ms for part, ms in ((Stage.DEVICE, left), (Stage.HOST, host)) if ms}
    lines = HostLines({Stage.HOST: (TimedLine(AT, 9, dispatching, work=LineWork.DISPATCHING),)})
    return example(*groups, step=Breakdown.of(device=30.0, host=10.0), left=parts, lines=lines, **more)


def loop_of_short(each_ms: float) -> list[OperationGroup]:
    more: dict[str, Any] = {"loop": "map/while", "loop_at": AT}
    return [group(kind, 200 * each_ms, 100 * each_ms + 1, 200.0, **more) for kind in ("Mul", "AddV2", "Tanh")]


def group_of(names: tuple[str, ...], kind: str, ms: float, layer: str = "", **more: Any) -> OperationGroup:
    made = {name: Operation(name=name, type=kind, layer=layer, at=AT, **more.get("made", {})) for name in names}
    rest: dict[str, Any] = {"ms": ms, "layer": layer, "at": AT, "calls": more.get("calls", 1.0)}
    rows = tuple(OperationTime(name=name, type=kind, operation=one, **rest) for name, one in made.items())
    return OperationGroup(type=kind, at=AT, layers=(layer,) if layer else (), rows=rows, least_ms=more.get("least"))


def layer(**more: Any) -> OperationGroup:
    return group_of(("dense_1/MatMul",), "MatMul", 10.0, "dense", **more)


def compiled(*, by_xla: bool) -> Verdict:
    made = {"compiled": by_xla, "direct": True}
    return check(group_of(("f",), "mul (fused)", 9.0, calls=3000.0, made=made, least=0.1))


def for_metrics(ms: float) -> Verdict:
    more: dict[str, Any] = {"only_metrics": True, "metrics": ("auc",)}
    return check(*(group(name, ms, 0.9 * ms, **more) for name in ("Cast", "Tile")))


def two(left: float, tracing: TracingCost | None = None) -> Verdict:
    """Judge 9 and 6 ms on one line, of which so much is unexplained."""
    exposed = tracing.untraced if tracing else Breakdown.of(device=30.0, host=10.0).median
    model = StepModel(device=DeviceKind.CPU, exposed=exposed, tracing=tracing)
    return check(group("Unique", 9.0), group("Sort", 6.0), left=left, model=model)


sick = example
healthy = described(
    "An operation takes half of the step, and its bytes need nearly all of that time.",
    example,
    one_group(least=18.0),
)
SHORT = group("Mul", 5.0, None, 900.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["an operation takes a tenth of the step, or less"] = check(group(time_ms=4.0)), check(group(time_ms=3.99))
    told["half of its time is needed, and less"] = check(group(least=5.0)), check(group(least=4.99))
    told["a tenth of the untraced step: 4.5 of 40 traced ms are 2.0 of 20"] = check(group(time_ms=4.6), **PROFILED)
    told[...] = check(group(time_ms=4.5), **PROFILED)
    told["in a short step 0.2 ms are told, not what is less"] = example(group(time_ms=0.2, least=0.0), **SHORT_STEP)
    told[...] = example(group(time_ms=0.199, least=0.0), **SHORT_STEP)
    told["a line has one change, and as evidence the time of all"] = two(30.0)
    told["of 15 ms 6 are left to explain, so that the summary, the list and the table state that time"] = two(6.0)
    told["without what the profiler takes of it"] = two(30.0, TRACED)
    told["no more than is unexplained"] = check(group(time_ms=10.0, least=1.0), group("Sort", 10.0, 1.0), left=10.0)
    told["an operation of unknown peak, far below this run's fastest, in a healthy network"] = [
        check(group(kind, 20.0, least, gflop_s=12.0, best_gflop_s=90.0))
        for kind, least in (("MatMul", None), ("Unique", None), ("Conv2D", 16.6))
    ]
    told["work near the hardware's rates is needed"] = check(group("Conv2D", 20.0, 14.0), group("Unique", 3.0, 0.1))
    told["explained by others"] = (check(group(), subjects=frozenset(("Unique",))), check(group(), left=0.0))
    told["a step that XLA compiled"] = check(unnamed="XLA compiled the step")
    told["XLA compiles short operations, unless it has"] = compiled(by_xla=False), compiled(by_xla=True)
    told["Python in the graph"] = check(group("PyFunc", least=None))
    told["a matmul is not moved to the input pipeline"] = check(group("MatMul", 20.0, 2.0))
    told["what only metrics use counts together, from a twentieth on"] = for_metrics(1.0), for_metrics(0.99)
    told["an unrolled GRU of Keras, and operations that are called directly"] = check(layer(calls=2000.0))
    told[...] = check(layer(calls=2000.0, made={"direct": True}))


@golden_cases
def test_short_operations(told: Cases) -> None:
    told["100 of them are many"] = [check(group("Mul", 0.5, None, calls), **MANY) for calls in (100.0, 99.0)]
    told["in a loop each takes 0.01 ms, and more"] = [check(*loop_of_short(ms)) for ms in (0.01, 0.0101)]
    told["apply_gradients of a plain loop, on whose line Keras updates each variable"] = check(SHORT)
    told[...] = check(SHORT, optimizer=OptimizerWork(SHORT.rows, 900.0))
    dispatched: dict[str, Any] = {"host": 5.0, "dispatching": 6.0}
    told["the host's time to dispatch belongs to them, unless a finding names it"] = (
        check(group("Mul", 1.0, None, 400.0), **dispatched),
        check(group("Mul", 1.0, None, 400.0), **dispatched, subjects=frozenset((StepWork.LAUNCHING,))),
    )
    looped = group("Mul", 0.1, None, 200.0, loop="gru/while", loop_at=script(10))
    for scheduling in (8.0, 6.0, 9.0):
        work = LoopWork((GraphLoop("gru/while", 100.0, 200.0, 0.1),), scheduling)
        told[f"beside an optimizer's, as many as the loop's, which take {scheduling:.0f} of 8 ms to dispatch"] = (
            check(looped, group("Pow", 4.5, None, 500.0), host=8.0, dispatching=8.0, loops=work)
        )
    ways = [group(kind, 0.5, None, 200.0, loop=f"{kind}/while", loop_at=AT) for kind in ("Mul", "Add")]
    named = group("Tanh", 0.5, None, 400.0, loop="Mul/while", loop_at=AT)
    work = LoopWork((GraphLoop("Mul/while", 100.0, 800.0, 1.5),), 24.0)
    subjects = frozenset((named.rows[0].name,))
    told["a bidirectional layer, two loops of a line, of whose 800 operations a finding names 400"] = check(
        *ways, named, host=24.0, dispatching=24.0, loops=work, subjects=subjects
    )
