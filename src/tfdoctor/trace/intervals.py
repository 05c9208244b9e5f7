"""Interval algebra over picosecond timestamps."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Self


@dataclass(frozen=True, slots=True)
class Intervals:
    """Disjoint, sorted, half-open intervals ``[start, end)``."""

    spans: tuple[tuple[int, int], ...] = ()

    @classmethod
    def union(cls, spans: Iterable[tuple[int, int]]) -> Self:
        """Merge spans that touch or overlap; drop empty ones."""
        merged: list[tuple[int, int]] = []
        for start, end in sorted((int(a), int(b)) for a, b in spans if a < b):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return cls(tuple(merged))

    def __and__(self, other: Self) -> Self:
        """Return the time that both cover, in one pass over the two sorted lists."""
        shared: list[tuple[int, int]] = []
        i = j = 0
        while i < len(self.spans) and j < len(other.spans):
            (a, b), (c, d) = self.spans[i], other.spans[j]
            if max(a, c) < min(b, d):
                shared.append((max(a, c), min(b, d)))
            i, j = (i + 1, j) if b <= d else (i, j + 1)
        return type(self)(tuple(shared))

    def __or__(self, other: Self) -> Self:
        """Return the time that either covers."""
        return type(self).union(self.spans + other.spans)

    def __sub__(self, other: Self) -> Self:
        """Return the time that only the first covers."""
        if not self.spans or not other.spans:
            return self
        low = min(self.spans[0][0], other.spans[0][0])
        high = max(self.spans[-1][1], other.spans[-1][1])
        edges = [low, *(edge for span in other.spans for edge in span), high]
        outside = tuple((a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b)
        return self & type(self)(outside)

    def within(self, start: int, end: int) -> Self:
        """Return the part between two times."""
        if start >= end:
            return type(self)()
        # Bisect for the spans that touch it: callers ask once per step, of many spans.
        first = bisect_right(self.spans, start, key=itemgetter(1))
        last = bisect_left(self.spans, end, key=itemgetter(0))
        touching = self.spans[first:last]
        return type(self)(tuple((max(a, start), min(b, end)) for a, b in touching))

    def gaps(self) -> Self:
        """Return the intervals between the spans."""
        return type(self)(tuple((a, b) for (_, a), (b, _) in pairwise(self.spans)))

    @property
    def total(self) -> int:
        """The time covered, in picoseconds."""
        return sum(end - start for start, end in self.spans)
