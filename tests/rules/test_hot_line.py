"""hot-line: the lines that take the host's time, where no other finding explains it."""

import pytest

from tests.rules.kit import *
from tfdoctor.rules.execution import hot_line

HISTOGRAM = TimedLine(Location("train.py", 36), 20, 4.3, calls={"numpy.histogram": 16, "": 4})


def example(  # noqa: PLR0913 - each says of a line that it is another finding's
    *lines: TimedLine, step: Breakdown | None = None, left: Mapping[str, float] | None = None,
    between: tuple[TimedLine, ...] = (), subjects: frozenset[str] = frozenset(), around: Location | None = None,
    model: Location | None = None, makers: tuple[TimedLine, ...] = (),
) -> Verdict:  # fmt: skip
    """A line calls numpy.histogram in each step, for 4.3 of 11 ms."""
    parts: Mapping[str, float] = {Stage.HOST: 6.6} if left is None else left
    seen = {Stage.HOST: lines or (() if between else (HISTOGRAM,)), Stage.BETWEEN: between}
    whole = step or Breakdown.of(host=6.6, device=4.4)
    outer = frozenset((around,) if around else ())
    samples = StackSamples(makers, new_arguments=((64, 16),), models_at=frozenset((model,) if model else ()))
    return hot_line.check(Unexplained(parts, subjects), whole, HostLines(seen, outer), samples)


sick = example


def healthy() -> Verdict:
    """Other findings explain the host's time."""
    return example(left={})


LINE, OTHER = Location("train.py", 36), Location("train.py", 37)


def check(*lines: TimedLine, host: float = 8.0, **more: Any) -> Verdict:
    """Judge lines of steps of 20 ms, 8 of them the host's."""
    left: dict[str, float] = {Stage.HOST: host} if host else {}
    if more.get("between"):
        left[Stage.BETWEEN] = 4.0
    step = Breakdown.of(host=8.0, between=4.0, device=8.0)
    return example(*lines, step=step, left=left, **more)


def about(*work: StepWork) -> dict[str, Any]:
    """Another finding is about this work."""
    return {"subjects": frozenset(work)}


def seen(work: LineWork, time_ms: float = 4.0) -> TimedLine:
    return TimedLine(LINE, 20, time_ms, work=work)


PREDICTS = TimedLine(LINE, 20, 8.0, calls={"keras.src.trainer.Trainer.predict": 20})
READS = (seen(LineWork.READING),)
ENTERS = (seen(LineWork.ENTERING),)
PYTHON = (TimedLine(LINE, 10, 4.0),)

test_time_that_no_other_finding_explains_decides = each_is(
    (check(TimedLine(LINE, 10, 1.0)), Finding),
    (check(TimedLine(LINE, 50, 0.99)), Healthy),
    (check(TimedLine(LINE, 9, 1.0)), NotApplicable),
    (check(PREDICTS), Finding),
    (check(PREDICTS, **about(StepWork.SLOW_CALLS)), Healthy),
    # Trap: on a busy machine, starting the function of fit takes a tenth of a step, traced
    (check(seen(LineWork.ENTERING, 8.0)), Healthy),
    (check(TimedLine(None, 20, 8.0)), Healthy),  # Python outside of the user's lines
    (check(TimedLine(None, 20, 8.0, "Log.on_batch_end")), Finding),
    (check(TimedLine(LINE, 20, 8.0), host=0.0), Healthy),  # explained time
    (check(seen(LineWork.DISPATCHING, 8.0)), NotApplicable),  # a line that waits for the function's operations
    (check(between=READS), Finding),
    (check(between=READS, **about(StepWork.READING_RESULTS)), Healthy),
    (check(between=ENTERS), Finding),
    (check(between=ENTERS, **about(StepWork.STEP_ENTRY)), Healthy),
    (check(between=PYTHON), Finding),
    (check(between=PYTHON, **about(StepWork.BETWEEN_CALLS)), NotApplicable),
)


@pytest.mark.parametrize(("at", "kind"), [(LINE, Healthy), (OTHER, Finding)])
def test_a_line_that_makes_batches_is_not_repeated(at: Location, kind: type) -> None:
    """Trap: where a model decides the data, python-input is about the first of these lines alone."""
    makers = tuple(TimedLine(one, seen, makes=True) for one, seen in ((LINE, 9), (OTHER, 5)))
    subjects = frozenset({StepWork.MAKING_BATCHES})
    model = Location("train.py", 9)
    assert isinstance(check(TimedLine(at, 20, 8.0), makers=makers, subjects=subjects, model=model), kind)
    assert isinstance(check(TimedLine(at, 20, 8.0), makers=makers), Finding)


@pytest.mark.parametrize("calls", ["numpy.random.permutation", "random.Random.sample", "tensorflow.random.uniform"])
def test_a_random_draw_is_not_made_once(calls: str) -> None:
    finding = as_finding(check(TimedLine(LINE, 20, 8.0, calls={calls: 20})))
    assert [one.action for one in finding.remedies] == ["Draw the random numbers of many steps at once"]


def test_what_keras_does_for_each_step_of_fit_is_no_line_of_the_user_s() -> None:
    """Trap: fit's own iterator takes 15 % of short steps, and its line has nothing to change."""
    healthy = as_healthy(check(TimedLine(LINE, 20, 3.0, work=LineWork.LOOPING), TimedLine(OTHER, 2, 0.3)))
    assert [*figures(healthy).values()] == [22.0, 3.0]


def test_starting_functions_between_calls_is_no_other_finding_s() -> None:
    """between-steps leaves out the calls of compiled functions: nothing else names this line."""
    starts = TimedLine(LINE, 10, 3.5, work=LineWork.ENTERING)
    subjects = frozenset((StepWork.BETWEEN_CALLS,))
    finding = as_finding(check(between=(starts, TimedLine(OTHER, 10, 2.0)), subjects=subjects))
    assert [remedy.at for remedy in finding.remedies] == [LINE]
    assert isinstance(check(between=(starts,), model=LINE), Healthy)  # what it decides comes next


def test_no_more_is_promised_than_is_unexplained() -> None:
    finding = as_finding(check(TimedLine(LINE, 20, 5.0), TimedLine(OTHER, 12, 3.0), host=6.0))
    times = [effect.of.value for effect in finding.effects if effect.of]
    assert times == pytest.approx([5.0, 1.0])
    assert {effect.bound for effect in finding.effects} == {Bound.AT_MOST}
    assert len({effect.subject for effect in finding.effects}) == 2


def test_lines_of_one_function_are_named_by_its_call_and_those_of_a_callback_by_it() -> None:
    lines = [TimedLine(Location("train.py", n), 4, 0.9, calls={"": 4}, callers={LINE: 4}) for n in (4, 5, 6)]
    finding = as_finding(check(*lines))
    assert finding.remedies[0].at == LINE
    assert "2.70 ms" in finding.summary
    assert isinstance(check(*lines, around=LINE), Healthy)  # it calls the function of the loop
    finding = as_finding(check(between=(TimedLine(LINE, 10, 4.0, "Log.on_batch_end"),)))
    assert "Log.on_batch_end" in finding.summary
    assert "Log.on_batch_end" in finding.remedies[0].action
