"""Events of the host's threads: operations, executors, which threads are the trainer's, and when they wait."""

from functools import lru_cache

from tfdoctor.facts.kit import *
from tfdoctor.trace.names import (
    CAPTURED_FUNCTION,
    EAGER_NEXT,
    EAGER_OPERATION,
    EXECUTOR,
    FUNCTION_RUNS,
    INPUT_THREAD,
    JITTED,
    MAKE_ITERATOR,
    RELEASE,
    TRAINING_CALLS,
    WAIT,
    WAIT_OPERATION,
    XLA_ON_CPU,
)

UNNAMED = "compiled or unnamed"  # The type given to work whose operation the trace does not name
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
    return line.types.passing(test, named=True)[line.kind]


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


def select(line: Line, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Line:
    """Return a line with the events that a mask or positions select, without their stats."""
    columns = (line.kind[chosen], line.start_ps[chosen], line.duration_ps[chosen])
    return Line(line.name, line.id, line.types, *columns)


def operation_label(kind: EventType) -> tuple[str, str, str] | None:
    """Return (name, type, what ran) of an operation's event, or None for any other event."""
    return _label(kind.name, kind.display_name)


@lru_cache(maxsize=65536)  # of a trace with thousands of threads, each has the same types
def _label(called: str, display_name: str) -> tuple[str, str, str] | None:
    if XLA_ON_CPU.fullmatch(called):
        return "", UNNAMED, called
    if eager := EAGER_OPERATION.fullmatch(called):
        return eager[1], eager[1], called
    name, colon, ending = called.rpartition(":")
    if not colon or not name or name.endswith(":") or ending != display_name:
        return None
    if WAIT.fullmatch(called) or ending.startswith(("IteratorGetNext", "_Arg", "_Ret")):
        return None
    return name, ending, called


def leaves(line: Line) -> NDArray[np.bool_]:
    """Return (n,) whether an event contains no other event of its line."""
    if not len(line):
        return np.zeros(0, dtype=bool)
    ends = line.start_ps + line.duration_ps
    following = np.append(line.start_ps[1:], np.iinfo(np.int64).max)
    return ends <= following


def executors(line: Line, name: str = EXECUTOR) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """Return the start, end and execution id of every stretch of an executor on this thread."""
    indices = np.flatnonzero(is_named(line, name.__eq__))
    starts = line.start_ps[indices]
    return starts, starts + line.duration_ps[indices], line.stats.ids_of("id", indices)


def executions_of(line: Line, wanted: NDArray[np.bool_] | None = None) -> NDArray[np.uint64]:
    """Return (n,) the id of the execution that an event lies in, 0 for none.

    ``wanted``, (number of kinds,), picks events by kind; (n,) is then their number.
    """
    starts, ends, ids = executors(line)
    times = line.start_ps if wanted is None else line.start_ps[wanted[line.kind]]
    if not len(starts):
        return np.zeros(len(times), np.uint64)
    latest = np.searchsorted(starts, times, side="right") - 1
    inside = (latest >= 0) & (times < ends[latest])
    executions: NDArray[np.uint64] = np.where(inside, ids[latest], np.uint64(0))
    return executions


Column = NDArray[np.int64]
# Positions of events, thread by thread, each sorted by start, outer before inner; -1 for none.
Positions = NDArray[np.int64]


def enclosing(starts: Column, ends: Column, lengths: Sequence[int]) -> Positions:
    """Return (n,) the innermost event around each one, on threads with so many events.

    It is what is left of the events before it on a stack, from which those that have ended are taken.
    """
    around = np.arange(len(starts)) - 1
    firsts = np.cumsum([0, *lengths])[:-1]
    around[firsts[firsts < len(starts)]] = -1
    return _climbed(around, lambda event, holder: ends[holder] <= starts[event])


def nearest(around: Positions, wanted: NDArray[np.bool_]) -> Positions:
    """Return (n,) the innermost wanted event around each one, given the innermost one of all."""
    return _climbed(around.copy(), lambda _, holder: ~wanted[holder])


def _climbed(found: Positions, passes: Callable[[Positions, Positions], NDArray[np.bool_]]) -> Positions:
    """Go on from each holder that an event passes to the one that it was given itself, all events at once."""
    moved = np.flatnonzero(found >= 0)
    while len(moved):
        moved = moved[passes(moved, found[moved])]
        found[moved] = found[found[moved]]
        moved = moved[found[moved] >= 0]
    return found


def latest_before(keys: Column, times: Column, key: Column, time: Column) -> Positions:
    """Return (m,) the position of the last of (n,) rows, sorted by time, with a key before a time."""
    order = np.lexsort((times, keys))
    size = max(int(times.max(initial=0)), int(time.max(initial=0))) + 1
    ranks = keys[order] * size + times[order]
    at = ranks.searchsorted(key * size + time) - 1
    same = (at >= 0) & (np.append(keys[order], -1)[at] == key)
    return np.where(same, np.append(order, -1)[at], -1)


def joined(groups: Column, starts: Column, ends: Column) -> tuple[Column, Column, Column]:
    """Merge the spans of each group that touch or overlap; return groups, starts and ends, in that order.

    Empty ones are dropped, unless they are the only one of their group.
    """
    _, which, count = np.unique(groups, return_inverse=True, return_counts=True)
    some = (starts < ends) | (count[which] == 1)
    groups, starts, ends = groups[some], starts[some], ends[some]
    times, sign = np.append(starts, ends), np.repeat([1, -1], len(starts))
    order = np.lexsort((-sign, times, np.append(groups, groups)))
    under_way = sign[order].cumsum()
    begins = order[(under_way == 1) & (sign[order] > 0)]
    closes = order[under_way == 0]
    return np.append(groups, groups)[begins], times[begins], times[closes]
