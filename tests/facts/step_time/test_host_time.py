"""What the host does while no device works: the loop's body, and the events of each part."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import Row, chart, line, marker, trace
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.host_lines import SlowCalls
from tfdoctor.facts.step_time.host_time import LoopBody, PartEvents, SingleOperations, _nested, _walked
from tfdoctor.facts.step_time.python_work import EagerWork
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.facts.step_time.timed_line import SlowCall, TimedLine
from tfdoctor.rules.python_in_loop import LoopLines
from tfdoctor.terms.verdict import Location, Stage
from tfdoctor.trace import Line

LOG, LOAD, LOOP = (Location("train.py", n) for n in (36, 33, 31))
GRAPH = EagerWork(2.0, 0.1, 8.0, at=LOOP)


def over_a_dataset(n: int, *, call: tuple[float, float] = (1.0, 5.0)) -> Iterable[Row]:
    """A step of 10 ms whose call takes 4; the mark lasts until the next batch."""
    yield marker(n, 10.0 * n, 10.0 * n + 10)
    yield ("train_step", 10.0 * n + call[0], 10.0 * n + call[1], {"tf_function_call": "notTraced-nonXla"})
    yield ("FunctionRun", 10.0 * n + call[0], 10.0 * n + call[1], {"id": n + 1})


def test_the_body_is_what_no_function_takes() -> None:
    rows = [row for n in range(6) for row in over_a_dataset(n)]
    body = chart(trace(host=[line("python", *rows)])).fact(LoopBody)
    assert body.host_ms == pytest.approx(6.0)
    assert body.between_ms == pytest.approx(0.0, abs=0.01)


def test_a_step_without_a_function_has_no_body() -> None:
    rows = [marker(n, 10.0 * n, 10.0 * n + 9) for n in range(6)]
    with pytest.raises(Unavailable, match=r"tf\.function"):
        chart(trace(host=[line("python", *rows)])).fact(LoopBody)


def test_the_body_is_divided_by_the_samples() -> None:
    """Left out: the lines of the batch, of the loop, and of nobody's; their samples keep their time."""
    samples = StackSamples(
        (TimedLine(LOG, 6, makes=False), TimedLine(LOAD, 2, makes=True), TimedLine(LOOP, 1), TimedLine(None, 1))
    )
    found = LoopLines.measure(samples, LoopBody(5.0, 3.0), GRAPH, None)
    assert [(one.at, one.makes) for one in found.lines] == [(LOG, False)]
    assert found.seen == 6
    assert sum(one.ms for one in found.lines) == pytest.approx(3.0)


def test_a_line_of_unknown_use_is_not_aside() -> None:
    found = LoopLines.measure(StackSamples((TimedLine(LOG, 6),)), LoopBody(5.0, 0.0), GRAPH, None)
    assert [one.makes for one in found.lines] == [None]


def test_slow_calls_are_left_to_their_rule() -> None:
    slow = SlowCalls((TimedLine.slow(LOG, SlowCall.SAVE, 6, range(6), {Stage.HOST: 5.0}),), 6)
    samples = StackSamples((TimedLine(LOG, 6, makes=False),))
    assert LoopLines.measure(samples, LoopBody(5.0, 0.0), GRAPH, slow).lines == ()


def test_without_samples_no_line_is_blamed() -> None:
    found = LoopLines.measure(StackSamples(), LoopBody(5.0, 0.0), GRAPH, None)
    assert (found.lines, found.sample_count, found.body_ms) == ((), 0, 5.0)


def test_a_step_that_runs_operation_by_operation_has_no_separate_loop() -> None:
    samples = StackSamples((TimedLine(LOG, 6),))
    with pytest.raises(Unavailable, match="operation by operation"):
        LoopLines.measure(samples, LoopBody(5.0, 0.0), EagerWork(500.0, 9.0, 0.1), None)


def step(n: int) -> list[Row]:
    """A function of 4 ms, then an operation of 1 ms in the call and one of 2 ms after it."""
    at = 10.0 * n
    return [
        marker(n, at, at + 6),
        ("train_step", at + 0.5, at + 4.5, {"tf_function_call": "notTraced-nonXla"}),
        ("EagerLocalExecute: Mul", at + 4.6, at + 5.8, {}),
        ("mul:Mul", at + 4.7, at + 5.7, {}),
        ("EagerLocalExecute: RangeDataset", at + 7, at + 9.2, {}),
        ("RangeDataset:RangeDataset", at + 7.1, at + 9.1, {}),
    ]


def test_operations_are_divided_by_the_end_of_the_call() -> None:
    rows = [row for n in range(6) for row in step(n)]
    found = chart(trace(host=[line("python", *rows)])).fact(SingleOperations)
    assert found.inside_ms == pytest.approx(1.0, rel=0.1)
    assert found.between_ms == pytest.approx(2.0, rel=0.15)


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


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 12)), max_size=12),
    st.tuples(st.integers(-1, 8), st.integers(9, 22)),
)
def test_the_innermost_events_are_those_of_a_walk_from_begin_to_end(
    events: list[tuple[int, int]], window: tuple[int, int]
) -> None:
    """Of a walk with a stack, whether events lie in each other or overlap otherwise."""
    events = sorted(events, key=lambda event: (event[0], -event[1]))
    starts, lengths = np.array(events, np.int64).reshape(-1, 2).T
    thread = Line("python", 1, (), np.arange(len(events), dtype=np.int32), starts, lengths)
    walked, nested = _walked(thread, *window), _nested(thread, *window)
    crossing = [1 for (a, n), (b, m) in combinations(events, 2) if a < b < a + n < b + m]
    assert nested or crossing
    kinds, starts, ends, inner, around = nested or walked
    passed = np.bincount(kinds, ends - starts, 12)
    passed -= np.bincount(kinds[around], (ends - starts)[inner], 12)
    kinds, starts, ends, *_ = walked
    assert passed.tolist() == np.bincount(kinds, np.maximum(ends - starts, 0), 12).tolist()


def test_a_trace_without_a_host_has_none() -> None:
    with pytest.raises(Unavailable):
        chart(trace()).fact(PartEvents)
