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


ROUNDS = 2
"""How often a call must have come before it is taken for one that recurs."""

TAKING_TURNS = OPEN_ENDED | {"keras-train-on-batch", "session-run"}
"""Sources that are single calls: several of them may make up one round of the user's loop."""


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
        # (ns, steps) from one untraced call to the next:
        self.spans = collections.deque(maxlen=REMEMBERED)
        self.traced, self.under = collections.deque(maxlen=REMEMBERED), False
        self.outer = None  # the source whose rounds seem to hold several calls of this one
        self.outer_seen = 0

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

    def called(self, *, traced):
        """Count a call whose steps are all inside it; `traced` says whether the profiler runs.

        What calls take under the profiler and otherwise says what it costs, where no step can.
        """
        now = time.perf_counter_ns()
        if self.began and traced == self.under:  # else the profiler began or ended meanwhile
            (self.traced if traced else self.spans).append((now - self.began, 1))
        self.calls += 1
        self.began, self.under = now, traced

    def retract(self, marker, k):
        """The call that began last was no step: the data had ended."""
        self.seen -= k
        self.calls -= 1
        self.began = 0
        if marker is not None:
            self.window.retract(self.seen + self.discarded)
            self.discarded += k

    def yields_to(self, sources):
        """Say whether to wait, since these calls seem to be inner ones: a critic's, five a generator's.

        The source that goes round least often is asked for its steps first. It must go on doing so.
        """
        if self.name not in TAKING_TURNS:
            return False
        others = [each for each in sources if each.name in TAKING_TURNS and each.seen >= ROUNDS]
        outer = min(others, key=lambda each: each.seen, default=self)
        if outer.seen * 2 > self.seen or (outer, outer.seen) == (self.outer, self.outer_seen):
            self.outer = None
            return False
        self.outer, self.outer_seen = outer, outer.seen
        self.alarm = self.seen + 2 * -(-self.seen // outer.seen)
        return True

    def summary(self):
        """Return what the manifest says of this candidate."""
        return {"source": self.name, "steps": self.seen, "calls": self.calls, "at": self.at}

    def untraced(self):
        """Return the usual time of a step outside the window, or None when there was none."""
        usual = _median_ms(list(self.spans)[1:])  # the first call builds the graph
        if usual is None or not (self.seen or self.traced):
            return None
        found = {"count": len(self.spans) - 1, "median_ms": usual, "of": "steps"}
        return (
            {**found, "of": "calls", "traced_ms": _median_ms(self.traced)} if self.traced else found
        )


def _median_ms(spans):
    each = sorted(ns / k / 1e6 for ns, k in spans)
    return round(each[len(each) // 2], 4) if each else None
