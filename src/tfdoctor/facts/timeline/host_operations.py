"""The operations of the training function on the host's threads, without tf.data's."""

import numpy as np

from tfdoctor.facts.timeline.host_events import executions_of, leaves, operation_label, select
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.facts.timeline.work import Work
from tfdoctor.trace import Trace
from tfdoctor.trace.names import ASSIGN, CAPTURED_FUNCTION, GRADIENT, INPUT_THREAD, UPDATE


def host_operations(trace: Trace, foreign: set[int], training: set[int]) -> Work:
    """Gather the training function's operations, without tf.data's and without those that contain others."""
    types, lines = trace.host.types if trace.host else (), []
    is_operation = np.array([bool(operation_label(kind)) for kind in types], dtype=bool)
    theirs, own = (np.array(sorted(runs), np.uint64) for runs in (foreign, training))
    for line in trace.host_lines:
        of_data = line.name.startswith(INPUT_THREAD)
        if len(line) and (training or not of_data):
            runs = executions_of(line)
            # Few of the events on tf.data's own threads belong to the training.
            ours = np.isin(runs, own) if of_data else ~np.isin(runs, theirs)
            chosen = select(line, is_operation[line.kind] & ours)
            lines.append(select(chosen, leaves(chosen)))
    kinds = np.concatenate([np.zeros(0, np.int32), *(line.kind for line in lines)])
    starts, lengths = (
        np.concatenate([np.zeros(0, np.int64), *(getattr(line, column) for line in lines)])
        for column in ("start_ps", "duration_ps")
    )
    labels = tuple(operation_label(kind) or ("", "", kind.name) for kind in types)
    return Work(labels, kinds, starts, starts + lengths, types)


def training_executions(trace: Trace, captured: set[int]) -> set[int]:
    """Return the executions of tf.data that take gradients and change weights."""
    if not captured or trace.host is None:
        return set()
    names = [kind.name for kind in trace.host.types]
    endings = [name.rpartition(":")[2] for name in names]
    gradients = np.array([bool(GRADIENT.search(name)) for name in names], dtype=bool)
    changes = np.array([bool(UPDATE.fullmatch(e) or ASSIGN.fullmatch(e)) for e in endings], bool)
    executions = [
        {int(run) for line in trace.host.lines for run in np.unique(executions_of(line, wanted))}
        for wanted in (gradients, changes)
    ]
    return captured & executions[0] & executions[1]


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
