"""What recurs in the executions of graphs: the iterations of their loops, and the calls themselves."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.cycle import CALL, GRAPH, MOSTLY, Cycle, count_changes
from tfdoctor.facts.graph_calls import GraphCall, batch_requests, graph_calls
from tfdoctor.facts.training_work import CHANGES, Role, TrainingWork
from tfdoctor.trace import Trace
from tfdoctor.trace.names import FUNCTION_RUN

Spans = NDArray[np.int64]
"""(n, 2) starts and ends, in ps."""

Rows = NDArray[np.bool_]
"""(m,) which operations."""

ALONE = 3
"""Calls of a function from which they are the rhythm, and not what repeats inside one."""


def graph_cycles(trace: Trace, work: TrainingWork) -> list[Cycle]:
    """Return what recurs, changes weights and takes gradients."""
    calls = graph_calls(trace)
    return [*_loops(work, calls), *_calls(work, calls, batch_requests(trace))]


# Loops inside a graph


def _loops(work: TrainingWork, calls: list[GraphCall]) -> Iterator[Cycle]:
    """Yield each loop that changes weights, over all executions of the function that it is in."""
    names = {call.run: call.name for call in calls if call.name != FUNCTION_RUN}
    gradients = work.start_ps[work.having(Role.GRADIENT)]
    for frame in work.frames():
        rows = work.having(CHANGES | Role.GRADIENT, frame)
        condition = work.having(Role.CONDITION, frame)
        for name, runs in _by_function(work.run[rows], names).items():
            mine = rows & np.isin(work.run, np.array(runs, np.uint64))
            body = work.having(Role.BODY, frame)
            spans = [
                iterations(work, condition & within, mine & within, body & within)
                for within in (work.run == run for run in runs)
            ]
            where = f"the loop `{frame}`" + (f" of `{name}`" if name else "")
            loop = _cycle(GRAPH, where, spans, count_changes(work, mine))
            if _alternate(work, mine, np.concatenate(spans)) and loop.takes_gradients(gradients):
                yield loop


def _by_function(runs: NDArray[np.uint64], names: dict[int, str]) -> dict[str, list[int]]:
    """Sort executions by function; one whose call was cut off is the only function's there is."""
    found: dict[str, list[int]] = defaultdict(list)
    for run in np.unique(runs).tolist():
        found[names.get(run, "")].append(run)
    if len(found) == 2 and "" in found:  # noqa: PLR2004 - one with a name, one without
        cut_off = found.pop("")
        next(iter(found.values())).extend(cut_off)
    return found


def iterations(work: TrainingWork, condition: Rows, mine: Rows, body: Rows) -> Spans:
    """Return the whole iterations of one execution of a loop: the first and the last may be cut off."""
    edges = _conditions(work, condition)
    if not len(edges):
        edges = _beginnings(work, mine, body)
    spans = np.stack((edges[:-1], edges[1:]), axis=1)
    held = np.searchsorted(work.start_ps[mine], spans)
    return spans[held[:, 1] > held[:, 0]]


def _conditions(work: TrainingWork, condition: Rows) -> NDArray[np.int64]:
    """Return when the condition was evaluated: before each iteration, and after the last."""
    kinds = work.kind[condition]
    if not len(kinds):
        return np.zeros(0, np.int64)
    return work.start_ps[condition][kinds == np.bincount(kinds).argmax()]


def _beginnings(work: TrainingWork, mine: Rows, body: Rows) -> NDArray[np.int64]:
    """Return when iterations began, and the last one ended, where the condition was folded away.

    An iteration is over before the next one begins, so all first occurrences of the body's operations
    come before all second ones; where the changes do not show this, nothing is returned.
    """
    changing = work.having(CHANGES) & mine
    changes = _occurrences(work, changing)
    if not changes.size:
        return np.zeros(0, np.int64)
    begins, ends = changes.min(axis=0), changes.max(axis=0)
    if np.any(ends[:-1] >= begins[1:]):
        return np.zeros(0, np.int64)
    others = _occurrences(work, body)
    if others.shape[1] == len(begins):
        after = np.all(others[:, 1:] > ends[:-1], axis=1) & np.all(
            others[:, :-1] < begins[1:], axis=1
        )
        begins = np.minimum(begins, others[after].min(axis=0, initial=np.iinfo(np.int64).max))
    often = np.unique(work.kind[changing], return_counts=True)[1]
    if np.any(often == len(begins) - 1):  # some are missing in the last iteration: it is cut off
        return begins
    return np.append(begins, work.start_ps[body][-1] + 1)


def _occurrences(work: TrainingWork, rows: Rows) -> NDArray[np.int64]:
    """Return (kinds, n) when each of the operations that are most frequent here occurred."""
    kinds, often = np.unique(work.kind[rows], return_counts=True)
    if not len(kinds):
        return np.zeros((0, 0), np.int64)
    most = [work.start_ps[rows & (work.kind == kind)] for kind in kinds[often == often.max()]]
    return np.array(most, np.int64)


def _alternate(work: TrainingWork, mine: Rows, spans: Spans) -> bool:
    """Whether iterations hold each change once and miss none: else events are lost, or they are none."""
    kinds, often = np.unique(work.kind[mine & work.having(CHANGES)], return_counts=True)
    if not len(spans) or not len(kinds):
        return False
    times = work.start_ps[mine & (work.kind == kinds[often.argmax()])]
    held = np.diff(np.searchsorted(times, spans), axis=1)
    cut_off = 2 * len(np.unique(work.run[mine]))
    missed = len(times) - int(held.sum())
    once = np.count_nonzero(held <= 1) >= MOSTLY * len(spans)
    return bool(once and missed <= max(cut_off, (1 - MOSTLY) * len(times)))


def _cycle(source: str, where: str, spans: Iterable[Spans], changes: tuple[int, int]) -> Cycle:
    rounds = np.concatenate([np.zeros((0, 2), np.int64), *spans])
    rounds = rounds[np.argsort(rounds[:, 0], kind="stable")]
    return Cycle(source, where, rounds[:, 0], rounds[:, 1], *changes)


# Calls of a function


def _calls(
    work: TrainingWork, calls: list[GraphCall], requests: NDArray[np.int64]
) -> Iterator[Cycle]:
    """Yield each function that changes weights outside of loops of its own, call by call."""
    direct = work.having(CHANGES, "")
    gradient = work.having(Role.GRADIENT)
    trains = {int(run) for run in np.unique(work.run[gradient])} - {0}
    for group in _groups(work, direct, calls, trains):
        mine = direct & np.isin(work.run, np.array([call.run for call in group], np.uint64))
        if not mine.any():  # its changes are in loops
            continue
        cycle = _of_calls(work, mine, group, requests)
        if any(call.run in trains for call in group) or cycle.takes_gradients(
            work.start_ps[gradient]
        ):
            yield cycle


def _of_calls(
    work: TrainingWork, mine: Rows, group: list[GraphCall], requests: NDArray[np.int64]
) -> Cycle:
    """Return the rounds of a function's calls: the calls, or a loop's inside them."""
    name, changes = group[0].name, count_changes(work, mine)
    if group[0].in_pipeline:
        return _cycle(GRAPH, f"the loop over `{name}`", [_spans(group)], changes)
    looped = _unnamed_loop(work, mine, group)
    if looped is not None:
        return _cycle(GRAPH, f"the loop inside `{name}`", [looped], changes)
    spans = _with_requests(_spans(group), requests)
    return replace(_cycle(CALL, f"the call of `{name}`", [spans], changes), call=name)


def _groups(
    work: TrainingWork, direct: Rows, calls: list[GraphCall], trains: set[int]
) -> list[list[GraphCall]]:
    """Sort calls by function; where some of its graphs take gradients, the others are evaluation."""
    changing = {int(run) for run in np.unique(work.run[direct])} - {0}
    cut_off = changing - {call.run for call in calls}
    found: dict[tuple[str, bool], list[GraphCall]] = defaultdict(list)
    for call in [*calls, *(_cut_off(work, run) for run in cut_off)]:
        found[call.name, call.in_pipeline].append(call)
    return [_alike(group, trains) or _alike(group, changing) for group in found.values()]


def _alike(group: list[GraphCall], runs: set[int]) -> list[GraphCall]:
    """Return the calls of graphs of which some executions are among these: events may be lost."""
    functions = {call.function for call in group if call.run in runs} - {""}
    return [call for call in group if call.function in functions or call.run in runs]


def _cut_off(work: TrainingWork, run: int) -> GraphCall:
    """Stand in for a call that began before the trace: from its first to its last operation."""
    times = work.start_ps[work.run == np.uint64(run)]
    return GraphCall("a graph", "", run, int(times[0]), int(times[-1]))


def _spans(calls: list[GraphCall]) -> Spans:
    return np.array([(call.start_ps, call.end_ps) for call in calls], np.int64).reshape(-1, 2)


def _with_requests(spans: Spans, requests: NDArray[np.int64]) -> Spans:
    """Let calls begin with Python's request for their batch, when (nearly) each has one before it."""
    before = np.append(np.iinfo(np.int64).min, spans[:-1, 1])
    first = np.searchsorted(requests, before)
    last = np.searchsorted(requests, spans[:, 0])
    first[:1] = np.maximum(last[:1] - 1, 0)  # of the many that may precede the first call
    asked = last > first
    if np.count_nonzero(asked) < MOSTLY * len(spans):
        return spans
    starts = spans[:, 0].copy()
    starts[asked] = requests[first[asked]]
    return np.stack((starts, spans[:, 1]), axis=1)


# Loops that names do not show: their bodies are functions


def _unnamed_loop(work: TrainingWork, mine: Rows, calls: list[GraphCall]) -> Spans | None:
    """Return the iterations of a loop that runs these changes again and again in a call, if any."""
    often = np.bincount(work.kind[mine])
    often = often[often > 0]
    if often.max() <= len(calls):
        return None
    runs = np.array([call.run for call in calls], np.uint64)
    condition = work.having(Role.CONDITION) & np.isin(work.run, runs)
    frames = sorted({work.frame[int(kind)] for kind in np.unique(work.kind[condition])})
    loops = [
        _all_iterations(work, condition & work.having(Role.CONDITION, f), mine) for f in frames
    ]
    whole = [spans for spans in loops if len(spans) and often.min() >= MOSTLY * len(spans)]
    if whole:
        return max(whole, key=len)
    return _between(work, mine) if len(calls) < ALONE and not frames else None


def _all_iterations(work: TrainingWork, condition: Rows, mine: Rows) -> Spans:
    return np.concatenate(
        [
            np.zeros((0, 2), np.int64),
            *(
                iterations(work, condition & within, mine, mine & within)
                for within in (work.run == run for run in np.unique(work.run[condition]))
            ),
        ]
    )


def _between(work: TrainingWork, mine: Rows) -> Spans | None:
    """Return the time from one round of changes to the next, when all recur at the same rhythm."""
    kinds, often = np.unique(work.kind[mine], return_counts=True)
    if often.max() - often.min() > 1:
        return None
    times = work.start_ps[mine & (work.kind == kinds[often.argmax()])]
    for kind in kinds:
        place = np.searchsorted(times, work.start_ps[mine & (work.kind == kind)], side="right")
        if np.any(np.diff(place) != 1):
            return None
    return np.stack((times[:-1], times[1:]), axis=1)
