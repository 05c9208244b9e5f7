"""Cycles in the executions of graphs: the iterations of their loops, and the calls themselves."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.steps.cycle import CALL, GRAPH, MOSTLY, Cycle, Rows, Spans, cycle_of, from_each_to_next, holding
from tfdoctor.facts.steps.graph_calls import GraphCall, batch_requests, graph_calls
from tfdoctor.facts.steps.graph_loops import beginnings, conditions, graph_loops, most
from tfdoctor.facts.steps.training_work import TRAINS, WORKS, TrainingRole, TrainingWork
from tfdoctor.trace import Trace
from tfdoctor.trace.intervals import pairs_of

ALONE = 3  # Calls of a function from which the calls are the cycle, and not what repeats inside one


def graph_cycles(trace: Trace, work: TrainingWork) -> list[Cycle]:
    """Return the cycles that change weights and take gradients."""
    calls = graph_calls(trace)
    cycles = [*graph_loops(work, calls), *_calls(work, calls, batch_requests(trace))]
    if cycles:
        return cycles
    cut_off = []  # stand-ins for calls that began before the trace, from their first operation to their last
    for run in _runs(work, work.having(TRAINS)) - {call.run for call in calls}:
        times = work.start_ps[work.run == np.uint64(run)]
        cut_off.append(GraphCall("a graph", "", run, int(times[0]), int(times[-1])))
    return list(_calls(work, cut_off, np.zeros(0, np.int64)))


def _runs(work: TrainingWork, rows: Rows) -> set[int]:
    return {int(run) for run in np.unique(work.run[rows])} - {0}


def _calls(work: TrainingWork, calls: list[GraphCall], requests: NDArray[np.int64]) -> Iterator[Cycle]:
    """Yield each function that trains outside of loops of its own, call by call.

    Where some of its graphs take gradients, the others are evaluation.
    """
    direct, gradient = work.having(WORKS, ""), work.having(TrainingRole.GRADIENT)
    taking, training = _runs(work, gradient), _runs(work, direct & work.having(TRAINS))
    by_function: dict[tuple[str, bool], list[GraphCall]] = defaultdict(list)
    for call in calls:
        by_function[call.name, call.in_pipeline].append(call)
    for every in by_function.values():
        group = _alike(every, taking) or _alike(every, training)
        rows = direct & np.isin(work.run, np.array([call.run for call in group], np.uint64))
        if not (rows & work.having(TRAINS)).any():  # it trains in loops, or not at all
            continue
        cycle = _of_calls(work, rows, group, requests)
        known = any(call.run in taking for call in group)
        if len(cycle) and (known or cycle.takes_gradients(work.start_ps[gradient])):
            yield cycle


def _alike(group: list[GraphCall], runs: set[int]) -> list[GraphCall]:
    """Return the calls of graphs that have an execution among these; events of others may be lost."""
    functions = {call.function for call in group if call.run in runs} - {""}
    return [call for call in group if call.function in functions or call.run in runs]


def _of_calls(work: TrainingWork, rows: Rows, group: list[GraphCall], requests: NDArray[np.int64]) -> Cycle:
    """Return the rounds of a function's calls: the calls, or the iterations of a loop inside them."""
    name = group[0].name
    spans = pairs_of((call.start_ps, call.end_ps) for call in group)
    if group[0].in_pipeline:
        return cycle_of(GRAPH, f"the loop over `{name}`", [spans], work, rows)
    looped = _unnamed_loop(work, rows & work.having(TRAINS), len(group))
    if looped is not None:
        return cycle_of(GRAPH, f"the loop inside `{name}`", [looped], work, rows)
    # Calls begin with Python's request for their batch, when nearly every call has one before it.
    first = np.searchsorted(requests, np.append(np.iinfo(np.int64).min, spans[:-1, 1]))
    last = np.searchsorted(requests, spans[:, 0])
    first[:1] = np.maximum(last[:1] - 1, 0)  # of the many that may precede the first call
    asked = last > first
    if np.count_nonzero(asked) >= MOSTLY * len(spans):
        spans[asked, 0] = requests[first[asked]]
    return replace(cycle_of(CALL, f"the call of `{name}`", [spans], work, rows), call=name)


def _unnamed_loop(work: TrainingWork, rows: Rows, calls: int) -> Spans | None:
    """Return the iterations of a loop that repeats in a call what trains, if there is one.

    Names do not show it where its body is a function.
    """
    often = most(work, rows)
    if often <= calls:
        return None
    condition = work.having(TrainingRole.CONDITION) & np.isin(work.run, np.unique(work.run[rows]))
    frames = sorted({work.frame[int(kind)] for kind in np.unique(work.kind[condition])})
    loops = []
    for frame in frames:
        in_frame, spans = condition & work.having(TrainingRole.CONDITION, frame), [np.zeros((0, 2), np.int64)]
        for run in np.unique(work.run[in_frame]):
            pairs = from_each_to_next(conditions(work, in_frame & (work.run == run)))
            spans.append(pairs[holding(work.start_ps[rows], pairs)])
        loops.append(np.concatenate(spans))
    whole = [spans for spans in loops if len(spans) and often >= MOSTLY * len(spans)]
    if whole:
        return max(whole, key=len)
    if calls >= ALONE or frames:
        return None
    # From one round of training to the next, when all operations recur equally often.
    edges = beginnings(work, rows, rows, begun=False)
    return from_each_to_next(edges) if len(edges) else None
