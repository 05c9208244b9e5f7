"""When XLA compiled while the run trained."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.steps.compilations import MOSTLY, compilations
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.trace import Trace
from tfdoctor.verdict import Stage


@dataclass(frozen=True, slots=True)
class CompileTime:
    """XLA's compilations in the traced steps; ms per training step.

    ``host_ms`` and ``between_ms`` lie inside and outside the call that is a step, in typical steps,
    while the device does nothing. ``share`` is the compiler's part of the whole traced time, 0 to 1,
    ``apart`` which steps hold it that are left out of the typical ones, by their place.
    """

    steps: int  # in which something was compiled
    of: int  # all steps
    late: int  # of the second half of the steps, how many
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
        inside = steady.ms(exposed & steady.calls)
        longest = max((end - start for start, end in compiling.spans), default=0)
        return cls(
            sum(holding),
            len(holding),
            sum(holding[len(holding) // 2 :]),
            inside,
            steady.ms(exposed) - inside,
            longest / 1e9,
            sum(within) / max(1, sum(long)),
            frozenset(
                place
                for place, steady in enumerate(steps.steady)
                if not steady and within[place] >= MOSTLY * long[place]
            ),
        )

    @property
    def total_ms(self) -> float:
        """Both."""
        return self.host_ms + self.between_ms
