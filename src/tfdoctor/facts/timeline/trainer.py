"""Which threads are the trainer's, and when they wait for a batch."""

import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from tfdoctor.trace import Intervals, Line
from tfdoctor.trace.names import (
    CAPTURED_FUNCTION,
    EAGER_NEXT,
    EXECUTOR,
    FUNCTION_RUNS,
    INPUT_THREAD,
    JITTED,
    MAKE_ITERATOR,
    RELEASE,
    TRAINING_CALLS,
    WAIT,
    WAIT_OPERATION,
)

NEVER = Intervals()
# One millisecond: giving up a tensor takes microseconds, and an iterator as long as its threads are at work.
RELEASE_PS = 1_000_000_000


def trainers(lines: Iterable[Line]) -> list[Line]:
    """Return the Python threads that start the training's functions; [] when none does in the trace."""
    tests = (FUNCTION_RUNS.__contains__, TRAINING_CALLS.__contains__, JITTED.fullmatch)
    return [
        line
        for line in lines
        if not line.name.startswith(INPUT_THREAD)
        and (any(is_named(line, test).any() for test in tests) or len(line.stats.having("_r")))
    ]


def trainer_waits(lines: Iterable[Line]) -> Intervals:
    """Return when the trainer waits for its next batch.

    A Python thread that requests batches but starts no function, while another thread does, only fills
    a queue of the user's. Where no wait is recorded, the operation that waits stands in for it.
    """
    threads = [line for line in lines if len(line)]
    training, waits = trainers(threads), []
    for line in threads:
        asks = matching(line, EAGER_NEXT)
        if asks and training and not any(line is trainer for trainer in training):
            continue
        waits += [asks, matching(line, WAIT)]
        if matching(line, MAKE_ITERATOR):  # the end of one waits for its threads, which still make an element
            waits.append(spans_of(line, is_named(line, RELEASE.fullmatch) & (line.duration_ps >= RELEASE_PS)))
    return Intervals.any_of(waits) or Intervals.any_of(
        matching(line, WAIT_OPERATION) for line in threads if not line.name.startswith(INPUT_THREAD)
    )


def waits_before(lines: Iterable[Line], step: tuple[int, int]) -> Intervals:
    """Return when an execution that is under way as a step begins waited for the step's batch, in ps.

    A GPU's step begins with its first work, after the wait for its batch. An execution that also
    waits within the step had waited for an earlier step's batch before, so it is left out.
    """
    threads = [line for line in lines if len(line)]
    begin, end = step
    running = {run for line in threads for run, _, end_ps in _of_runs(line, EXECUTOR.__eq__) if end_ps > begin}
    waits = [wait for line in threads for wait in _of_runs(line, WAIT.fullmatch)]
    running -= {run for run, start, _ in waits if begin <= start < end}
    return Intervals.union((start, min(end_ps, begin)) for run, start, end_ps in waits if run in running)


def _of_runs(line: Line, test: Callable[[str], object]) -> Iterator[tuple[int, int, int]]:
    """Yield (execution, start, end) of the events whose name passes a test and that have an execution id."""
    events, runs = line.stats.ids("id")
    named = is_named(line, test)[events]
    starts = line.start_ps[events[named]]
    ends = starts + line.duration_ps[events[named]]
    yield from zip(runs[named].tolist(), starts.tolist(), ends.tolist(), strict=True)


def present(line: Line) -> list[int]:
    """Return the types that the events of a line have, in order."""
    kinds: list[int] = np.flatnonzero(np.bincount(line.kind)).tolist()
    return kinds


def is_named(line: Line, test: Callable[[str], object]) -> NDArray[np.bool_]:
    """Return (n,) whether an event's name passes a test, which is no function made for this call."""
    return line.table.named(test)[line.kind]


def matching(line: Line, pattern: re.Pattern[str]) -> Intervals:
    """Return when the events of a line whose whole name matches lasted."""
    return spans_of(line, is_named(line, pattern.fullmatch))


def spans_of(line: Line, mask: NDArray[np.bool_]) -> Intervals:
    """Return when the selected events of a line lasted."""
    if not mask.any():
        return NEVER
    starts = line.start_ps[mask]
    return Intervals.merged(starts, starts + line.duration_ps[mask])


def is_captured(name: str) -> bool:
    """Say whether tf.data runs a function in the events of a name."""
    return name.startswith(CAPTURED_FUNCTION)
