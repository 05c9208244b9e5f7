"""What was seen in the unexplained time of a part: never more than that time, and only what ran in the part."""

import pytest

from tests import agreement
from tests.diagnose.test_accounts import account, chart_of, states
from tfdoctor.diagnose.summary.profile import FEW
from tfdoctor.diagnosis.step import Account, AccountState, Seen
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.step_time.host_lines import HostLines
from tfdoctor.facts.step_time.host_time import PartEvent, PartEvents
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.facts.step_time.timed_line import LineWork, TimedLine
from tfdoctor.terms.units import Unit, ms
from tfdoctor.terms.verdict import Bound, Effect, Location, PartTime, Stage

LINE, CALLBACK = Location("train.py", 3), Location("train.py", 21)


def places(found: Account) -> list[tuple[str, Location | None, object]]:
    return [(seen.what, seen.at, pytest.approx(seen.value)) for seen in found.seen]


def untimed(seen: int = FEW) -> StackSamples:
    return StackSamples((TimedLine(CALLBACK, seen, callback="Log.on_train_batch_end"),))


def test_each_part_shows_its_own_samples() -> None:
    timed = HostLines(
        {
            Stage.HOST: (TimedLine(LINE, 20, 2.0), TimedLine(LINE, 20, 2.0, work=LineWork.ENTERING)),
            Stage.BETWEEN: (TimedLine(CALLBACK, 9, 1.0, "Log.on_train_batch_end"),),
        }
    )
    host = places(account(chart_of(timed, untimed(), host=100.0)))
    assert host == [("Python", LINE, 0.5), ("entering a compiled function", LINE, 0.5)]
    between = places(account(chart_of(timed, untimed(), between=100.0)))
    assert between == [("Log.on_train_batch_end", CALLBACK, 1.0)]


@pytest.mark.parametrize("work", [LineWork.LOOPING, LineWork.ENTERING, LineWork.DISPATCHING])
def test_what_the_framework_does_for_a_call_names_no_loop_of_its_own(work: LineWork) -> None:
    """Trap: the loop that calls `train_on_batch`, or a compiled function, is the user's."""
    lines = HostLines({Stage.HOST: (TimedLine(LINE, 20, 2.0, work=work),)})
    ((what, at, _),) = places(account(chart_of(lines, untimed(), host=100.0)))
    assert at == LINE
    assert "loop" not in what


def test_samples_between_calls_say_nothing_of_the_host_part() -> None:
    """Trap: a callback runs between two calls, and the trace has no time of its samples."""
    events = PartEvents({Stage.HOST: (PartEvent("Execute", "python", 8.0),)})
    assert places(account(chart_of(untimed(), events, between=100.0)))[0][1:] == (CALLBACK, 1.0)
    assert places(account(chart_of(untimed(), events, host=100.0))) == [("Execute (thread python)", None, 8.0)]


@pytest.mark.parametrize(("seen", "shown"), [(FEW, 1), (FEW - 1, 0)])
def test_a_few_samples_give_no_share(seen: int, shown: int) -> None:
    assert len(account(chart_of(untimed(seen), between=100.0)).seen) == shown


def operations(**times: float) -> Operations:
    return Operations(tuple(OperationTime(name=name, type=name, ms=time) for name, time in times.items()))


def test_an_operation_that_a_change_cannot_shorten_is_not_named() -> None:
    """A convolution at the peak rate takes the time, though a finding mentions it."""
    effects = (
        Effect(Stage.DEVICE, 1.0, "Conv2D", ms(70.0), bound=Bound.AT_MOST),
        Effect(Stage.DEVICE, 0.0, "Relu", ms(10.0)),
    )
    given = operations(Conv2D=70.0, Relu=30.0)
    found = account(chart_of(given, device=100.0), states("hot", *effects))
    assert places(found) == [("Conv2D", None, 70.0), ("Relu", None, 20.0)]


@pytest.mark.parametrize("part", [Stage.DEVICE, Stage.HOST])
def test_the_seen_times_never_exceed_the_unexplained(part: Stage) -> None:
    """A finding names time without its operations; threads overlap."""
    named = states("odd", names=(PartTime(part, ms(60.0)),))
    threads = PartEvents({part: (PartEvent("a", "one", 90.0), PartEvent("b", "two", 90.0))})
    chart = chart_of(operations(Mul=60.0, AddV2=40.0), threads, **{str(part): 100.0})
    found = account(chart, named)
    assert found.unexplained_ms == pytest.approx(40.0)
    assert sum(seen.value for seen in found.seen) == pytest.approx(40.0)
    assert not list(agreement.unaccounted(chart, ()))


def test_times_beyond_a_part_are_noticed() -> None:
    seen = (Seen("Mul", 43.0, Unit.MILLISECONDS),)
    odd = Account(part="device", total_ms=100.0, state=AccountState.UNEXPLAINED, unexplained_ms=40.0, seen=seen)
    assert list(agreement.seen_beyond([odd]))
