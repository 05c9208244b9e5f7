"""What recurs in the executions of graphs: the iterations of their loops, and the calls themselves."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.cycle import CALL, GRAPH, MOSTLY, Cycle, weigh
from tfdoctor.facts.graph_calls import GraphCall, batch_requests, graph_calls
from tfdoctor.facts.training_work import TRAINS, WORKS, Role, TrainingWork
from tfdoctor.trace import Trace
from tfdoctor.trace.names import FUNCTION_RUN

Spans = NDArray[np.int64]
"""(n, 2) starts and ends, in ps."""

Rows = NDArray[np.bool_]
"""(m,) which operations."""

CUT_OFF = 2
"""Iterations that the ends of the trace may cut."""

COMPARED = 100
"""Operations whose rhythm is compared; a large network has thousands, and all of them the same."""

ALONE = 3
"""Calls, or iterations, from which there are enough of a kind."""


def graph_cycles(trace: Trace, work: TrainingWork) -> list[Cycle]:
    """Return what recurs, changes weights and takes gradients."""
    calls = graph_calls(trace)
    found = [*_loops(work, calls), *_calls(work, calls, batch_requests(trace))]
    return found or list(_calls(work, list(_cut_off(work, calls)), np.zeros(0, np.int64)))


# Loops inside a graph


def _loops(work: TrainingWork, calls: list[GraphCall]) -> Iterator[Cycle]:
    """Yield each loop that trains, over all executions of the function that it is in.

    Where the iterations of one are not certain, those of the loops inside it are not the steps.
    """
    names = {call.run: call.name for call in calls}
    gradients = work.start_ps[work.having(Role.GRADIENT)]
    uncertain: list[str] = []
    for frame in work.frames():  # an outer one's name comes before those inside it
        if any(frame.startswith(f"{outer}/") for outer in uncertain):
            continue
        loops = list(_of_frame(work, frame, names))
        certain = [loop for loop in loops if len(loop) and loop.takes_gradients(gradients)]
        if len(certain) < len(loops):
            uncertain.append(frame)
        yield from certain


def _of_frame(work: TrainingWork, frame: str, names: dict[int, str]) -> Iterator[Cycle]:
    """Yield the loop of this name in each function that has one; without a round if it is uncertain."""
    body, condition = work.having(WORKS, frame), work.having(Role.CONDITION, frame)
    for name, runs in _by_function(work.run[body], names).items():
        spans = {
            run: _iterations(work, body & within, condition & within, begun=run in names)
            for run, within in ((run, work.run == run) for run in runs)
        }
        begun = [run for run in runs if run in names]
        if sum(len(spans[run]) for run in begun) >= ALONE:  # enough without the one that is cut off
            runs = begun  # noqa: PLW2901
        mine = body & np.isin(work.run, np.array(runs, np.uint64))
        where = f"the loop `{frame}`" + (f" of `{name}`" if name else "")
        loop = _cycle(GRAPH, where, [spans[run] for run in runs], weigh(work, mine))
        yield loop if _alternates(work, mine, loop) else _cycle(GRAPH, where, [], (0, 0))


def _by_function(runs: NDArray[np.uint64], names: dict[int, str]) -> dict[str, list[int]]:
    """Sort executions by function; one whose call was cut off is the only function's there is."""
    found: dict[str, list[int]] = defaultdict(list)
    for run in np.unique(runs[runs != 0]).tolist():
        name = names.get(run, "")
        found["" if name == FUNCTION_RUN else name].append(run)
    if len(found) == 2 and "" in found:  # noqa: PLR2004 - one with a name, one without
        cut_off = found.pop("")
        next(iter(found.values())).extend(cut_off)
    return found


def _iterations(work: TrainingWork, body: Rows, condition: Rows, *, begun: bool) -> Spans:
    """Return the whole iterations of one execution of a loop: the first and the last may be cut off."""
    edges, training = _conditions(work, condition), body & work.having(TRAINS)
    if not training.any():
        return np.zeros((0, 2), np.int64)
    if len(edges) + 1 < _most(work, training):  # cut off at both ends there is one less
        edges = _beginnings(work, body, training, begun=begun)
    spans = np.stack((edges[:-1], edges[1:]), axis=1)
    held = np.searchsorted(work.start_ps[body], spans)
    return np.asarray(spans[held[:, 1] > held[:, 0]], np.int64)


def _most(work: TrainingWork, rows: Rows) -> int:
    """Return how often the most frequent of some operations occurred: in a loop, once an iteration."""
    return int(np.bincount(work.kind[rows]).max(initial=0))


def _conditions(work: TrainingWork, condition: Rows) -> NDArray[np.int64]:
    """Return when the condition was evaluated: before each iteration, and after the last."""
    kinds = work.kind[condition]
    if not len(kinds):
        return np.zeros(0, np.int64)
    return np.asarray(work.start_ps[condition][kinds == np.bincount(kinds).argmax()], np.int64)


def _beginnings(
    work: TrainingWork, body: Rows, training: Rows, *, begun: bool
) -> NDArray[np.int64]:
    """Return when iterations began, and the last one ended, by the operations of the body alone.

    Operations of one iteration run in any order, but all of them before those of the next one. One of
    the earliest is tried for the first, and what sometimes comes before it belongs to it; where the
    iterations do not come out apart, nothing is returned. ``begun`` says that the start was recorded.
    """
    n = _most(work, training)
    rhythms = _rhythms(work, training, (n - 1, n))
    rhythms = rhythms[:: len(rhythms) // COMPARED + 1]
    firsts = sorted(_rhythms(work, body, (n - 1, n + 1)), key=lambda times: int(times[0]))
    for first in firsts[:COMPARED]:
        begins, ends = first.copy(), first.copy()
        for times in rhythms:
            group, inside = _groups_of(first, times)
            np.minimum.at(begins, group, times[inside])
            np.maximum.at(ends, group, times[inside])
        if np.all(ends[:-1] < begins[1:]):
            whole = begun and all(times[-1] >= begins[-1] for times in rhythms)
            return np.append(begins, work.start_ps[body][-1] + 1) if whole else begins
    return np.zeros(0, np.int64)


def _groups_of(first: NDArray[np.int64], times: NDArray[np.int64]) -> tuple[NDArray[np.intp], Rows]:
    """Return which iteration each of some times belongs to, and which belong to one at all."""
    group = np.searchsorted(first, times, side="right") - 1
    if np.any(np.diff(group) != 1):  # now before the first, now after it: the nearest
        size = min(len(first), len(times))
        shifts = [s for s in (-1, 0, 1) if abs(s) < size]
        far = [int(np.abs(_aligned(first, times, shift)).max()) for shift in shifts]
        group = np.arange(len(times)) + shifts[int(np.argmin(far))]
    inside = (group >= 0) & (group < len(first))
    return group[inside], inside


def _aligned(first: NDArray[np.int64], times: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    """Return how far the times are from those of the first operation, some iterations on."""
    later, earlier = first[max(0, shift) :], times[max(0, -shift) :]
    size = min(len(later), len(earlier))
    return earlier[:size] - later[:size]


def _rhythms(work: TrainingWork, rows: Rows, often: tuple[int, int]) -> list[NDArray[np.int64]]:
    """Return when each of the operations occurred that did so this often: one may be cut off."""
    order = np.argsort(work.kind[rows], kind="stable")
    counts = np.bincount(work.kind[rows])
    each = np.split(work.start_ps[rows][order], np.cumsum(counts[counts > 0])[:-1])
    return [times for times in each if often[0] <= len(times) <= often[1]]


def _alternates(work: TrainingWork, mine: Rows, loop: Cycle) -> bool:
    """Whether iterations hold once what trains most often, and miss none: else events are lost."""
    if not len(loop):
        return False
    often = np.bincount(work.kind[mine & work.having(TRAINS)])
    times = work.start_ps[mine & (work.kind == often.argmax())]
    held = np.searchsorted(times, loop.ends_ps) - np.searchsorted(times, loop.starts_ps)
    missed = len(times) - int(held.sum())
    once = np.count_nonzero(held == 1) >= MOSTLY * len(loop)
    return bool(once and missed <= CUT_OFF + (1 - MOSTLY) * len(times))


def _cycle(source: str, where: str, spans: Iterable[Spans], changes: tuple[int, int]) -> Cycle:
    rounds = np.concatenate([np.zeros((0, 2), np.int64), *spans])
    rounds = rounds[np.argsort(rounds[:, 0], kind="stable")]
    return Cycle(source, where, rounds[:, 0], rounds[:, 1], *changes)


# Calls of a function


def _calls(
    work: TrainingWork, calls: list[GraphCall], requests: NDArray[np.int64]
) -> Iterator[Cycle]:
    """Yield each function that trains outside of loops of its own, call by call."""
    direct, gradient = work.having(WORKS, ""), work.having(Role.GRADIENT)
    taking = _runs(work, gradient)
    for group in _groups(work, direct & work.having(TRAINS), calls, taking):
        mine = direct & np.isin(work.run, np.array([call.run for call in group], np.uint64))
        if not (mine & work.having(TRAINS)).any():  # it trains in loops
            continue
        cycle = _of_calls(work, mine, group, requests)
        known = any(call.run in taking for call in group)
        if known or cycle.takes_gradients(work.start_ps[gradient]):
            yield cycle


def _runs(work: TrainingWork, rows: Rows) -> set[int]:
    """Return the executions of some operations."""
    return {int(run) for run in np.unique(work.run[rows])} - {0}


def _of_calls(
    work: TrainingWork, mine: Rows, group: list[GraphCall], requests: NDArray[np.int64]
) -> Cycle:
    """Return the rounds of a function's calls: the calls, or a loop's inside them."""
    name, weight = group[0].name, weigh(work, mine)
    if group[0].in_pipeline:
        return _cycle(GRAPH, f"the loop over `{name}`", [_spans(group)], weight)
    looped = _unnamed_loop(work, mine & work.having(TRAINS), group)
    if looped is not None:
        return _cycle(GRAPH, f"the loop inside `{name}`", [looped], weight)
    spans = _with_requests(_spans(group), requests)
    return replace(_cycle(CALL, f"the call of `{name}`", [spans], weight), call=name)


def _groups(
    work: TrainingWork, training: Rows, calls: list[GraphCall], taking: set[int]
) -> list[list[GraphCall]]:
    """Sort calls by function; where some of its graphs take gradients, the others are evaluation."""
    runs = _runs(work, training)
    found: dict[tuple[str, bool], list[GraphCall]] = defaultdict(list)
    for call in calls:
        found[call.name, call.in_pipeline].append(call)
    sorted_out = (_alike(group, taking) or _alike(group, runs) for group in found.values())
    return [group for group in sorted_out if group]


def _alike(group: list[GraphCall], runs: set[int]) -> list[GraphCall]:
    """Return the calls of graphs of which some executions are among these: events may be lost."""
    functions = {call.function for call in group if call.run in runs} - {""}
    return [call for call in group if call.function in functions or call.run in runs]


def _cut_off(work: TrainingWork, calls: list[GraphCall]) -> Iterator[GraphCall]:
    """Stand in for calls that began before the trace: from the first to the last operation."""
    for run in _runs(work, work.having(TRAINS)) - {call.run for call in calls}:
        times = work.start_ps[work.run == np.uint64(run)]
        yield GraphCall("a graph", "", run, int(times[0]), int(times[-1]))


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
    """Return the iterations of a loop that repeats in a call what trains, if there is one."""
    most = _most(work, mine)
    if most <= len(calls):
        return None
    condition = work.having(Role.CONDITION) & np.isin(work.run, np.unique(work.run[mine]))
    frames = sorted({work.frame[int(kind)] for kind in np.unique(work.kind[condition])})
    loops = [_held(work, condition & work.having(Role.CONDITION, f), mine) for f in frames]
    whole = [spans for spans in loops if len(spans) and most >= MOSTLY * len(spans)]
    if whole:
        return max(whole, key=len)
    return _between(work, mine) if len(calls) < ALONE and not frames else None


def _held(work: TrainingWork, condition: Rows, mine: Rows) -> Spans:
    """Return the iterations of a loop in all its executions, by its condition."""
    spans = [np.zeros((0, 2), np.int64)]
    for run in np.unique(work.run[condition]):
        edges = _conditions(work, condition & (work.run == run))
        pairs = np.stack((edges[:-1], edges[1:]), axis=1)
        held = np.searchsorted(work.start_ps[mine], pairs)
        spans.append(pairs[held[:, 1] > held[:, 0]])
    return np.concatenate(spans)


def _between(work: TrainingWork, mine: Rows) -> Spans | None:
    """Return the time from one round of training to the next, when all of it has one rhythm."""
    edges = _beginnings(work, mine, mine, begun=False)
    return np.stack((edges[:-1], edges[1:]), axis=1) if len(edges) else None
