"""What the host does while a GPU idles: it waits for a batch, launches work, waits for the GPU or runs Python.

Only the trainer's threads count: another Python thread that fetches batches does not delay the training,
and `IteratorGetNext/_3:_Send` is the copy of a batch, not a wait for it.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.host_operations import captured_executions
from tfdoctor.facts.timeline.trainer import is_named, matching, spans_of, trainers
from tfdoctor.trace import Intervals, Line, Trace
from tfdoctor.trace.names import (
    EXECUTOR,
    FUNCTION_RUNS,
    INPUT_THREAD,
    LAUNCH,
    PYTHON_CALL,
    SYNC,
    TRAINING_CALLS,
)


@dataclass(frozen=True, slots=True, eq=False)
class HostWork:
    """When the threads that serve the training do each kind of work; the four may overlap."""

    waits: Intervals  # for the next batch
    launches: Intervals  # executors run, or the driver is called
    syncs: Intervals  # a call of the driver, or Python, blocks until the device is done
    python: Intervals | None  # Python runs, without TensorFlow inside it; None is unknown

    @classmethod
    def measure(cls, trace: Trace, activity: Activity) -> Self:
        """Sort the host's events thread by thread."""
        lines = [line for line in trace.host_lines if len(line)]
        captured = np.array(sorted(captured_executions(trace)), np.uint64)
        launches, syncs = Intervals(), Intervals()
        for line in lines:
            blocked = matching(line, SYNC)
            syncs |= blocked
            launches |= _launching(line, captured) - blocked
        return cls(activity.wait, launches | activity.dispatch - syncs, syncs, _python(lines))


def _launching(line: Line, captured: NDArray[np.uint64]) -> Intervals:
    """Return when a thread runs an executor of the training, or calls the driver to launch work."""
    if line.name.startswith(INPUT_THREAD):
        return Intervals()
    mask = is_named(line, LAUNCH.fullmatch)
    executes = np.flatnonzero(is_named(line, EXECUTOR.__eq__))
    runs = line.stats.ids_of("id", executes)
    mask[executes[~np.isin(runs, captured)]] = True
    mask[line.stats.having("correlation_id")] = True
    return spans_of(line, mask)


def _python(lines: list[Line]) -> Intervals | None:
    """Return when the trainer's threads run Python alone: in its frames and in no other event."""
    training = trainers(lines)
    if not training:
        return None
    python = Intervals()
    for line in training:
        outer = is_named(line, _of_python)
        outer |= _marks(line)
        python |= spans_of(line, outer) - spans_of(line, ~outer)
    return python


def _of_python(name: str) -> bool:
    return name in TRAINING_CALLS or bool(PYTHON_CALL.fullmatch(name))


def _marks(line: Line) -> NDArray[np.bool_]:
    """Return (n,) whether Python put an event around a step or a tf.function."""
    marks = np.zeros(len(line), bool)
    for stat in ("_r", "step_num", "tf_function_call"):
        marks[line.stats.having(stat)] = True
    return marks & ~is_named(line, FUNCTION_RUNS.__contains__)
