"""between-steps: the time between two calls without tracing and making batches, and the lines it is spent on."""

import pytest

from tests.rules.kit import *
from tfdoctor.rules.execution import between_steps

WEIGHTS = TimedLine(Location("train.py", 27), 11, callback="Weights.on_train_batch_end")


def example(  # noqa: PLR0913 - each may explain the time between two steps
    between: float = 7.0, *places: TimedLine, step: float | None = None,
    new_arguments: tuple[tuple[int, ...], ...] = (), retracing: Retracing | None = None,
    slow: SlowCalls | None = None, untraced: float | None = None, single: SingleOperations | None = None,
    lines: HostLines | None = None, saves: MadeCall | None = None, with_it: int | None = None,
) -> Verdict:  # fmt: skip
    """Judge steps that compute for 6 ms, or take ``step``, of which these places were seen between calls.

    ``with_it`` of 30 steps have the time between calls; None is all. The run has 1000 steps and these saves.
    """
    usual = Breakdown.of(between=between, device=step - between if step else 6.0)
    rows = [{**usual.median, Stage.BETWEEN: between if at < (with_it or 0) else 0.1} for at in range(30)]
    return between_steps.check(
        usual if with_it is None else replace(usual, steps=tuple(rows)),
        StackSamples(places, new_arguments=new_arguments) if places else None,
        retracing,
        slow,
        None if untraced is None else UntracedPace(untraced, 20.0 * untraced),
        single,
        lines,
        RunCalls((saves,), epochs=1) if saves else None,
        equal_steps(Location("train.py", 1), 1000, 10.0),
    )


def sick() -> Verdict:
    """A callback takes 7 ms of each 13 ms step."""
    return example(7.0, WEIGHTS)


def healthy() -> Verdict:
    """Steps of 6 ms with a pause of 0.1 ms between them."""
    return example(0.1)


LOGS, MAKES = Location("train.py", 40), Location("train.py", 12)

check = partial(example, step=20.0)


def logs(seen: int, callback: str = "Log.on_batch_end") -> TimedLine:
    return TimedLine(LOGS, seen, callback=callback)


def slow(kind: SlowCall, seen: int, ms: float) -> SlowCalls:
    return SlowCalls((TimedLine.slow(MAKES, kind, seen, range(seen), {Stage.BETWEEN: ms}),), 20)


def tracing(between_ms: float = 0.0, calling_ms: float = 0.0) -> Retracing:
    return Retracing((), 0.0, between_ms, calling_ms)


def saves(each_ms: float) -> MadeCall:
    return made_call(RunCall.SAVE, LOGS, 1000, each_ms)


def ran(at: Location, seen: int, work: LineWork = LineWork.OPERATIONS) -> TimedLine:
    return TimedLine(at, seen, 1.0, work=work)


def lines(within: TimedLine, *between: TimedLine) -> HostLines:
    return HostLines({Stage.HOST: (within,), **({Stage.BETWEEN: between} if between else {})})


TOOK = TimedLine(MAKES, 18), TimedLine(LOGS, 2)
BATCH = TimedLine(MAKES, 18, makes=True), TimedLine(LOGS, 2, makes=False)
NEW: dict[str, Any] = {"new_arguments": ((128, 32),)}
SAMPLE = "Sample.on_train_batch_end"
SAMPLES = TimedLine(MAKES, 19, callback=SAMPLE), TimedLine(LOGS, 1, callback=SAMPLE)
SAVED = (logs(9, "ModelCheckpoint.on_train_batch_end"),)
PREDICTS: dict[str, Any] = {"slow": slow(SlowCall.PREDICT, 18, 7.2)}

test_what_is_left_of_the_time_between_steps_decides = each_is(
    (check(1.0), Finding),
    (check(0.99), Healthy),
    (check(0.5, step=2.0), Finding),
    (check(0.49, step=2.0), Healthy),
    (check(8.0, *BATCH, **NEW), Healthy),  # trap: 90 % of the samples are on the lines that make the arguments
    (check(12.0, *BATCH, **NEW), Finding),
    (check(8.0, *BATCH[:1]), Finding),  # what stays the same is no batch
    # Trap: every fourth batch a checkpoint is written, which the mean of the steps has in each
    (check(3.0, logs(9), with_it=10), Healthy),
    (check(3.0, logs(9), with_it=11), Finding),
    # ModelCheckpoint saves every batch of the run's 1000; 1 ms of a step of 20 ms is reported
    (check(10.0, *SAVED, saves=saves(9.1)), Healthy),
    (check(10.0, *SAVED, saves=saves(8.9)), Finding),
    (check(8.0, *TOOK, **PREDICTS), Healthy),  # left to slow-call
    (check(12.0, *TOOK, **PREDICTS), Finding),
    (check(10.0, *SAMPLES, slow=slow(SlowCall.PREDICT, 18, 9.0)), Healthy),
    # Trap: a marked call begins within the tf.function, after Python has found or made its graph
    (check(10.0, retracing=tracing(between_ms=9.5)), Healthy),
    (check(1.2, retracing=tracing(calling_ms=0.3)), Healthy),
    # Trap: the last 10 ms of `optimizer.apply`, after the last operation that it runs
    (check(10.0, TimedLine(MAKES, 40), TimedLine(LOGS, 10), lines=lines(ran(MAKES, 30), ran(MAKES, 10))), Healthy),
    # A line is the step's own when it mostly runs operations in it
    (check(10.0, TimedLine(LOGS, 19), lines=lines(ran(LOGS, 9), ran(LOGS, 10))), Finding),
    (check(10.0, TimedLine(LOGS, 19), lines=lines(ran(LOGS, 30, LineWork.PYTHON), ran(LOGS, 10))), Finding),
    # Nothing but the step was seen
    (check(10.0, TimedLine(MAKES, 30), lines=lines(ran(MAKES, 30))), Healthy),
    (check(10.0, TimedLine(LOGS, 30), lines=lines(ran(MAKES, 30))), Finding),
)


@pytest.mark.parametrize(("untraced", "grows"), [(1.25, True), (1.24, False), (0.8, False), (None, False)])
def test_longer_steps_outside_of_the_window_may_grow(untraced: float | None, *, grows: bool) -> None:
    finding = as_finding(check(10.0, untraced=untraced))
    assert ("may grow with the step number" in finding.summary) is grows
    assert len(finding.remedies) == (2 if grows else 1)


def times(verdict: Verdict) -> dict[tuple[str, str], tuple[float, float]]:
    effects = as_finding(verdict).effects
    return {(effect.stage, effect.subject): (effect.of.value, effect.scales) for effect in effects if effect.of}


def test_time_without_stack_samples_has_no_name_and_a_ceiling() -> None:
    finding = as_finding(check(10.0))
    assert "mostly" not in finding.summary
    assert finding.effects[0].bound is Bound.AT_MOST
    assert next(iter(times(finding).values()))[0] == pytest.approx(10.0)


def test_a_callback_is_named_over_all_of_its_lines() -> None:
    other = TimedLine(Location("train.py", 41), 3, callback="Log.on_batch_end")
    finding = as_finding(check(10.0, logs(4), other, TimedLine(MAKES, 6)))
    assert "Log.on_batch_end" in finding.summary
    assert finding.remedies[0].at == LOGS


def test_what_takes_less_than_half_is_not_named_in_the_summary() -> None:
    finding = as_finding(check(10.0, *(TimedLine(Location("train.py", n), 2) for n in (1, 2, 3))))
    assert "train.py" not in finding.summary
    assert len(table(finding).rows) == 3


@pytest.mark.parametrize(
    ("places", "more", "at"),
    [
        ((TimedLine(LOGS, 4),), {}, None),  # few samples
        ((TimedLine(LOGS, 5),), {}, LOGS),
        (TOOK, PREDICTS, LOGS),
    ],
)
def test_the_line_is_what_was_seen_often_enough(
    places: tuple[TimedLine, ...], more: dict[str, Any], at: Location | None
) -> None:
    assert as_finding(check(12.0, *places, **more)).remedies[0].at == at


def test_work_in_few_of_the_steps_is_explained() -> None:
    """So that hot-line does not name it again."""
    assert [time.of.value for time in as_healthy(check(3.0, logs(9), with_it=10)).necessary] == [3.0]


def test_a_callback_is_one_finding_with_the_slow_calls_in_it() -> None:
    """get_weights and a histogram of each: to run the callback rarely spares both, and its operations."""
    callback = "Weights.on_train_batch_end"
    places = logs(10, callback), TimedLine(MAKES, 8, callback=callback), TimedLine(None, 2)
    weights, single = slow(SlowCall.WEIGHTS, 8, 4.0), SingleOperations(0.0, 2.0)
    finding = as_finding(check(10.0, *places, slow=weights, single=single))
    assert callback in finding.summary
    found, left = times(finding), 1.0 - 0.99 * 5.0 / 6.0
    assert found[Stage.BETWEEN, StepWork.BETWEEN_CALLS] == pytest.approx((6.0, left))
    assert found[Stage.DEVICE, StepWork.BETWEEN_CALLS] == pytest.approx((1.2, left))
    assert found[Stage.BETWEEN, StepWork.SLOW_CALLS] == pytest.approx((4.0, 0.01))
    assert found[Stage.DEVICE, StepWork.SLOW_CALLS] == pytest.approx((0.8, 0.01))
    assert {effect.bound for effect in finding.effects} == {Bound.EXPECTED}


def test_what_floats_leave_of_nothing_is_nothing() -> None:
    """Trap: 0.1 + 0.2 - 0.3 is 5.6e-17."""
    healthy = as_healthy(check(0.1 + 0.2, retracing=tracing(calling_ms=0.3)))
    assert ", 0 ms of them in other work" in healthy.summary


def test_the_summary_states_all_the_time_and_what_of_it_is_judged() -> None:
    """The time between steps is one number in a report, whichever part of it a rule judges."""
    healthy = as_healthy(check(18.6, step=40.0, retracing=tracing(calling_ms=17.5)))
    assert healthy.summary.startswith("18.6 ms pass between two steps, 1.10 ms of them in other work")
    assert not healthy.necessary


def test_what_keras_own_loop_takes_is_necessary() -> None:
    assert [time.of.value for time in as_healthy(check(0.49, step=2.0)).necessary] == [0.49]
    assert not as_healthy(check(0.9, step=20.0)).necessary


def test_a_named_callback_leaves_a_hundredth_and_what_else_ran() -> None:
    effect = as_finding(check(10.0, logs(8), TimedLine(MAKES, 2))).effects[0]
    assert effect.bound is Bound.EXPECTED
    assert effect.scales == pytest.approx(1.0 - 0.99 * 0.8)


def test_operations_that_the_work_runs_one_by_one_are_spared_with_it() -> None:
    """fit for one batch builds a dataset of operations, which the breakdown counts as compute."""
    found = times(check(10.0, single=SingleOperations(inside_ms=1.0, between_ms=4.0)))
    assert {stage: ms for (stage, _), (ms, _) in found.items()} == {Stage.BETWEEN: 10.0, Stage.DEVICE: 4.0}
    half = times(check(10.0, retracing=tracing(calling_ms=5.0), single=SingleOperations(0.0, between_ms=4.0)))
    assert [ms for ms, _ in half.values()] == [5.0, 2.0]


def test_what_runs_only_between_eager_steps_is_named() -> None:
    seen = lines(ran(MAKES, 30), ran(MAKES, 10), ran(LOGS, 10))
    finding = as_finding(check(10.0, TimedLine(MAKES, 40), TimedLine(LOGS, 10), lines=seen))
    assert finding.remedies[0].at == LOGS
    assert next(iter(times(finding).values()))[0] == pytest.approx(5.0)
