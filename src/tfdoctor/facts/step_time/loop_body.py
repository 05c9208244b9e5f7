"""The time of the training loop's own Python outside of the functions that it calls, and of its operations."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.step_time.breakdown import WORKING, working
from tfdoctor.facts.step_time.retracing import function_calls
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.trainer import is_named, matching, spans_of, trainers
from tfdoctor.terms.kinds import DeviceKind, StepSource
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.names import EAGER_OPERATION, EXECUTOR, INPUT_THREAD


@dataclass(frozen=True, slots=True)
class LoopBody:
    """What Python does in a step while the device, the input and transfers are idle; ms per training step.

    Calls of tf.functions are left out. ``host_ms`` lies within the part of a step that is marked as the call,
    ``between_ms`` after it. In a loop over a dataset the mark lasts from one batch to the next, so that the
    loop's body lies within it; a mark around a call of fit's or of a function leaves the body outside.
    """

    host_ms: float
    between_ms: float

    @classmethod
    def measure(cls, trace: Trace, framework: Framework, steps: Steps, activity: Activity) -> Self:
        """Subtract from the steady steps what works and the calls of functions, on the trainer's threads.

        Raises:
            Unavailable: the trace does not show the functions that Python calls, or the device's work.
        """
        if framework.foreign:
            raise Unavailable(f"a run of {framework.title} has no tf.function")
        if activity.missing or activity.within_data:
            why = "tf.data itself runs the training, so the loop has no body in Python"
            raise Unavailable(activity.missing or why)
        taken = Intervals.any_of(map(function_calls, trainers(trace.host_lines)))
        if not taken:
            raise Unavailable("the trace does not show a tf.function that Python calls")
        steady = SteadySteps.of(steps)
        return cls(*steady.split_ms(Intervals.union(steady.stretches) - taken - working(activity, *WORKING)))


@dataclass(frozen=True, slots=True)
class SingleOperations:
    """Time of a CPU's operations outside of tf.functions, in ms per training step.

    The breakdown counts it as compute. A change that spares the Python that runs them spares it too: ``inside_ms``
    within the part of a step that is marked as the call, ``between_ms`` after it.
    """

    inside_ms: float
    between_ms: float

    @classmethod
    def measure(cls, trace: Trace, steps: Steps, activity: Activity, device: Device) -> Self:
        """Intersect the operations that Python starts with the device's work.

        Raises:
            Unavailable: an accelerator computes: its operations run beside the Python that starts them.
        """
        if device.kind != DeviceKind.CPU:
            raise Unavailable("operations run on the device, beside the Python that starts them")
        lines = trainers(trace.host_lines)
        single = Intervals.any_of(matching(line, EAGER_OPERATION) for line in lines)
        alone = (single - Intervals.any_of(map(function_calls, lines))) & activity.of(Stage.DEVICE)
        return cls(*SteadySteps.of(steps).split_ms(alone))


# Keras' own loops: what Python does around their calls is the cost of a call.
OF_KERAS = (StepSource.KERAS_FIT, StepSource.KERAS_TRAIN_ON_BATCH)


@dataclass(frozen=True, slots=True)
class PythonOverhead:
    """The time to enter and leave the training call from Python, in ms per training step.

    ``edges_ms`` lie within the call: before its first operation and after its last, less the waits for
    input. ``between_ms`` is the time between two calls in which nothing works. ``pauses_ms`` lie between the
    operations of a call, while no thread of a graph's executor works: threads wake up. In a loop of the user's,
    its body counts to none of them: what it does may grow with the batch, and one call of several steps keeps it.
    ``body_between_ms`` is what was left out of ``between_ms`` for it.
    """

    edges_ms: float
    between_ms: float
    pauses_ms: float = 0.0
    body_between_ms: float = 0.0

    @classmethod
    def measure(cls, steps: Steps, activity: Activity, trace: Trace, body: LoopBody | None) -> Self:
        """Measure the steady steps, scaled to the median step as in Breakdown.

        Raises:
            Unavailable: the device's work was not recorded, or tf.data itself runs the training.
        """
        in_data = "tf.data itself runs the training, so there are no calls from Python"
        if activity.missing or activity.within_data:
            raise Unavailable(activity.missing or in_data)
        device = activity.of(Stage.DEVICE)
        waits = working(activity, Stage.INPUT, Stage.TRANSFER, Stage.COLLECTIVE)
        lines = [line for line in trace.host_lines if not line.name.startswith(INPUT_THREAD)]
        executors = [spans_of(line, is_named(line, EXECUTOR.__eq__)) for line in lines if len(line)]
        executing = Intervals.any_of([device, waits, *executors])
        chosen = steps.steady_steps
        whole, calls = sum(s.end_ps - s.start_ps for s in chosen), sum(s.calls for s in chosen)
        mean = whole / PS_PER_MS / calls
        scale = steps.usual_ms / mean / PS_PER_MS / calls if whole else 0.0
        own = None if steps.source in OF_KERAS else body
        inside_ms, after_ms = (own.host_ms, own.between_ms) if own else (0.0, 0.0)
        idle = [_idle_ps(step, device, waits, executing) for step in chosen]
        edges_ms, between_ms, pauses_ms = (scale * sum(ps) for ps in zip(*idle, strict=True))
        return cls(
            max(0.0, edges_ms - inside_ms), max(0.0, between_ms - after_ms), pauses_ms, min(between_ms, after_ms)
        )

    @property
    def total_ms(self) -> float:
        """The time at the edges of the calls and between them, in ms per step."""
        return self.edges_ms + self.between_ms


def _idle_ps(step: Step, device: Intervals, waits: Intervals, executing: Intervals) -> tuple[int, int, int]:
    """Return the ps in which nothing works: at the edges of a call, between it and the next, and in its pauses.

    The edges lie before its first operation and after its last, the pauses between two.
    """
    after = step.call_end_ps, step.end_ps
    between = after[1] - after[0] - (device.within(*after) | waits.within(*after)).total
    work = device.within(step.start_ps, step.call_end_ps)
    if not work:
        return 0, between, 0  # its operations were not recorded
    first, last = work.bounds_ps
    edges = Intervals.union(((step.start_ps, first), (last, step.call_end_ps))) - waits
    return edges.total, between, last - first - executing.within(first, last).total
