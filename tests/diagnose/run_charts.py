"""Runs as facts, for the stages that price and order findings by the run. Times are ms."""

from collections.abc import Mapping

from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_ending import RunEnding
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import LongSteps, RunLongLines, RunSteps
from tfdoctor.facts.savings.run_model import RunModel
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import PARTS
from tfdoctor.terms.kinds import DeviceKind, Phase

ONCE = (Phase.START, Phase.IMPORTS, Phase.PREPARING, Phase.BUILDING, Phase.END)


def phases_of(times: Mapping[Phase, float], *, whole: bool = True) -> RunPhases:
    """A run of these phases, of which those around the training come once."""
    once = sum(time for phase, time in times.items() if phase in ONCE)
    return RunPhases(
        total_ms=sum(times.values()),
        times=times,
        once_ms=once,
        whole=whole,
        missing="" if whole else "only the traced window is known",
    )


def steps_of(
    count: int, each_ms: float, long: LongSteps | None = None, window_share: float | None = None
) -> RunSteps:
    """Steps that are alike, and the time of long ones on top."""
    beyond = long.beyond_ms if long else 0.0
    total = count * each_ms + beyond
    return RunSteps(
        at=None,
        source="keras-fit",
        count=count,
        total_ms=total,
        mean_ms=total / count,
        median_ms=each_ms,
        p10_ms=each_ms,
        p90_ms=each_ms,
        long=long,
        window_share=window_share,
    )


def step_model(**parts: float) -> StepModel:
    """A GPU's step, of these parts."""
    exposed = {str(one): parts.get(str(one), 0.0) for one in PARTS}
    return StepModel(device=DeviceKind.GPU, exposed=exposed)


def run_chart(
    phases: RunPhases | None, steps: RunSteps | None = None, step: StepModel | None = None, *more: object
) -> Chart:
    """The chart of a run; what is not given is unavailable."""
    given = [part for part in (phases, steps, step, *more) if part is not None]
    if phases is not None:
        given.append(RunModel(phases, steps, step))
    known = {type(part) for part in given}
    kinds: tuple[type, ...] = (
        *(RunPhases, RunSteps, StepModel, RunModel),
        *(RunCalls, RunEnding, RunLongLines, Samples),
    )
    missing = {kind: Unavailable("not recorded") for kind in kinds if kind not in known}
    return Chart(given, missing=missing)
