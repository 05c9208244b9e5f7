"""Intervals obey the laws of sets of instants."""

from tests.kit import *
from tfdoctor.trace.intervals import Intervals

SPANS = st.lists(st.tuples(st.integers(-20, 40), st.integers(-20, 40)), max_size=8)
INTERVALS = SPANS.map(Intervals.union)


def instants(intervals: Intervals) -> set[int]:
    return {at for start, end in intervals.spans for at in range(start, end)}


@given(SPANS)
def test_a_union_covers_what_its_spans_cover(spans: list[tuple[int, int]]) -> None:
    expected = {at for start, end in spans for at in range(start, end)}
    assert instants(Intervals.union(spans)) == expected


@given(INTERVALS)
def test_spans_are_sorted_apart_and_not_empty(intervals: Intervals) -> None:
    edges = [edge for span in intervals.spans for edge in span]
    assert edges == sorted(set(edges))


@given(INTERVALS, INTERVALS)
def test_and_or_minus_are_those_of_sets(intervals: Intervals, other: Intervals) -> None:
    assert instants(intervals & other) == instants(intervals) & instants(other)
    assert instants(intervals | other) == instants(intervals) | instants(other)
    assert instants(intervals - other) == instants(intervals) - instants(other)


@given(INTERVALS, INTERVALS)
def test_lengths_add_up(intervals: Intervals, other: Intervals) -> None:
    assert (intervals & other).total + (intervals - other).total == intervals.total
    assert (intervals | other).total == intervals.total + other.total - (intervals & other).total


@given(INTERVALS, INTERVALS, INTERVALS)
def test_and_distributes_over_or(a: Intervals, b: Intervals, c: Intervals) -> None:
    assert (a & (b | c)).total == ((a & b) | (a & c)).total


@given(INTERVALS, st.integers(-25, 45), st.integers(-25, 45))
def test_within_cuts_to_a_window(intervals: Intervals, start: int, end: int) -> None:
    assert instants(intervals.within(start, end)) == instants(intervals) & set(range(start, end))


@given(INTERVALS, st.lists(st.integers(-25, 45)))
def test_before_is_what_is_covered_until_then(intervals: Intervals, times: list[int]) -> None:
    expected = [intervals.within(-30, time).total for time in times]
    assert intervals.before(np.array(times, np.int64)).tolist() == expected


@given(INTERVALS, st.lists(st.integers(-25, 45)))
def test_times_lie_in_an_interval_or_in_none(intervals: Intervals, times: list[int]) -> None:
    expected = [time in instants(intervals) for time in times]
    assert intervals.holds(np.array(times, np.int64)).tolist() == expected
