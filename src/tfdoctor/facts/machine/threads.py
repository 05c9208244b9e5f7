"""How many of the host's threads were at work in the traced steps, and in which operations.

An operation of oneDNN or Eigen divides its work among the threads of the *intra-op* pool. Its event
lies on the thread that called it; the pool's threads show their part as tasks on their own lines.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.operation_types import base_type
from tfdoctor.facts.steps.steps import Steps, StepSpans
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.host_events import executors, leaves, operation_label, select
from tfdoctor.facts.timeline.trainer import spans_of
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Intervals, Line, Trace
from tfdoctor.trace.names import EXECUTOR, EXECUTOR_DONE, INPUT_THREAD

NO_TASKS = (
    "the trace contains no task of the intra-op pool: the pool has a single thread, or this version of "
    "TensorFlow does not record its tasks"
)


@dataclass(frozen=True, slots=True)
class Threads:
    """Means over the traced steps, in threads.

    ``at_work`` counts the threads that computed or made input. It is a lower bound: the trace does not show
    Python, nor the pool's threads in versions of TensorFlow that do not record them. ``by_type`` has the
    threads at work while operations of a type ran, including those of the intra-op pool, which operations
    that ran at the same time share. ``why_unknown`` says why it is empty.
    """

    at_work: float
    by_type: Mapping[str, float]
    why_unknown: str = ""

    @classmethod
    def measure(cls, trace: Trace, activity: Activity, device: Device, steps: Steps) -> Self:
        """Count the threads at work from the first traced step to the last."""
        if trace.host is None:
            raise Unavailable("the trace contains no threads of the host; trace the host too")
        window = StepSpans.of(steps)
        start, end = window.starts_ps[0], steps.steps[-1].end_ps
        tasks = np.concatenate([np.zeros((0, 2), np.int64), *(line.tasks_ps for line in trace.host.lines)])
        pool = Pool(*np.sort(tasks, axis=0).T)
        busy = sum(_at_work(line).within(start, end).total for line in trace.host.lines)
        at_work = float((busy + pool.until(end) - pool.until(start)) / max(1, end - start))
        if device.kind != DeviceKind.CPU:
            return cls(at_work, {}, "operations run on the device, not on the host's threads")
        if not len(tasks):
            return cls(at_work, {}, NO_TASKS)
        work = activity.stages[Stage.DEVICE]
        size, kinds = len(work.labels), [base_type(kind) for _, kind, _ in work.labels]
        own = np.bincount(work.label, work.end_ps - work.start_ps, size)
        shared = np.bincount(work.label, pool.until(work.end_ps) - pool.until(work.start_ps), size)
        times: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for label in np.unique(work.label).tolist():
            times[kinds[label]][0] += float(own[label])
            times[kinds[label]][1] += float(shared[label])
        order = sorted(times, key=lambda kind: -times[kind][0])
        return cls(at_work, {kind: 1.0 + times[kind][1] / times[kind][0] for kind in order if times[kind][0]})


class Pool(NamedTuple):
    """The intra-op pool's work as a running total: when its tasks began and ended, each in order."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def until(self, times: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """Return (n,) the thread-ps worked before each time."""
        begun, done = np.searchsorted(self.starts, times), np.searchsorted(self.ends, times)
        sum_starts, sum_ends = (np.concatenate(([0], np.cumsum(edges))) for edges in self)
        total: NDArray[np.int64] = (begun - done) * np.asarray(times) - sum_starts[begun] + sum_ends[done]
        return total


def _at_work(line: Line) -> Intervals:
    """Return when a thread computed: its operations, or on tf.data's threads all that they execute."""
    if line.name.startswith(INPUT_THREAD):
        starts, ends, _ = executors(line, EXECUTOR)
        done, done_ends, _ = executors(line, EXECUTOR_DONE)
        return Intervals.merged(np.append(starts, done), np.append(ends, done_ends))
    chosen = select(line, line.table.passing(operation_label)[line.kind])
    return spans_of(chosen, leaves(chosen))
