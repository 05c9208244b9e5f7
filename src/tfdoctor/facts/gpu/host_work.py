"""What the host does while a GPU idles: it waits for a batch, launches work, waits for the GPU or runs Python.

Only the trainer's threads count: another Python thread that fetches batches does not delay the training,
and `IteratorGetNext/_3:_Send` is the copy of a batch, not a wait for it.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.timeline.activity import Activity, captured_executions
from tfdoctor.facts.timeline.trainer import is_named, matching, spans_of, trainers
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.names import EXECUTOR, FUNCTION_RUNS, INPUT_THREAD, LAUNCH, PYTHON_CALL, SYNC, TRAINING_CALLS


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
            if line.name.startswith(INPUT_THREAD):
                continue
            launching = is_named(line, LAUNCH.fullmatch)
            launching[line.stats.having("correlation_id")] = True
            executes = np.flatnonzero(is_named(line, EXECUTOR.__eq__))
            of_input = np.isin(line.stats.ids_of("id", executes), captured)
            launching[executes[~of_input]] = True
            launches |= spans_of(line, launching) - blocked
        alone = None  # when the trainer's threads are in Python's frames and in no other event
        for line in trainers(lines):
            outer = np.zeros(len(line), bool)
            for stat in ("_r", "step_num", "tf_function_call"):  # around a step or a tf.function
                outer[line.stats.having(stat)] = True
            outer &= ~is_named(line, FUNCTION_RUNS.__contains__)
            outer |= is_named(line, TRAINING_CALLS.__contains__)
            outer |= is_named(line, PYTHON_CALL.fullmatch)
            alone = (alone or Intervals()) | (spans_of(line, outer) - spans_of(line, ~outer))
        return cls(activity.wait, launches | activity.dispatch - syncs, syncs, alone)
