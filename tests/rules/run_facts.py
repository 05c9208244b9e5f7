"""Facts of a run, written by hand."""

from tfdoctor.facts.phases.run_calls import MadeCall
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import LongSteps, RunSteps
from tfdoctor.kinds import Phase, RunCall
from tfdoctor.verdict import Location

SCRIPT = "train.py"


def line(  # noqa: PLR0913 - what a sampled line has
    phase: Phase,
    number: int,
    ms: float,
    calls: str = "",
    *,
    repeats: bool | None = True,
    samples: int = 100,
    function: str = "<module>",
    caller: int | None = None,
) -> RunLine:
    return RunLine(
        phase=phase,
        at=Location(SCRIPT, number),
        ms=ms,
        samples=samples,
        function=function,
        caller=Location(SCRIPT, caller) if caller else None,
        calls=calls,
        repeats=repeats,
    )


def phases(total_ms: float, times: dict[Phase, float], *lines: RunLine) -> RunPhases:
    """Return the phases of a run; what is left of its time is in steps."""
    known = dict(times)
    known[Phase.STEPS] = known.get(Phase.STEPS, 0.0) + total_ms - sum(known.values())
    return RunPhases(total_ms=total_ms, times=known, lines=lines)


def made(  # noqa: PLR0913 - what a call has
    call: RunCall,
    number: int,
    count: int,
    each_ms: float,
    *,
    name: str = "",
    examples: float | None = None,
    batches: float | None = None,
    looped: bool = False,
    within: RunCall = RunCall.SCRIPT,
    after: bool = False,
) -> MadeCall:
    return MadeCall(
        call=call,
        name=name or f"Model.{call}",
        at=Location(SCRIPT, number),
        count=count,
        ms=count * each_ms,
        examples=examples,
        batches=batches,
        looped=looped,
        within=within,
        after_training=after,
    )


def steps(count: int, each_ms: float, long: LongSteps | None = None) -> RunSteps:
    return RunSteps(
        at=Location(SCRIPT, 40),
        source="keras-fit",
        count=count,
        total_ms=count * each_ms,
        inside_ms=count * each_ms,
        mean_ms=each_ms,
        median_ms=each_ms,
        p10_ms=each_ms,
        p90_ms=each_ms,
        long=long,
    )
