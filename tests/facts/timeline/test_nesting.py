"""Which events lie in which: by columns as by a stack."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.facts.timeline import host_events as nesting

Events = list[tuple[int, int]]

SPANS = st.tuples(st.integers(0, 12), st.integers(0, 6)).map(lambda span: (span[0], sum(span)))

THREADS = st.lists(
    st.lists(SPANS, max_size=8).map(lambda spans: sorted(spans, key=lambda span: (span[0], -span[1]))), max_size=4
)
"""Events of threads, by start, outer before inner; they may overlap too."""


def by_stack(threads: Sequence[Events]) -> list[int]:
    """Walk each thread with a stack of events that have not ended."""
    around: list[int] = []
    for events in threads:
        first, stack = len(around), list[int]()
        for at, (start, _) in enumerate(events):
            while stack and events[stack[-1]][1] <= start:
                stack.pop()
            around.append(first + stack[-1] if stack else -1)
            stack.append(at)
    return around


def columns(threads: Sequence[Events]) -> tuple[nesting.Column, nesting.Column, list[int]]:
    flat = np.array([span for events in threads for span in events], np.int64).reshape(-1, 2)
    return flat[:, 0], flat[:, 1], [len(events) for events in threads]


@given(THREADS)
def test_the_event_around_each_is_that_of_a_stack(threads: list[Events]) -> None:
    assert nesting.enclosing(*columns(threads)).tolist() == by_stack(threads)


@given(THREADS, st.data())
def test_the_nearest_wanted_event_is_the_first_on_the_way_out(threads: list[Events], data: st.DataObject) -> None:
    around = by_stack(threads)
    wanted = data.draw(st.lists(st.booleans(), min_size=len(around), max_size=len(around)))
    expected = []
    for at in around:
        while at >= 0 and not wanted[at]:
            at = around[at]  # noqa: PLW2901 - the way out
        expected.append(at)
    found = nesting.nearest(np.array(around, np.int64), np.array(wanted, np.bool_))
    assert found.tolist() == expected


@given(
    st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), max_size=12),
    st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 40)), max_size=6),
)
def test_the_latest_before_is_that_of_a_search(rows: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    keys = np.array([key for key, _ in rows], np.int64)
    times = np.cumsum([1 + gap for _, gap in rows]).astype(np.int64)
    expected = [
        max((at for at in range(len(rows)) if keys[at] == key and times[at] < time), default=-1)
        for key, time in asked
    ]
    wanted = np.array(asked, np.int64).reshape(-1, 2)
    assert nesting.latest_before(keys, times, wanted[:, 0], wanted[:, 1]).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 3), SPANS), max_size=12))
def test_joined_spans_cover_what_the_spans_cover(spans: list[tuple[int, tuple[int, int]]]) -> None:
    groups = np.array([group for group, _ in spans], np.int64)
    starts = np.array([start for _, (start, _) in spans], np.int64)
    ends = np.array([end for _, (_, end) in spans], np.int64)
    found = list(zip(*(column.tolist() for column in nesting.joined(groups, starts, ends)), strict=True))
    covered = {(group, moment) for group, (start, end) in spans for moment in range(start, end)}
    assert {(group, moment) for group, start, end in found for moment in range(start, end)} == covered
    assert found == sorted(found)
    pairs = [(one, two) for one, two in pairwise(found) if one[0] == two[0]]
    assert [pair for pair in pairs if pair[0][2] >= pair[1][1]] == []
