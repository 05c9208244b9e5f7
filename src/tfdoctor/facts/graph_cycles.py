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

ALONE = 3
"""Calls of a function from which they are the rhythm, and not what repeats inside one."""


def graph_cycles(trace: Trace, work: TrainingWork) -> list[Cycle]:
    """Return what recurs, changes weights and takes gradients."""
    calls = graph_calls(trace)
    found = [*_loops(work, calls), *_calls(work, calls, batch_requests(trace))]
    return found or list(_calls(work, list(_cut_off(work, calls)), np.zeros(0, np.int64)))


# Loops inside a graph


def _loops(work: TrainingWork, calls: list[GraphCall]) -> Iterator[Cycle]:
    """Yield each loop that changes weights, over all executions of the function that it is in."""
    names = {call.run: call.name for call in calls if call.name != FUNCTION_RUN}
    gradients = work.start_ps[work.having(Role.GRADIENT)]
    for frame in work.frames():
        body, condition = work.having(WORKS, frame), work.having(Role.CONDITION, frame)
        for name, runs in _by_function(work.run[body], names).items():
            spans = [
                _iterations(work, body & within, condition & within)
                for within in (work.run == run for run in runs)
            ]
            mine = body & np.isin(work.run, np.array(runs, np.uint64))
            where = f"the loop `{frame}`" + (f" of `{name}`" if name else "")
            loop = _cycle(GRAPH, where, spans, weigh(work, mine))
            if _alternates(work, mine, loop) and loop.takes_gradients(gradients):
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


def _iterations(work: TrainingWork, body: Rows, condition: Rows) -> Spans:
    """Return the whole iterations of one execution of a loop: the first and the last may be cut off."""
    edges, training = _conditions(work, condition), body & work.having(TRAINS)
    if not training.any():
        return np.zeros((0, 2), np.int64)
    if len(edges) < _most(work, training):
        edges = _beginnings(work, body, training)
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


def _beginnings(work: TrainingWork, body: Rows, training: Rows) -> NDArray[np.int64]:
    """Return when iterations began, and the last one ended, by the operations of the body alone.

    An iteration is over before the next one begins, so all first occurrences of what trains come
    before all second ones; where they do not, nothing is returned.
    """
    n = _most(work, training)
    times = _occurrences(work, training, n)
    begins, ends = times.min(axis=0), times.max(axis=0)
    if np.any(ends[:-1] >= begins[1:]):
        return np.zeros(0, np.int64)
    others = _occurrences(work, body, n)
    after = np.all(others[:, 1:] > ends[:-1], axis=1)
    before = np.all(others[:, :-1] < begins[1:], axis=1)
    begins = others[after & before].min(axis=0)
    if np.any(
        np.bincount(work.kind[body]) == n - 1
    ):  # some are missing in the last, if it is cut off
        return np.asarray(begins, np.int64)
    return np.append(begins, work.start_ps[body][-1] + 1)


def _occurrences(work: TrainingWork, rows: Rows, n: int) -> NDArray[np.int64]:
    """Return (kinds, n) when each of the operations that occurred n times did."""
    often = np.bincount(work.kind[rows])
    kinds = np.flatnonzero(often == n)
    times = [work.start_ps[rows & (work.kind == kind)] for kind in kinds]
    return np.array(times, np.int64).reshape(len(kinds), n)


def _alternates(work: TrainingWork, mine: Rows, loop: Cycle) -> bool:
    """Whether iterations hold the most frequent operation once: else events are lost."""
    if not len(loop):
        return False
    often = np.bincount(work.kind[mine])
    times = work.start_ps[mine & (work.kind == often.argmax())]
    held = np.searchsorted(times, loop.ends_ps) - np.searchsorted(times, loop.starts_ps)
    cut_off = 2 * len(np.unique(work.run[mine]))
    missed = len(times) - int(held.sum())
    once = np.count_nonzero(held == 1) >= MOSTLY * len(loop)
    return bool(once and missed <= max(cut_off, (1 - MOSTLY) * len(times)))


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
    times = _occurrences(work, mine, _most(work, mine))
    begins, ends = times.min(axis=0), times.max(axis=0)
    if np.any(ends[:-1] >= begins[1:]):
        return None
    return np.stack((begins[:-1], begins[1:]), axis=1)
