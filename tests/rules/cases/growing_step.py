"""The cases of growing-step: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.machine.samples import GpuClocks
from tfdoctor.rules.run.growing_step import check
from tfdoctor.rules.run.growing_step.longer_times import LongerTimes, SlowingCall, StepLine

GROWS = Trend(
    what=Grows.STEP, first=41.0, last=96.0, slope=2.7, low=2.5, high=2.9, steady=True, points=200, over_steps=300
)  # fmt: skip
"""The step time of the examples."""

STEPS = RunSteps(
    at=Location("train.py", 48), source="session-run", count=330, total_ms=22_600.0,
    mean_ms=68.5, median_ms=68.0, p10_ms=45.0, p90_ms=92.0,
)  # fmt: skip

PHASES = RunPhases(total_ms=30e3, times={Phase.STEPS: 22_600.0, Phase.IMPORTS: 7_400.0})


def example(
    *trends: Trend,
    steps: RunSteps = STEPS,
    phases: RunPhases = PHASES,
    lines: tuple[StepLine, ...] = (),
    calls: tuple[SlowingCall, ...] = (),
    clocks: GpuClocks | None = None,
) -> Verdict:
    """Judge a run of 330 steps with these trends."""
    return check(phases, RunGrowth(trends, 20.0), steps, LongerTimes(lines, calls), clocks)


def sick() -> Verdict:
    """The default graph grows by 12 operations a step, and the steps get slower."""
    graph = replace(GROWS, what=Grows.GRAPH, first=400, last=4000, slope=180, low=170, high=190)
    at = Location("train.py", 48)
    line = StepLine(at=at, first_ms=36.0, last_ms=90.0, samples=180, calls="Session.run")
    return example(GROWS, graph, lines=(line,))


def healthy() -> Verdict:
    """The steps take the same time at the end."""
    return example(replace(GROWS, last=41.2, slope=0.01, low=-0.05, high=0.06))
