"""Which operations of the host train, in which execution of which graph, and in which of its loops.

TensorFlow stops recording an operation that proves cheap after some dozen executions: a graph that has
run for a while no longer shows conditions, counters and the updates of small weights.
"""

from dataclasses import dataclass
from enum import IntFlag
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.timeline.host_events import executors
from tfdoctor.trace import EventType, Trace
from tfdoctor.trace.names import ASSIGN, FRAME, GRADIENT, UPDATE, XLA_RUN

DEPTH = 8  # How many executors may nest on a thread: a loop's body may run functions


class TrainingRole(IntFlag):
    """What an operation does for training."""

    GRADIENT = 1
    UPDATE = 2  # by an optimizer, certainly
    ASSIGN = 4  # to a weight, a metric, a counter or an accumulated gradient
    CONDITION = 8  # of a loop: it runs once before each iteration, and once more at the end
    PLAIN = 16  # anything else


TRAINS = TrainingRole.GRADIENT | TrainingRole.UPDATE | TrainingRole.ASSIGN
WORKS = TRAINS | TrainingRole.PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class TrainingWork:
    """m operations of the host, by their start.

    ``role`` and ``frame`` go by kind: a frame is the loop that an operation is in, by its name
    ("while", "while/body/_1/while/while"), "" outside of loops.
    """

    kind: NDArray[np.int32]  # (m,)
    start_ps: NDArray[np.int64]  # (m,)
    run: NDArray[np.uint64]  # (m,) the execution's id, 0 unknown
    role: NDArray[np.int32]  # (number of kinds,)
    frame: tuple[str, ...]  # (number of kinds,)

    @classmethod
    def gather(cls, trace: Trace, *, compiled: bool = False) -> Self:
        """Collect them from all threads; ``compiled`` takes programs of XLA for training."""
        types = trace.host.types if trace.host else ()
        labels = [_label(kind, compiled=compiled) for kind in types]
        role = np.array([role for role, _ in labels], np.int32)
        kinds, starts, runs = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
        for line in trace.host_lines:
            if len(line):
                indices = np.flatnonzero(role[line.kind])
                begins, ends, ids = executors(line)
                held = covering(begins, ends, line.start_ps[indices])  # -1 for none: the last
                kinds.append(line.kind[indices])
                starts.append(line.start_ps[indices])
                runs.append(np.append(ids, np.uint64(0))[held])
        start = np.concatenate(starts)
        order = np.argsort(start, kind="stable")
        kind, run = np.concatenate(kinds)[order], np.concatenate(runs)[order]
        return cls(kind, start[order], run, role, tuple(frame for _, frame in labels))

    def having(self, role: TrainingRole, frame: str | None = None) -> NDArray[np.bool_]:
        """Return (m,) whether an operation has one of these roles, in exactly this frame."""
        kinds = (self.role & role) != 0
        if frame is not None:
            kinds &= np.array([of_kind == frame for of_kind in self.frame], dtype=bool)
        return np.asarray(kinds[self.kind], np.bool_)


def _label(kind: EventType, *, compiled: bool) -> tuple[int, str]:
    """Return the role of an event's kind, 0 for none, and its frame."""
    if compiled and XLA_RUN.fullmatch(kind.name):
        return TrainingRole.GRADIENT | TrainingRole.UPDATE, ""
    name, colon, ending = kind.name.rpartition(":")
    if not colon or not name or name.endswith(":") or ending != kind.display_name:
        return 0, ""
    loops = list(FRAME.finditer(name))  # the innermost is the last; in its body or its condition
    frame = name[: loops[-1].start()] if loops else ""
    if loops and loops[-1][1] == "cond":
        return TrainingRole.CONDITION, frame
    role = TrainingRole.PLAIN
    if GRADIENT.search(name) or GRADIENT.search(ending):
        role |= TrainingRole.GRADIENT
    if UPDATE.fullmatch(ending):
        role |= TrainingRole.UPDATE
    elif ASSIGN.fullmatch(ending):
        role |= TrainingRole.ASSIGN
    return int(role), frame


def covering(starts: NDArray[np.int64], ends: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return (n,) the last of the spans, sorted by start, that contains each time; -1 for none."""
    latest = np.searchsorted(starts, times, side="right") - 1
    covers = np.full(len(times), -1, np.intp)
    for _ in range(DEPTH if len(starts) else 0):
        holds = (covers < 0) & (latest >= 0) & (times <= ends[np.maximum(latest, 0)])
        covers[holds] = latest[holds]
        latest -= 1
    return covers
