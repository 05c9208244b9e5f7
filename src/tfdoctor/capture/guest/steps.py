"""Counting steps: next to nothing outside the window, one marker a call inside it."""

import collections
import sys

NEVER = sys.maxsize
"""The step at which a resting source asks the window again."""

REMEMBERED = 1000
"""Untraced calls whose time is kept, for the report to say what profiling costs."""


class Source:
    """One way to see training steps, and how many it saw."""

    def __init__(self, name, window):
        self.name = name
        self.window = window
        self.seen = 0  # steps begun
        self.discarded = 0  # markers' numbers that turned out to be none: never used again
        self.calls = 0
        self.alarm = NEVER if window.resting() else window.plan["warmup"]
        self.spans = collections.deque(maxlen=REMEMBERED)  # (ns, steps) of untraced calls

    def begin(self, k):
        """A call of k steps begins; return its marker, or None outside the window."""
        number = self.seen
        self.seen = number + k
        self.calls += 1
        if number < self.alarm:
            return None
        marker = self.window.arrive(self, number, k)
        if self.window.leave:
            self.retract(None, k)
            self.window.depart()
        return marker

    def retract(self, marker, k):
        """The call that began last was no step: the data had ended."""
        self.seen -= k
        self.calls -= 1
        if marker is not None:
            self.window.calls -= 1
            self.window.discarded.append(self.seen + self.discarded)
            self.discarded += k

    def summary(self):
        """Return what the manifest says of this candidate."""
        return {"source": self.name, "steps": self.seen, "calls": self.calls}

    def untraced(self):
        """Return the usual time of a step outside the window, or None when there was none."""
        # The first call builds the graph.
        each = sorted(ns / k / 1e6 for ns, k in list(self.spans)[1:])
        if not each:
            return None
        return {"count": len(each), "median_ms": round(each[len(each) // 2], 4)}
