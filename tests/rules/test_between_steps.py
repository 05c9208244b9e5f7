"""between-steps: the time between two calls without tracing and making batches, and the lines it is spent on."""

from functools import partial

import pytest

from tests.rules.cases.between_steps import example
from tests.rules.run_facts import made_call
from tests.rules.verdicts import as_finding, as_healthy
from tfdoctor.facts.step_time.host_lines import HostLines, SlowCalls
from tfdoctor.facts.step_time.host_time import SingleOperations
from tfdoctor.facts.step_time.python_work import Retracing
from tfdoctor.facts.step_time.timed_line import LineWork, SlowCall, TimedLine
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Stage, StepWork, Table

LOGS, MAKES = Location("train.py", 40), Location("train.py", 12)


check = partial(example, step=20.0)


@pytest.mark.parametrize(
    ("between", "step", "kind"),
    [(1.0, 20.0, Finding), (0.99, 20.0, Healthy), (0.5, 2.0, Finding), (0.49, 2.0, Healthy)],
)
def test_a_share_of_the_step_and_more_than_keras_takes(between: float, step: float, kind: type) -> None:
    assert isinstance(check(between, step=step), kind)


@pytest.mark.parametrize(("untraced", "grows"), [(1.25, True), (1.24, False), (0.8, False), (None, False)])
def test_longer_steps_outside_of_the_window_may_grow(untraced: float | None, *, grows: bool) -> None:
    finding = as_finding(check(10.0, untraced=untraced))
    assert ("may grow with the step number" in finding.summary) is grows
    assert len(finding.remedies) == (2 if grows else 1)


def test_time_without_stack_samples_has_no_name_and_a_ceiling() -> None:
    finding = as_finding(check(10.0))
    assert "mostly" not in finding.summary
    assert finding.effects[0].bound is Bound.AT_MOST
    assert finding.effects[0].of is not None
    assert finding.effects[0].of.value == pytest.approx(10.0)


def test_a_callback_is_named_over_all_of_its_lines() -> None:
    other = Location("train.py", 41)
    finding = as_finding(
        check(
            10.0,
            TimedLine(LOGS, 4, callback="Log.on_batch_end"),
            TimedLine(other, 3, callback="Log.on_batch_end"),
            TimedLine(MAKES, 6),
        )
    )
    assert "Log.on_batch_end" in finding.summary
    assert finding.remedies[0].at == LOGS


def test_what_takes_less_than_half_is_not_named_in_the_summary() -> None:
    finding = as_finding(check(10.0, *(TimedLine(Location("train.py", n), 2) for n in (1, 2, 3))))
    assert "train.py" not in finding.summary
    assert [len(table.rows) for table in finding.evidence if isinstance(table, Table)] == [3]


def test_few_stack_samples_name_no_line() -> None:
    few, enough = check(10.0, TimedLine(LOGS, 4)), check(10.0, TimedLine(LOGS, 5))
    assert isinstance(few, Finding)
    assert isinstance(enough, Finding)
    assert (few.remedies[0].at, enough.remedies[0].at) == (None, LOGS)


def test_making_batches_is_left_to_python_input() -> None:
    """Trap: 90 % of the stack samples are on the lines that make the arguments."""
    places = TimedLine(MAKES, 18, makes=True), TimedLine(LOGS, 2, makes=False)
    assert isinstance(check(8.0, *places, new_arguments=((128, 32),)), Healthy)
    assert isinstance(check(12.0, *places, new_arguments=((128, 32),)), Finding)


@pytest.mark.parametrize(("with_it", "kind"), [(10, Healthy), (11, Finding)])
def test_work_in_few_of_the_steps_is_not_work_of_each(with_it: int, kind: type) -> None:
    """Trap: every fourth batch a checkpoint is written, which the mean of the steps has in each."""
    verdict = check(3.0, TimedLine(LOGS, 9, callback="Log.on_batch_end"), with_it=with_it)
    assert isinstance(verdict, kind)
    explained = [time.of.value for time in verdict.necessary] if isinstance(verdict, Healthy) else [3.0]
    assert explained == [3.0]  # hot-line does not name it again


@pytest.mark.parametrize(("each_ms", "kind"), [(9.1, Healthy), (8.9, Finding)])
def test_the_time_of_saves_is_left_to_frequent_saving(each_ms: float, kind: type) -> None:
    """ModelCheckpoint saves every batch of the run's 1000; 1 ms of a step of 20 ms is reported."""
    saves = made_call(RunCall.SAVE, LOGS, 1000, each_ms)
    assert isinstance(
        check(10.0, TimedLine(LOGS, 9, callback="ModelCheckpoint.on_train_batch_end"), saves=saves), kind
    )


def test_slow_calls_are_left_to_slow_call() -> None:
    """Trap: nearly all of the time between steps is in a line that calls predict."""
    slow = SlowCalls((TimedLine.slow(MAKES, SlowCall.PREDICT, 18, range(18), {Stage.BETWEEN: 7.2}),), 20)
    places = TimedLine(MAKES, 18), TimedLine(LOGS, 2)
    assert isinstance(check(8.0, *places, slow=slow), Healthy)
    assert as_finding(check(12.0, *places, slow=slow)).remedies[0].at == LOGS


def test_a_callback_is_one_finding_with_the_slow_calls_in_it() -> None:
    """get_weights and a histogram of each: to run the callback rarely spares both, and its operations."""
    callback = "Weights.on_train_batch_end"
    slow = SlowCalls((TimedLine.slow(MAKES, SlowCall.WEIGHTS, 8, range(8), {Stage.BETWEEN: 4.0}),), 20)
    places = TimedLine(LOGS, 10, callback=callback), TimedLine(MAKES, 8, callback=callback), TimedLine(None, 2)
    finding = as_finding(check(10.0, *places, slow=slow, single=SingleOperations(0.0, 2.0)))
    assert "Weights.on_train_batch_end" in finding.summary
    times = {(e.stage, e.subject): (e.of.value, e.scales) for e in finding.effects if e.of}
    own, calls = StepWork.BETWEEN_CALLS, StepWork.SLOW_CALLS
    left = 1.0 - 0.99 * 5.0 / 6.0
    assert times[Stage.BETWEEN, own] == pytest.approx((6.0, left))
    assert times[Stage.DEVICE, own] == pytest.approx((1.2, left))
    assert times[Stage.BETWEEN, calls] == pytest.approx((4.0, 0.01))
    assert times[Stage.DEVICE, calls] == pytest.approx((0.8, 0.01))
    assert {effect.bound for effect in finding.effects} == {Bound.EXPECTED}


def test_a_callback_that_does_nothing_but_slow_calls_is_left_to_slow_call() -> None:
    callback = "Sample.on_train_batch_end"
    slow = SlowCalls((TimedLine.slow(MAKES, SlowCall.PREDICT, 18, range(18), {Stage.BETWEEN: 9.0}),), 20)
    places = TimedLine(MAKES, 19, callback=callback), TimedLine(LOGS, 1, callback=callback)
    assert isinstance(check(10.0, *places, slow=slow), Healthy)


def test_lines_that_make_what_stays_the_same_make_no_batch() -> None:
    assert isinstance(check(8.0, TimedLine(MAKES, 18, makes=True)), Finding)


def test_tracing_and_calling_functions_are_left_out() -> None:
    """Trap: a marked call begins within the tf.function, after Python has found or made its graph."""
    assert isinstance(check(10.0, retracing=Retracing((), 0.0, 9.5)), Healthy)
    assert isinstance(check(1.2, retracing=Retracing((), calling_ms=0.3)), Healthy)


def test_what_floats_leave_of_nothing_is_nothing() -> None:
    """Trap: 0.1 + 0.2 - 0.3 is 5.6e-17."""
    healthy = as_healthy(check(0.1 + 0.2, retracing=Retracing((), calling_ms=0.3)))
    assert ", 0 ms of them in other work" in healthy.summary


def test_the_summary_states_all_the_time_and_what_of_it_is_judged() -> None:
    """The time between steps is one number in a report, whichever part of it a rule judges."""
    healthy = as_healthy(check(18.6, step=40.0, retracing=Retracing((), calling_ms=17.5)))
    assert healthy.summary.startswith("18.6 ms pass between two steps, 1.10 ms of them in other work")
    assert not healthy.necessary


def test_what_keras_own_loop_takes_is_necessary() -> None:
    short, long = check(0.49, step=2.0), check(0.9, step=20.0)
    assert isinstance(short, Healthy)
    assert isinstance(long, Healthy)
    assert [time.of.value for time in short.necessary] == [0.49]
    assert not long.necessary


def test_a_named_callback_leaves_a_hundredth_and_what_else_ran() -> None:
    finding = as_finding(check(10.0, TimedLine(LOGS, 8, callback="Log.on_batch_end"), TimedLine(MAKES, 2)))
    assert finding.effects[0].bound is Bound.EXPECTED
    assert finding.effects[0].scales == pytest.approx(1.0 - 0.99 * 0.8)


def test_operations_that_the_work_runs_one_by_one_are_spared_with_it() -> None:
    """fit for one batch builds a dataset of operations, which the breakdown counts as compute."""
    finding = as_finding(check(10.0, single=SingleOperations(inside_ms=1.0, between_ms=4.0)))
    assert {effect.stage: effect.of.value for effect in finding.effects if effect.of} == {
        Stage.BETWEEN: 10.0,
        Stage.DEVICE: 4.0,
    }
    half = as_finding(
        check(10.0, retracing=Retracing((), calling_ms=5.0), single=SingleOperations(inside_ms=0.0, between_ms=4.0))
    )
    assert [effect.of.value for effect in half.effects if effect.of] == [5.0, 2.0]


def ran(at: Location, seen: int, work: LineWork = LineWork.OPERATIONS) -> TimedLine:
    return TimedLine(at, seen, 1.0, work=work)


def test_the_end_of_an_eager_steps_last_line_is_not_between_steps() -> None:
    """Trap: the last 10 ms of `optimizer.apply`, after the last operation that it runs."""
    places = TimedLine(MAKES, 40), TimedLine(LOGS, 10)
    lines = HostLines({Stage.HOST: (ran(MAKES, 30),), Stage.BETWEEN: (ran(MAKES, 10),)})
    assert isinstance(check(10.0, *places, lines=lines), Healthy)


def test_what_runs_only_between_eager_steps_is_named() -> None:
    places = TimedLine(MAKES, 40), TimedLine(LOGS, 10)
    between = ran(MAKES, 10), ran(LOGS, 10)
    lines = HostLines({Stage.HOST: (ran(MAKES, 30),), Stage.BETWEEN: between})
    finding = as_finding(check(10.0, *places, lines=lines))
    assert finding.remedies[0].at == LOGS
    assert finding.effects[0].of is not None
    assert finding.effects[0].of.value == pytest.approx(5.0)


@pytest.mark.parametrize("within", [ran(LOGS, 9), ran(LOGS, 30, LineWork.PYTHON)])
def test_a_line_is_the_steps_own_when_it_mostly_runs_operations_in_it(within: TimedLine) -> None:
    lines = HostLines({Stage.HOST: (within,), Stage.BETWEEN: (ran(LOGS, 10),)})
    assert isinstance(check(10.0, TimedLine(LOGS, 19), lines=lines), Finding)


def test_where_nothing_but_the_step_was_seen_no_work_is_between_steps() -> None:
    lines = HostLines({Stage.HOST: (ran(MAKES, 30),)})
    assert isinstance(check(10.0, TimedLine(MAKES, 30), lines=lines), Healthy)
    assert isinstance(check(10.0, TimedLine(LOGS, 30), lines=lines), Finding)
