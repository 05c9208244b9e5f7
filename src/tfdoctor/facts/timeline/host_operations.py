"""The operations of the training function on the host's threads, without tf.data's."""

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.timeline.host_events import executions_of, leaves, operation_label, select
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.facts.timeline.work import Work
from tfdoctor.trace import EventType, Line, Trace
from tfdoctor.trace.names import (
    ASSIGN,
    CAPTURED_FUNCTION,
    GRADIENT,
    INPUT_THREAD,
    UPDATE,
)


def host_operations(trace: Trace, foreign: set[int], training: set[int]) -> Work:
    """Gather the training function's operations, without tf.data's and without those that contain others."""
    if trace.host is None:
        return _work([], ())
    types = trace.host.types
    is_operation = np.array([bool(operation_label(kind)) for kind in types], dtype=bool)
    lines = [
        select(line, is_operation[line.kind] & _ours(line, foreign, training))
        for line in trace.host.lines
        if len(line) and (training or not line.name.startswith(INPUT_THREAD))
    ]
    return _work([select(line, leaves(line)) for line in lines], types)


def _ours(line: Line, foreign: set[int], training: set[int]) -> NDArray[np.bool_]:
    """Return (n,) whether an event belongs to the training: few on tf.data's own threads do."""
    runs = executions_of(line)
    if line.name.startswith(INPUT_THREAD):
        return np.isin(runs, np.array(sorted(training), np.uint64))
    return ~np.isin(runs, np.array(sorted(foreign), np.uint64))


def training_executions(trace: Trace, captured: set[int]) -> set[int]:
    """Return the executions of tf.data that take gradients and change weights."""
    if not captured or trace.host is None:
        return set()
    kinds = trace.host.types
    gradients = np.array([bool(GRADIENT.search(kind.name)) for kind in kinds], dtype=bool)
    changes = np.array([_changes(kind) for kind in kinds], dtype=bool)
    executions = [
        {int(run) for line in trace.host.lines for run in np.unique(executions_of(line, wanted))}
        for wanted in (gradients, changes)
    ]
    return captured & executions[0] & executions[1]


def _changes(kind: EventType) -> bool:
    """Say whether an operation changes weights."""
    ending = kind.name.rpartition(":")[2]
    return bool(UPDATE.fullmatch(ending) or ASSIGN.fullmatch(ending))


def captured_executions(trace: Trace) -> set[int]:
    """Return the ids of the executions that tf.data started."""
    started: set[int] = set()
    for line in trace.host_lines:
        events, runs = line.stats.ids("id")
        captured = is_named(line, is_captured)
        started |= set(runs[captured[events]].tolist())
    return started


def is_captured(name: str) -> bool:
    """Say whether tf.data runs a function in the events of a name."""
    return name.startswith(CAPTURED_FUNCTION)


def _work(lines: list[Line], types: tuple[EventType, ...]) -> Work:
    label = np.concatenate([line.kind for line in lines]) if lines else np.zeros(0, np.int32)
    start = np.concatenate([line.start_ps for line in lines]) if lines else np.zeros(0, np.int64)
    length = (
        np.concatenate([line.duration_ps for line in lines]) if lines else np.zeros(0, np.int64)
    )
    labels = tuple(operation_label(kind) or ("", "", kind.name) for kind in types)
    return Work(labels, label, start, start + length, types)
