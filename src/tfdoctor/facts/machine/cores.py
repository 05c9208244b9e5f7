"""How many of the host's cores and threads were at work in the traced steps, and whether input and compute compete.

An operation of oneDNN or Eigen divides its work among the threads of the *intra-op* pool. Its event
lies on the thread that called it; the pool's threads show their part as tasks on their own lines.
"""

from tfdoctor.facts.kit import *
from tfdoctor.facts.machine.samples import BUSY_CORES, Samples
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.operation_types import base_type
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.host_events import executors, leaves, operation_label, select, spans_of
from tfdoctor.trace.names import EXECUTOR, EXECUTOR_DONE, INPUT_THREAD

# Share of busy cores from which threads wait for each other, as in starved-cpu; below 1 because the samples of a
# short window also cover the time around it.
CROWDED = 0.75
# Share of the compute that is left in any case where it no longer shares the cores: the scheduler gives as many
# threads of the input no more than the compute's.
SHARED = 0.5
NO_TASKS = (
    "the trace contains no task of the intra-op pool: the pool has a single thread, or this version of "
    "TensorFlow does not record its tasks"
)


class Threads(Record):
    """Means over the traced steps, in threads.

    They are lower bounds: the trace does not show Python, nor the pool's threads in versions of TensorFlow that do
    not record them.
    """

    at_work: float  # that computed or made input
    by_type: Mapping[str, float]  # while operations of a type ran, with the pool's, shared by those at once
    why_unknown: str = ""  # why ``by_type`` is empty

    @classmethod
    def measure(cls, trace: Trace, activity: Activity, device: Device, steps: Steps) -> Self:
        """Count the threads at work from the first traced step to the last."""
        if trace.host is None:
            raise Unavailable("the trace contains no threads of the host; trace the host too")
        start, end = steps.steady_spans.starts_ps[0], steps.steps[-1].end_ps
        tasks = np.concatenate([np.zeros((0, 2), np.int64), *(line.tasks_ps for line in trace.host.lines)])
        begins, ends = np.sort(tasks, axis=0).T
        before, done_before = (np.concatenate(([0], np.cumsum(edges))) for edges in (begins, ends))

        def pool(times: NDArray[np.int64] | int) -> NDArray[np.int64]:
            """Return (n,) the thread-ps that the intra-op pool worked before each time."""
            begun, done = begins.searchsorted(times), ends.searchsorted(times)
            total: NDArray[np.int64] = (begun - done) * np.asarray(times) - before[begun] + done_before[done]
            return total

        busy = sum(_at_work(line).within(start, end).total for line in trace.host.lines)
        at_work = float((busy + pool(end) - pool(start)) / max(1, end - start))
        if device.kind != DeviceKind.CPU:
            return cls(at_work, {}, "operations run on the device, not on the host's threads")
        if not len(tasks):
            return cls(at_work, {}, NO_TASKS)
        work = activity.stages[Stage.DEVICE]
        size, kinds = len(work.labels), [base_type(kind) for _, kind, _ in work.labels]
        own = np.bincount(work.label, work.end_ps - work.start_ps, size)
        shared = np.bincount(work.label, pool(work.end_ps) - pool(work.start_ps), size)
        labels = np.unique(work.label).tolist()
        alone, pooled = (summed((kinds[one], float(ps[one])) for one in labels) for ps in (own, shared))
        return cls(at_work, {kind: 1.0 + pooled[kind] / ps for kind, ps in alone.items() if ps})


def _at_work(line: Line) -> Intervals:
    """Return when a thread computed: its operations, or on tf.data's threads all that they execute."""
    if line.name.startswith(INPUT_THREAD):
        starts, ends, _ = executors(line, EXECUTOR)
        done, done_ends, _ = executors(line, EXECUTOR_DONE)
        return Intervals.merged(np.append(starts, done), np.append(ends, done_ends))
    chosen = select(line, line.types.passing(operation_label)[line.kind])
    return spans_of(chosen, leaves(chosen))


class Cores(Record):
    """Means over the traced steps, in logical CPUs: input and compute share them on a CPU."""

    usable: float  # by the run
    busy: float  # with the run's work
    others: float = 0.0  # busy with other programs' work
    sampled: bool = True  # by the operating system; else ``busy`` is what the trace shows of threads, a lower bound

    @classmethod
    def measure(
        cls, hardware: Hardware, samples: Samples | None, threads: Threads | Unavailable, framework: Framework
    ) -> Self:
        """Take the samples, else count the busy threads in the trace."""
        if not hardware.cores:
            how = framework.with_tfdoctor
            raise Unavailable(f"the recording does not say how many cores the run may use{how}")
        if samples is not None and samples.run_cores is not None:
            return cls(hardware.cores, samples.run_cores, samples.other_cores or 0.0)
        if isinstance(threads, Unavailable):
            raise threads
        return cls(hardware.cores, min(threads.at_work, hardware.cores), sampled=False)

    @property
    def certain(self) -> bool:
        """Whether free cores were sampled, and no other program competes for them."""
        return self.sampled and self.others <= BUSY_CORES

    @property
    def contended(self) -> bool:
        """Whether other programs took cores while there were none to spare."""
        return self.sampled and self.others > BUSY_CORES and self.crowded

    @property
    def crowded(self) -> bool:
        """Whether so many cores are busy, with other programs' work too, that threads wait for each other."""
        return self.busy + self.others >= CROWDED * self.usable

    @property
    def free(self) -> float:
        """The cores that the run did not use, those of other programs included, which more threads would share."""
        return max(0.0, self.usable - self.busy)

    def for_stage(self, kind: DeviceKind) -> float:
        """Return how many cores one thread of the input could spread its work over, the one it has included.

        On a CPU run, compute and input take turns or share all cores, which the step model accounts for.
        """
        return max(1.0, self.usable if kind == DeviceKind.CPU else 1.0 + self.free)

    @property
    def share(self) -> float:
        """The share of its usable cores that the run kept busy, 0 to 1."""
        return min(1.0, self.busy / self.usable)


class CpuContention(Record):
    """Whether the input's threads keep the step's own from the cores; times in ms per step."""

    crowded: bool | None  # None is unknown
    cores: float = 1.0  # usable by the run
    compute_ms: float = 0.0
    beside: float = 1.0  # the share of the step in which the trainer does not wait for input
    others: float = 0.0  # cores that other programs used while none was free; 0.0 where one was

    @classmethod
    def measure(cls, device: Device, cores: Cores | None, breakdown: Breakdown) -> Self:
        """Read the sampled cores; an accelerator computes without them."""
        others = cores.others if cores and cores.contended else 0.0
        if device.kind != DeviceKind.CPU:
            return cls(crowded=False, others=others)
        if cores is None or not cores.sampled:
            return cls(crowded=None)
        beside = 1.0 - breakdown["input"] / breakdown.step_ms
        return cls(cores.crowded, cores.usable, breakdown["device"], beside, others)

    @property
    def disturbance(self) -> str:
        """What other programs did to the run, as a clause; "" where a core was free for it."""
        if not self.others:
            return ""
        return (
            f"other programs used {with_noun(self.others, 'core')} while none was free; record on an idle machine"
        )

    def taken_ms(self, work_ms: float) -> float:
        """Return by how much at most this much of the input's work slows the compute, in ms.

        A ceiling, because it assumes that the compute can use all cores that the input leaves free.
        """
        return min(work_ms * self.beside / self.cores, self.compute_ms) if self.crowded else 0.0

    def crowds_out(self, work_ms: float, step_ms: float, least: float) -> bool:
        """Whether this much of the input's work slows the compute by at least a share of the step, 0 to 1.

        Then less of this work may shorten a step that never waits for its input.
        """
        return self.taken_ms(work_ms) >= least * step_ms > 0.0

    def relief(self, work_ms: float) -> tuple[Effect, ...]:
        """Return the compute's gain when this much of the input's work is gone: a ceiling."""
        taken = self.taken_ms(work_ms)
        if not taken:
            return ()
        left = max(SHARED, 1.0 - taken / self.compute_ms)
        why = f"it shares {with_noun(self.cores, 'core')} with {milliseconds(work_ms)} of this input work per step"
        return (Effect(Stage.DEVICE, left, of=ms(self.compute_ms), bound=Bound.AT_MOST, why=why),)
