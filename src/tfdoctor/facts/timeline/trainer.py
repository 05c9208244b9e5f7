"""Which threads are the trainer's, and when they wait for a batch."""

import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from tfdoctor.trace import Intervals, Line
from tfdoctor.trace.names import (
    EAGER_NEXT,
    EXECUTOR,
    FUNCTION_RUNS,
    INPUT_THREAD,
    JITTED,
    TRAINING_CALLS,
    WAIT,
    WAIT_OPERATION,
)


def trainers(lines: Iterable[Line]) -> list[Line]:
    """Return the threads of Python that start the training's functions; [] where none is seen to."""
    return [line for line in lines if _starts_training(line)]


def trainer_waits(lines: Iterable[Line]) -> Intervals:
    """Return when the trainer waits for its next batch.

    A thread of Python that asks for batches and starts no function, beside one that does, only fills
    a queue of the user's. Where no wait itself is recorded, the operation that waits tells of it.
    """
    threads = [line for line in lines if len(line)]
    training = trainers(threads)
    found = Intervals()
    for line in threads:
        asks = matching(line, EAGER_NEXT)
        if asks.spans and training and not any(line is one for one in training):
            continue
        found |= asks | matching(line, WAIT)
    return found if found.spans else _waiting_operations(threads)


def _waiting_operations(lines: list[Line]) -> Intervals:
    found = Intervals()
    for line in lines:
        if not line.name.startswith(INPUT_THREAD):
            found |= matching(line, WAIT_OPERATION)
    return found


def waits_before(lines: Iterable[Line], step: tuple[int, int]) -> Intervals:
    """Return when an execution that goes on as a step begins waited for the step's batch before it, in ps.

    A GPU's own step begins with its first work, behind the wait for the batch that it works on. An
    execution that begins to wait within the step waited for another step's batch before it.
    """
    threads = [line for line in lines if len(line)]
    begin, end = step
    running = {run for x in threads for run, _, to in _of_runs(x, EXECUTOR.__eq__) if to > begin}
    waits = [wait for line in threads for wait in _of_runs(line, WAIT.fullmatch)]
    running -= {run for run, start, _ in waits if begin <= start < end}
    return Intervals.union((start, min(to, begin)) for run, start, to in waits if run in running)


def _of_runs(line: Line, test: Callable[[str], object]) -> Iterator[tuple[int, int, int]]:
    """Yield the execution, the start and the end of the events that pass a test and tell their execution."""
    for at in np.flatnonzero(is_named(line, test)).tolist():
        if "id" in line.stats.get(at, {}):
            start = int(line.start_ps[at])
            yield int(line.stats[at]["id"]), start, start + int(line.duration_ps[at])


def _starts_training(line: Line) -> bool:
    if line.name.startswith(INPUT_THREAD):
        return False
    present = np.unique(line.kind)
    names = {line.types[kind].name for kind in present.tolist()}
    if names & {*FUNCTION_RUNS, *TRAINING_CALLS} or any(map(JITTED.fullmatch, names)):
        return True
    return any("_r" in stats for stats in line.stats.values())


def is_named(line: Line, test: Callable[[str], object]) -> NDArray[np.bool_]:
    """Return (n,) which events' names pass a test; each name is tested once."""
    found = np.zeros(len(line.types), bool)
    for kind in np.unique(line.kind).tolist():
        found[kind] = bool(test(line.types[kind].name))
    return found[line.kind]


def matching(line: Line, pattern: re.Pattern[str]) -> Intervals:
    """Return when any event of a line whose whole name matches lasted."""
    return spans_of(line, is_named(line, pattern.fullmatch))


def spans_of(line: Line, mask: NDArray[np.bool_]) -> Intervals:
    """Return when any of some events of a line lasted."""
    starts = line.start_ps[mask]
    return Intervals.union(
        zip(starts.tolist(), (starts + line.duration_ps[mask]).tolist(), strict=True)
    )
