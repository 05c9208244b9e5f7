"""The times of hot work as a report states them: of a step without the profiler's cost, where that is known."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.hot_operation.hot_work import HotWork
from tfdoctor.terms.verdict import Stage


@dataclass(frozen=True, slots=True)
class Stated:
    """The step that times are of, and the shares of traced time, 0 to 1, that are not the profiler's.

    ``left_ms`` is what no specific finding names of the device's traced time: together, hot work takes no more.
    """

    step_ms: float
    each_step: str
    left_ms: float
    per_step: str = "per step"  # the end of a label of a time
    device: float = 1.0
    host: float = 1.0

    @classmethod
    def of(cls, model: StepModel | None, breakdown: Breakdown, unexplained: Unexplained) -> Self:
        """Take the step of the verdict and of all savings."""
        left_ms = unexplained.parts_ms.get(Stage.DEVICE, 0.0)
        if model is None or model.tracing is None:
            return cls(breakdown.step_ms, breakdown.each_step, left_ms)
        return cls(
            model.step_ms,
            "each untraced step",
            left_ms,
            "per untraced step",
            device=model.kept(Stage.DEVICE),
            host=model.kept(Stage.HOST),
        )

    def ms_of(self, *hot: HotWork) -> float:
        """Return the time of hot work, in ms per step."""
        device_ms = min(self.left_ms, sum(one.device_ms for one in hot))
        return self.device * device_ms + self.host * sum(one.host_ms for one in hot)
