"""slow-evaluation: loops of short calls and metrics in Python are found, one long evaluation is not."""

from tests.rules.kit import *
from tfdoctor.rules.run.slow_evaluation import check
from tfdoctor.terms.run_time import PhaseSegment

AT = Location("evaluate.py", 31)


def example(
    *calls: MadeCall, lines: tuple[RunLine, ...] = (), total_ms: float = 110_000.0, epochs: int = 0
) -> Verdict:
    """Judge a run with these calls and lines, whose other time is in training steps."""
    times = {Phase.EVALUATION: sum(call.ms for call in calls)}
    for one in lines:
        times[one.phase] = times.get(one.phase, 0.0) + one.ms
    return check(divided_run(total_ms, times, *lines), RunCalls(calls, epochs))


def sick() -> Verdict:
    """A loop calls evaluate for each of 600 batches after the training: 30 of 110 s."""
    each = {"looped": True, "examples": 32.0, "batches": 1.0, "after_training": True}
    return example(made_call(RunCall.EVALUATE, AT, 600, 50.0, **each))


def healthy() -> Verdict:
    """One call evaluates 50,000 examples in 24 s: 15 ms for each batch of 32."""
    call = made_call(RunCall.EVALUATE, AT, 1, 24_000.0, examples=50_000.0, batches=1563.0)
    return example(call, total_ms=104_000.0)


def evaluated(count: int, each_ms: float, **given: Any) -> MadeCall:
    return calls_at(RunCall.EVALUATE, 31, count, each_ms, **given)


judged = partial(example, total_ms=100_000.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["batches of 32 that take 2 ms each"] = judged(evaluated(2, 10_045.0, examples=320_000.0, batches=10_000.0))
    for name, call in (
        ("large batches: 38 ms each", evaluated(1, 60_000.0, examples=50_000.0, batches=1563.0)),
        ("a dataset, whose batches are not known", evaluated(1, 60_000.0)),
        ("ten folds", evaluated(10, 3_000.0, looped=True)),
        ("two epochs", evaluated(2, 10_045.0, examples=320_000.0, batches=10_000.0, within=RunCall.EPOCH)),
    ):
        told[f"evaluation of {name}"] = judged(call)
    told["evaluation after each of 40 epochs"] = judged(evaluated(40, 200.0, looped=True), epochs=40)
    for phase in (Phase.EVALUATION, Phase.END):
        told[f"metrics in Python: {phase}"] = judged(lines=(at_line(phase, 50, 30_000.0),))
    segment = PhaseSegment(Phase.EVALUATION, 0.0, 1.0)
    often = replace(divided_run(1e5, {}, at_line(Phase.EVALUATION, 50, 30_000.0)), spans=(segment, segment))
    told["metrics in Python in two evaluations"] = check(often, RunCalls(()))
    for calls, repeats in (
        ("sklearn.metrics._ranking.roc_auc_score", False),
        ("", False),
        ("", None),
        ("matplotlib.pyplot.savefig", True),
    ):
        done = at_line(Phase.END, 50, 30_000.0, calls, repeats=repeats)
        told[f"{calls or 'Python'} for all, repeated: {repeats}"] = judged(evaluated(1, 900.0), lines=(done,))
    part = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    told["a part of the run"] = applied(check, part, RunCalls(()))
    run = RunPhases(total_ms=1.0, times={Phase.STEPS: 1.0})
    told["a run that fits without evaluating"] = applied(check, run, RunCalls((), fits=1))
    told["a run that may evaluate in code of its own"] = applied(check, run, RunCalls(()))
    told["a run that was ended early"] = applied(check, replace(run, ended_early=True), RunCalls(()))
