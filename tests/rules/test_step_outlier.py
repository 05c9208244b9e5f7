"""step-outlier: long steps that recur, and those that show no pattern."""

from itertools import accumulate
from types import MappingProxyType

from tests.rules.kit import *
from tfdoctor.rules.execution import step_outlier

BUSY = Cores(2.0, 1.5, 1.0)
"""Other programs use a core of two, and none is free."""
AT = script(9)


def example(  # noqa: PLR0913 - the rule's own
    extra: Mapping[int, tuple[str, float]] = MappingProxyType(dict.fromkeys((5, 15, 25), (Stage.BETWEEN, 100.0))),
    *, count: int = 30, compiling: CompileTime | None = None, program: Program | None = None,
    cores: Cores | None = None, pace: UntracedPace | None = None,
    run: RunSteps | None = None, source: StepSource = StepSource.MARKERS, phases: RunPhases | None = None,
) -> Verdict:  # fmt: skip
    """A checkpoint of 100 ms follows every tenth step."""
    rows = [{**Breakdown.of(device=10.0).steps[0]} for _ in range(count)]
    for at, (part, more) in extra.items():
        rows[at][part] += more
    ends = [0, *accumulate(round(sum(row.values()) * PS_PER_MS) for row in rows)]
    steps = [Step(at, start, end, end) for at, (start, end) in enumerate(pairwise(ends))]
    parts = Breakdown(tuple(rows), rows[0])
    found = Steps.of(steps, source)
    return step_outlier.check(found, parts, compiling, program, cores, pace, run, phases)


def long(part: str, more: float = 100.0, *at: int, **others: Any) -> Verdict:
    """Judge twenty steps, of which those two, or others, take so much longer in a part."""
    return check(dict.fromkeys(at or (4, 14), (part, more)), **others)


def paced(count: int, total_ms: float) -> Verdict:
    untraced = UntracedSteps(count, 10.0, "steps", total_ms=total_ms)
    return long("between", pace=UntracedPace(1.0, 10.0, untraced, 20))


def fitting(epochs: int | None = 50, steps: int | None = None, at: Location | None = AT) -> Program:
    return Program(settings=RunSettings(epochs=epochs, steps_per_epoch=steps), fit_at=at)


sick = example
healthy = described("Thirty steps of the same length.", example, {})
check = partial(example, count=20)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["trap: a period is told where there is a strict one of four, as other programs hit steps"] = [
        long("input", 30.0, *at) for at in ((3, 8, 13, 18), (3, 8, 14, 18), (3, 8, 13))
    ]
    told["trap: one long step is no pattern: on a shared machine there always is one"] = long("device", 40.0, 4)
    told["one occasion that takes half of the trace"] = check(dict.fromkeys((4, 5), ("input", 100.0)))
    told["one occasion of two causes: the end of an epoch"] = check({4: ("between", 100.0), 5: ("input", 100.0)})
    told["two occasions of different causes"] = check({4: ("between", 50.0), 14: ("input", 50.0)})
    told["long steps without a common cause that take little"] = check({4: ("device", 20.0), 14: ("input", 20.0)})
    told["trap: adjacent long steps are one occasion, of another program's work"] = long("device", 20.0, 4, 5)
    told[...] = long("device", 20.0, 4, 6)
    told["a twentieth of the time, and less"] = long("between", 5.5), long("between", 5.0)
    told["without steady steps nothing is judged"] = long("between", 50.0, 2, count=5)
    compiling = CompileTime(2, 20, 1, share=0.5, apart=frozenset((4, 14)))
    told["steps that compile are left to recompilation"] = long("host", compiling=compiling)
    told["another long step beside those that compile"] = long("host", 100.0, 4, 9, 14, compiling=compiling)
    for source in (StepSource.EAGER_GRADIENT, StepSource.KERAS_FIT):
        told[f"long host work of {source}: single operations trace no function"] = long("host", source=source)
    told["long steps that the untraced ones lack"] = paced(100, 1000.0)
    told["long steps that the untraced ones have as well, or that are too few to tell"] = paced(100, 1900.0)
    told[...] = paced(19, 190.0)


@golden_cases
def test_busy_machine(told: Cases) -> None:
    told["long steps of a device while other programs use a core of two"] = long("device", cores=BUSY)
    told["long steps of a device while other programs use less"] = long("device", cores=Cores(2.0, 1.5, 0.4))
    told["long steps without a strict period of four"] = long("host", 40.0, *(4, 9, 14), cores=BUSY)
    told[...] = long("host", 40.0, *(4, 9, 15, 19), cores=BUSY)
    told["a strict period is a note that says so"] = long("between", 40.0, 4, 9, 14, 19, cores=BUSY)
    told["the same on an idle machine"] = long("between", 40.0, 4, 9, 14, 19)


@golden_cases
def test_ends_of_epochs(told: Cases) -> None:
    told["trap: fit is called once, and ends short epochs in long steps"] = long("between", program=fitting())
    told["where the line of fit is unknown"] = long("between", program=fitting(at=None))

    for steps, number, epochs in (
        *((10, number, 5) for number in (9, 10, 11, 14)),
        *((None, 14, epochs) for epochs in (5, 1, None)),  # a fit over one epoch may be called for each
    ):
        verdict = long("between", 100.0, 4, number, program=fitting(epochs, steps))
        told[f"{epochs} epochs of {steps} steps, of which step {number} is long"] = first_action(verdict)


# Long steps of the whole run
def run(beyond_ms: float) -> RunSteps:
    """Steps of 10 ms of a whole run, without the boundaries of its epochs; long ones have so many ms more."""
    beyond = LongSteps(count=20, ms=200.0 + beyond_ms, beyond_ms=beyond_ms)
    total = 10_000.0 + beyond_ms
    return replace(equal_steps(AT, 1000, 10.0, beyond), total_ms=total, mean_ms=total / 1000)


@golden_cases
def test_run(told: Cases) -> None:
    told["what lies between epochs in the account of the run is no long step"] = long("between", run=run(0.0))
    told["long steps in all of the run"] = long("between", run=run(10_000.0))
    line = replace(run_line(Phase.EVALUATION, script(30), 9_000.0), long_ms=9_000.0)
    evaluates = divided_run(60_000.0, {Phase.EVALUATION: 9_000.0}, line)
    told["evaluations are the long steps of the run"] = long("between", run=run(10_000.0), phases=evaluates)
    told["a slow device is no boundary of an epoch"] = long("device", run=run(0.0))
