"""Executions of graphs, and what started each: Python, or a loop over a dataset."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.steps.training_work import covering
from tfdoctor.facts.timeline.host_operations import is_captured
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.trace import Line, Trace
from tfdoctor.trace.names import EAGER_NEXT, FUNCTION_RUNS, PIPELINE_CALL


@dataclass(frozen=True, slots=True)
class GraphCall:
    """One execution of a graph, from the call to its return, in ps.

    ``function`` is the concrete function or the iterator's id: all its executions run the same graph.
    """

    name: str  # of the tf.function, of the iterator, or "SessionRun"
    function: str
    run: int  # the execution's id
    start_ps: int
    end_ps: int
    in_pipeline: bool = False  # started by an iterator: the body of `for x in dataset` in a graph


def graph_calls(trace: Trace) -> list[GraphCall]:
    """Return the calls that started an execution of a graph, by their start."""
    calls = []
    for line in trace.host_lines:
        events = line.stats.having("id")
        runs = events[is_named(line, FUNCTION_RUNS.__contains__)[events]].tolist()
        called = line.stats.having("tf_function_call").tolist()
        eager = [int(event) for event, value in zip(*line.stats.values("is_func"), strict=True) if value]
        asked, callers = _holders(line, runs, eager), _holders(line, runs, called or eager)
        for run, inner, outer in zip(runs, asked, callers, strict=True):
            calls.append(_call(line, run, outer, str(line.stats.of(inner).get("eager_op", ""))))
        captured = events[is_named(line, is_captured)[events]].tolist()
        iterators = np.flatnonzero(is_named(line, PIPELINE_CALL.match)).tolist() if captured else []
        for run, call in zip(captured, _holders(line, captured, iterators), strict=True):
            calls.append(_call(line, run, call, str(line.stats.of(call).get("id", "")), in_pipeline=True))
    return sorted(calls, key=lambda call: call.start_ps)


def _holders(line: Line, inner: list[int], outer: list[int]) -> list[int]:
    """Return for each ``inner`` event the innermost ``outer`` event that contains it, or itself."""
    ends = line.start_ps + line.duration_ps
    within = covering(line.start_ps[outer], ends[outer], line.start_ps[inner]).tolist()
    return [outer[place] if place >= 0 else index for index, place in zip(inner, within, strict=True)]


def _call(line: Line, run: int, call: int, function: str, *, in_pipeline: bool = False) -> GraphCall:
    event = line.event(call)
    return GraphCall(event.name, function, int(line.stats.of(run)["id"]), event.start_ps, event.end_ps, in_pipeline)


def batch_requests(trace: Trace) -> NDArray[np.int64]:
    """Return when Python asked an iterator for a batch, in ps, sorted."""
    starts = [line.start_ps[is_named(line, EAGER_NEXT.fullmatch)] for line in trace.host_lines]
    return np.sort(np.concatenate([np.zeros(0, np.int64), *starts]))
