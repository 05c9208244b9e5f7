"""Interval algebra over picosecond timestamps."""

from collections.abc import Iterable
from typing import Self

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


def pairs_of(spans: Iterable[tuple[int, int]]) -> Times:
    """Return (n, 2) starts and ends; (0, 2) where there is none, which NumPy alone makes one column."""
    return np.array([*spans], np.int64).reshape(-1, 2)


class Intervals:
    """Disjoint, sorted, half-open intervals ``[start, end)``, as two columns of n times."""

    __slots__ = ("ends_ps", "starts_ps")

    def __init__(self, spans: Iterable[tuple[int, int]] = ()) -> None:
        """Take spans that are disjoint and sorted already."""
        self.starts_ps, self.ends_ps = map(np.ascontiguousarray, pairs_of(spans).T)

    @classmethod
    def union(cls, spans: Iterable[tuple[int, int]]) -> Self:
        """Merge spans that touch or overlap; drop empty ones."""
        return cls.merged(*pairs_of(spans).T)

    @classmethod
    def merged(cls, starts_ps: Times, ends_ps: Times) -> Self:
        """Merge the spans of two columns, (n,) each, as ``union`` does."""
        some = starts_ps < ends_ps
        starts_ps, ends_ps = starts_ps[some], ends_ps[some]
        order = np.argsort(starts_ps, kind="stable")
        starts_ps, reached = starts_ps[order], np.maximum.accumulate(ends_ps[order])
        apart = np.flatnonzero(starts_ps[1:] > reached[:-1])
        first = np.concatenate(([0], apart + 1)) if len(starts_ps) else apart
        last = np.concatenate((apart, [len(starts_ps) - 1])) if len(starts_ps) else apart
        return cls._of(starts_ps[first], reached[last])

    @classmethod
    def any_of(cls, many: Iterable[Self]) -> Self:
        """Return the time that any of many covers."""
        some = [cls(), *(one for one in many if len(one))]
        starts, ends = ([getattr(one, name) for one in some] for name in ("starts_ps", "ends_ps"))
        return cls.merged(np.concatenate(starts), np.concatenate(ends))

    @classmethod
    def _of(cls, starts_ps: Times, ends_ps: Times) -> Self:
        made = cls.__new__(cls)
        made.starts_ps, made.ends_ps = starts_ps, ends_ps
        return made

    def __len__(self) -> int:
        return len(self.starts_ps)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Intervals) and self.spans == other.spans

    def __hash__(self) -> int:
        return hash(self.spans)

    def __repr__(self) -> str:
        return f"Intervals({self.spans})"

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The intervals as pairs; slow, so only for short ones."""
        return tuple(zip(self.starts_ps.tolist(), self.ends_ps.tolist(), strict=True))

    @property
    def bounds_ps(self) -> tuple[int, int]:
        """When the first begins and the last ends; (0, 0) where there is none."""
        return (int(self.starts_ps[0]), int(self.ends_ps[-1])) if self else (0, 0)

    def holds(self, times_ps: Times) -> NDArray[np.bool_]:
        """Return (m,) whether each of (m,) times lies in an interval."""
        if not self:
            return np.zeros(len(times_ps), bool)
        latest = self.starts_ps.searchsorted(times_ps, "right") - 1
        return (latest >= 0) & (times_ps < self.ends_ps[latest])

    def before(self, times_ps: Times) -> Times:
        """Return the time covered before each of (m,) times."""
        passed = np.append(0, (self.ends_ps - self.starts_ps).cumsum())
        after = self.starts_ps.searchsorted(times_ps, "right")
        cut = np.append(0, self.ends_ps)[after] - times_ps
        return passed[after] - np.where(after > 0, np.maximum(cut, 0), 0)

    def covered(self, starts_ps: Times, ends_ps: Times) -> Times:
        """Return the time covered from each of (m,) times to another; 0 where that is earlier."""
        return self.before(np.maximum(starts_ps, ends_ps)) - self.before(starts_ps)

    def __and__(self, other: Self) -> Self:
        """Return the time that both cover."""
        first = other.ends_ps.searchsorted(self.starts_ps, "right")
        counts = np.maximum(other.starts_ps.searchsorted(self.ends_ps, "left") - first, 0)
        own = np.repeat(np.arange(len(self)), counts)
        # The k-th pair of an interval is with the k-th of those that it meets.
        theirs = np.arange(len(own)) - np.repeat(counts.cumsum() - counts - first, counts)
        return self._of(
            np.maximum(self.starts_ps[own], other.starts_ps[theirs]),
            np.minimum(self.ends_ps[own], other.ends_ps[theirs]),
        )

    def __or__(self, other: Self) -> Self:
        """Return the time that either covers."""
        return self.any_of((self, other)) if self and other else self or other

    def __sub__(self, other: Self) -> Self:
        """Return the time that only the first covers."""
        if not self or not other:
            return self
        low = min(self.starts_ps[0], other.starts_ps[0])
        high = max(self.ends_ps[-1], other.ends_ps[-1])
        starts, ends = np.append(low, other.ends_ps), np.append(other.starts_ps, high)
        some = starts < ends
        return self & self._of(starts[some], ends[some])

    def within(self, start: int, end: int) -> Self:
        """Return the part between two times."""
        if start >= end:
            return type(self)()
        # Bisect for the spans that touch it: callers ask once per step, of many spans.
        first = self.ends_ps.searchsorted(start, "right")
        last = self.starts_ps.searchsorted(end, "left")
        return self._of(np.maximum(self.starts_ps[first:last], start), np.minimum(self.ends_ps[first:last], end))

    @property
    def total(self) -> int:
        """The time covered, in picoseconds."""
        return int((self.ends_ps - self.starts_ps).sum())
