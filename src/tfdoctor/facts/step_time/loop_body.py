"""The time of the training loop's own Python outside of the functions that it calls, and of its operations."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.step_time.breakdown import WORKING, working
from tfdoctor.facts.step_time.retracing import function_calls
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.trainer import matching, trainers
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.names import EAGER_OPERATION


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
