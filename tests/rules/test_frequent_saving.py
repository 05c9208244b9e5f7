"""frequent-saving: saves in the middle of epochs are compared with what a failure could lose."""

from tests.rules.kit import *
from tfdoctor.rules.run.frequent_saving import check

AT = script(35)
SHORT: dict[str, Any] = {"total_ms": 12_000.0, "once_ms": 10_000.0, "epochs": 6}
RUN = RunPhases(total_ms=100.0, times={Phase.STEPS: 100.0})
WINDOW = replace(RUN, whole=False, missing="no log")


def example(*calls: MadeCall, total_ms: float = 60_000.0, epochs: int = 10, once_ms: float = 0.0) -> Verdict:
    """Judge a run with these saves, whose other time is in training steps."""
    times = {Phase.SAVING: sum(call.ms for call in calls)}
    phases = replace(divided_run(total_ms, times), once_ms=once_ms)
    return check(phases, RunCalls(calls, epochs))


def saved(count: int, each_ms: float, **given: Any) -> MadeCall:
    return calls_at(RunCall.SAVE, 35, count, each_ms, **given)


sick = described(
    "A checkpoint in every fifth of 3,000 steps: 600 times 20 ms of a minute.",
    example,
    made_call(RunCall.SAVE, AT, 600, 20.0, looped=True),
)
healthy = described(
    "A checkpoint of half a second at the end of each of 10 epochs, in ten minutes.",
    example,
    made_call(RunCall.SAVE, AT, 10, 500.0, looped=True),
    total_ms=600_000.0,
)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a checkpoint in every fifth step is too often"] = example(saved(600, 20.0, looped=True))
    told["the last and the best weights of each of ten epochs"] = example(saved(20, 500.0))
    told["less than 5 % of the run"] = example(saved(21, 140.0))
    told["before and after the training, as exports of models"] = example(saved(600, 20.0, before_training=True))
    told[...] = example(saved(600, 20.0, after_training=True))
    told["at two places of a script, in a loop or not"] = example(saved(2, 6_000.0))
    # Every fifth of 120 steps of 12 ms saves, beside ten seconds of imports
    told["a short run is judged by its saves' share"] = [example(saved(24, ms), **SHORT) for ms in (24.0, 4.0)]
    told["every five minutes, a failure each hour"] = example(saved(24, 5_000.0), total_ms=7_200_000.0, epochs=1)
    told["without saves fit is healthy; a loop may save unseen"] = applied(check, RUN, RunCalls((), fits=1))
    told[...] = applied(check, RUN, RunCalls(()))
    told["a window"] = applied(check, WINDOW, RunCalls((), fits=1))


@given(st.floats(0.01, 1e5), st.integers(3, 10**6))
def test_what_is_saved_is_never_more_than_the_saves_take(each_ms: float, number: int) -> None:
    verdict = example(saved(number, each_ms), total_ms=2 * number * each_ms)
    for effect in verdict.run_effects if isinstance(verdict, Finding) else ():
        assert 0.0 <= effect.scales < 1.0
        assert effect.of.value == pytest.approx(number * each_ms)
