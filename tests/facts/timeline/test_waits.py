"""When the trainer waits for input: in its requests, and at the end of an iterator that is still at work."""

import pytest

from tests.builders import PS, line, trace
from tfdoctor.facts.timeline.host_events import trainer_waits

MADE = ("EagerLocalExecute: MakeIterator", 0.0, 0.2)
RUN = ("FunctionRun", 0.3, 0.9)


def waited(*events: tuple[str, float, float]) -> float:
    return trainer_waits(trace([line("python", *events)]).host_lines).total / PS


@pytest.mark.parametrize(("until", "ms"), [(1.9, 0.0), (2.0, 1.0), (301.0, 300.0)])
def test_the_end_of_an_iterator_is_a_wait_if_it_takes_long(until: float, ms: float) -> None:
    assert waited(MADE, RUN, ("TFE_DeleteTensorHandle", 1.0, until)) == pytest.approx(ms)


def test_a_thread_that_makes_no_iterator_gives_up_something_else() -> None:
    assert not waited(RUN, ("TFE_DeleteTensorHandle", 1.0, 301.0))
