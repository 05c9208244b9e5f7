"""When XLA compiled while the run trained."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.steps.compilations import MOSTLY, compilations
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Trace


@dataclass(frozen=True, slots=True)
class CompileTime:
    """XLA's compilations in the traced steps; ms per training step.

    ``host_ms`` and ``between_ms`` lie inside and outside the call that is a step, in steady steps, while
    the device is idle. ``share`` is the compiler's share of the whole traced time, 0 to 1. ``apart`` has
    the places of the outlier steps that mostly compile.
    """

    steps: int  # with a compilation
    of: int  # all steps
    late: int  # steps with a compilation in the second half of all steps
    host_ms: float = 0.0
    between_ms: float = 0.0
    longest_ms: float = 0.0  # of one compilation
    share: float = 0.0
    apart: frozenset[int] = frozenset()

    @classmethod
    def measure(cls, trace: Trace, steps: Steps, activity: Activity) -> Self:
        """Find the compiler's own events on any thread of the host."""
        compiling = compilations(trace)
        within = [compiling.within(step.start_ps, step.end_ps).total for step in steps.steps]
        holding = [bool(time) for time in within]
        long = [step.end_ps - step.start_ps for step in steps.steps]
        steady = SteadySteps.of(steps)
        exposed = compiling - activity.of(Stage.DEVICE)
        longest = int((compiling.ends_ps - compiling.starts_ps).max(initial=0))
        return cls(
            sum(holding),
            len(holding),
            sum(holding[len(holding) // 2 :]),
            *steady.split_ms(exposed),
            longest / 1e9,
            sum(within) / max(1, sum(long)),
            frozenset(
                at for at, steady in enumerate(steps.steady) if not steady and within[at] >= MOSTLY * long[at]
            ),
        )

    @property
    def total_ms(self) -> float:
        """The exposed time of compiling, inside and outside of the call, in ms per step."""
        return self.host_ms + self.between_ms
