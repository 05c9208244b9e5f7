"""The compute time of the operations that Python runs one by one, by the part of the step they run in."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
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
