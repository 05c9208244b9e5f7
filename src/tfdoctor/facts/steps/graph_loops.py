"""The iterations of loops inside graphs: by their conditions, else by what their bodies do."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.steps.cycle import GRAPH, MOSTLY, Cycle, Rows, Spans, cycle_of, from_each_to_next, holding
from tfdoctor.facts.steps.graph_calls import GraphCall
from tfdoctor.facts.steps.training_work import TRAINS, WORKS, TrainingRole, TrainingWork
from tfdoctor.trace.names import FUNCTION_RUN, GRADIENT

CUT_OFF = 2  # Iterations that the ends of the trace may cut
COMPARED = 100  # Operations whose times are compared; a large network has thousands, and all recur alike
ENOUGH = 3  # Iterations in calls traced from their start, from which a call that is cut off is left out


def graph_loops(work: TrainingWork, calls: list[GraphCall]) -> Iterator[Cycle]:
    """Yield each loop that trains, over all executions of the function that contains it.

    Where the iterations of a loop are not certain, the loops inside it are left out.
    """
    names = {call.run: call.name for call in calls}
    gradients = work.start_ps[work.having(TrainingRole.GRADIENT)]
    uncertain: list[str] = []
    frames = {work.frame[int(kind)] for kind in np.flatnonzero((work.role & TRAINS) != 0)} - {""}
    for frame in sorted(frames):  # an outer one's name comes before those inside it
        if GRADIENT.search(frame) or any(frame.startswith(f"{outer}/") for outer in uncertain):
            continue
        loops = list(_of_frame(work, frame, names))
        certain = [loop for loop in loops if len(loop) and loop.takes_gradients(gradients)]
        if len(certain) < len(loops):
            uncertain.append(frame)
        yield from certain


def _of_frame(work: TrainingWork, frame: str, names: dict[int, str]) -> Iterator[Cycle]:
    """Yield the loop of this name in each function that has one; without a round if it is uncertain."""
    body, condition = work.having(WORKS, frame), work.having(TrainingRole.CONDITION, frame)
    by_function: dict[str, list[int]] = defaultdict(list)
    for run in np.unique(work.run[body & (work.run != 0)]).tolist():
        name = names.get(run, "")
        by_function["" if name == FUNCTION_RUN else name].append(run)
    if len(by_function) == 2 and "" in by_function:  # noqa: PLR2004 - cut off is a call of the only function
        cut_off = by_function.pop("")
        next(iter(by_function.values())).extend(cut_off)
    for name, runs in by_function.items():
        spans = {}
        for run in runs:
            within = work.run == run
            spans[run] = _iterations(work, body & within, condition & within, begun=run in names)
        begun = [run for run in runs if run in names]
        if sum(len(spans[run]) for run in begun) < ENOUGH:
            begun = runs
        rows = body & np.isin(work.run, np.array(begun, np.uint64))
        where = f"the loop `{frame}`" + (f" of `{name}`" if name else "")
        loop = cycle_of(GRAPH, where, [spans[run] for run in begun], work, rows)
        yield loop if _alternates(work, rows, loop) else cycle_of(GRAPH, where, [], work, rows)


def _iterations(work: TrainingWork, body: Rows, condition: Rows, *, begun: bool) -> Spans:
    """Return the whole iterations of one execution of a loop, whose first and last may be cut off."""
    edges, training = conditions(work, condition), body & work.having(TRAINS)
    if not training.any():
        return np.zeros((0, 2), np.int64)
    if len(edges) + 1 < most(work, training):  # cut off at both ends there is one less
        edges = beginnings(work, body, training, begun=begun)
    spans = from_each_to_next(edges)
    return spans[holding(work.start_ps[body], spans)]


def most(work: TrainingWork, rows: Rows) -> int:
    """Return how often the most frequent operation occurred: in a loop, once per iteration."""
    return int(np.bincount(work.kind[rows]).max(initial=0))


def conditions(work: TrainingWork, condition: Rows) -> NDArray[np.int64]:
    """Return when the condition was evaluated: before each iteration, and after the last."""
    return _most_frequent(work, condition) if condition.any() else np.zeros(0, np.int64)


def _most_frequent(work: TrainingWork, rows: Rows) -> NDArray[np.int64]:
    kind = np.bincount(work.kind[rows]).argmax()
    return np.asarray(work.start_ps[rows & (work.kind == kind)], np.int64)


def beginnings(work: TrainingWork, body: Rows, training: Rows, *, begun: bool) -> NDArray[np.int64]:
    """Return when iterations began, and the last one ended, by the operations of the body alone.

    Operations of one iteration run in any order, and mostly all of them before those of the next one. The
    earliest operations are tried in turn as the first one; operations that sometimes precede it belong to
    its iteration. Where iterations overlap (TensorFlow runs up to ten at once), the most frequent
    operation that trains separates them. ``begun`` says that the start was recorded.
    """
    n = most(work, training)
    recurring = _times_by_operation(work, training, n - 1, n)
    recurring = recurring[:: len(recurring) // COMPARED + 1]
    firsts = sorted(_times_by_operation(work, body, n - 1, n + 1), key=lambda times: int(times[0]))
    for first in firsts[:COMPARED]:
        begins, ends = first.copy(), first.copy()
        for times in recurring:
            group = _nearest(first, times)
            inside = (group >= 0) & (group < len(first))
            np.minimum.at(begins, group[inside], times[inside])
            np.maximum.at(ends, group[inside], times[inside])
        if np.all(ends[:-1] < begins[1:]):
            whole = begun and all(times[-1] >= begins[-1] for times in recurring)
            return np.append(begins, work.start_ps[body][-1] + 1) if whole else begins
    return _most_frequent(work, training)


def _nearest(first: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the iteration of each time, by the times of the first operation; some belong to none."""
    group: NDArray[np.intp] = np.searchsorted(first, times, side="right") - 1
    if np.any(np.diff(group) != 1):  # now before the first, now after it: the nearest
        size = min(len(first), len(times))
        far: dict[int, int] = {}  # the longest time from those of the first operation, shifted
        for shift in (shift for shift in (-1, 0, 1) if abs(shift) < size):
            later, earlier = first[max(0, shift) :], times[max(0, -shift) :]
            both = min(len(later), len(earlier))
            far[shift] = int(np.abs(earlier[:both] - later[:both]).max())
        group = np.arange(len(times)) + min(far, key=lambda shift: far[shift])
    return group


def _times_by_operation(work: TrainingWork, rows: Rows, least: int, highest: int) -> list[NDArray[np.int64]]:
    order = np.argsort(work.kind[rows], kind="stable")
    counts = np.bincount(work.kind[rows])
    by_operation = np.split(work.start_ps[rows][order], np.cumsum(counts[counts > 0])[:-1])
    return [times for times in by_operation if least <= len(times) <= highest]


def _alternates(work: TrainingWork, rows: Rows, loop: Cycle) -> bool:
    """Whether each iteration holds the most frequent training operation once: else events are lost."""
    if not len(loop):
        return False
    times = _most_frequent(work, rows & work.having(TRAINS))
    held = np.searchsorted(times, loop.ends_ps) - np.searchsorted(times, loop.starts_ps)
    missed = len(times) - int(held.sum())
    once = np.count_nonzero(held == 1) >= MOSTLY * len(loop)
    return bool(once and missed <= CUT_OFF + (1 - MOSTLY) * len(times))
