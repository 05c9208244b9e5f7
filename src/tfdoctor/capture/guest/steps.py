"""Counting steps: next to nothing outside the window, one marker a call inside it."""

import collections
import sys
import time

NEVER = sys.maxsize
"""The step at which a resting source asks the window again."""

REMEMBERED = 1000
"""Untraced calls whose time is kept, for the report to say what profiling costs."""

OPEN_ENDED = frozenset(("repeated-call", "eager-gradient"))
"""Sources that see where a step begins and not where the loop ends: the last step has no end."""


class Source:
    """One loop that trains: what shows its steps, and how many there were."""

    def __init__(self, name, window, at=None):
        self.name = name
        self.window = window
        self.at = at  # the user's line, [path, line] or None
        self.seen = 0  # steps begun
        self.discarded = 0  # markers' numbers that turned out to be none: never used again
        self.calls = 0
        self.rounds = 0  # how often this loop was entered, where that can be seen
        self.end = None  # the step at which it will end, where it says so
        self.marks = True  # False: the framework sets markers itself, just before it calls us
        self.alarm = window.first_alarm()
        self.began, self.size = 0, 1  # when the last call began, 0 when it is traced, and its steps
        self.spans = collections.deque(
            maxlen=REMEMBERED
        )  # (ns, steps) from one untraced call to the next

    def begin(self, k):
        """A call of k steps begins; return its marker, or None outside the window."""
        number = self.seen
        self.count(k)
        if number < self.alarm:
            return None
        marker = self.window.arrive(self, number, k)
        if marker is not None:
            self.began = 0  # what is traced takes longer
        if self.window.leave:
            self.retract(None, k)
            self.window.depart()
        return marker

    def count(self, k):
        """Count a call of k steps, and take the time since the one before."""
        now = time.perf_counter_ns()
        if self.began:
            self.spans.append((now - self.began, self.size))
        self.seen += k
        self.calls += 1
        self.began, self.size = now, k

    def retract(self, marker, k):
        """The call that began last was no step: the data had ended."""
        self.seen -= k
        self.calls -= 1
        self.began = 0
        if marker is not None:
            self.window.retract(self.seen + self.discarded)
            self.discarded += k

    def summary(self):
        """Return what the manifest says of this candidate."""
        return {"source": self.name, "steps": self.seen, "calls": self.calls, "at": self.at}

    def untraced(self):
        """Return the usual time of a step outside the window, or None when there was none."""
        # The first call builds the graph.
        each = sorted(ns / k / 1e6 for ns, k in list(self.spans)[1:])
        if not each:
            return None
        return {"count": len(each), "median_ms": round(each[len(each) // 2], 4), "of": "steps"}
