"""The events of the host's threads in the parts of a step."""

import pytest

from tests.builders import chart, line, marker, trace
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.host_time import PartEvents
from tfdoctor.terms.verdict import Stage


def test_the_innermost_event_gets_the_time_of_its_part() -> None:
    """Each call of 10 ms is 2 ms of conversion before the marker, and 6 ms in it of which 5 are in a product."""
    rows = [
        row
        for n in range(6)
        for row in (
            ("step: 7", 10.0 * n, 10.0 * n + 9),
            ("tf.constant", 10.0 * n, 10.0 * n + 2),
            marker(n, 10.0 * n + 2, 10.0 * n + 8),
            ("A::B: c", 10.0 * n + 3, 10.0 * n + 8),
        )
    ]
    facts = chart(trace(host=[line("python/1", *rows)]))
    found, breakdown = facts.fact(PartEvents), facts.fact(Breakdown)
    host = {event.name: event.ms for event in found.by_part[Stage.HOST]}
    between = {event.name: event.ms for event in found.by_part[Stage.BETWEEN]}
    assert host["A::B"] == pytest.approx(5.0, rel=0.2)
    assert between["tf.constant"] == pytest.approx(2.0, rel=0.2)
    assert between["step"] == pytest.approx(1.0, rel=0.2)
    assert sum(host.values()) <= breakdown[Stage.HOST] + 1e-6
    assert {event.thread for event in found.by_part[Stage.HOST]} == {"python"}


def test_the_innermost_event_is_also_found_after_an_inner_one_ends() -> None:
    rows = [
        row
        for n in range(6)
        for row in (
            marker(n, 10.0 * n, 10.0 * n + 9),
            ("outer", 10.0 * n + 1, 10.0 * n + 8),
            ("inner", 10.0 * n + 2, 10.0 * n + 3),
            ("inner", 10.0 * n + 5, 10.0 * n + 6),
        )
    ]
    found = chart(trace(host=[line("python", *rows)])).fact(PartEvents)
    host = {event.name: event.ms for event in found.by_part[Stage.HOST]}
    assert host["outer"] == pytest.approx(5.0, rel=0.2)
    assert host["inner"] == pytest.approx(2.0, rel=0.2)


def test_a_trace_without_a_host_has_none() -> None:
    with pytest.raises(Unavailable):
        chart(trace()).fact(PartEvents)
