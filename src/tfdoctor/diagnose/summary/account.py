"""The account of the run in a report, from the facts about its phases, steps, calls, memory and end."""

from collections.abc import Container, Iterator

from tfdoctor.diagnosis.work import LongStepTime, PhaseLine, PhaseRow, PhaseSegment, RunAccount
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_ending import RunEnding
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunLongLines, RunSteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.verdict import Location

SHOWN = 8  # Lines of a phase: the largest; what the others take together is small and no reader changes it

MS_PER_S = 1000.0


def run_account(chart: Chart, for_epochs: int | None = None) -> RunAccount | None:
    """Return the account of the run; None where nothing is known of its phases.

    ``for_epochs`` is the number that the user asked to extrapolate to.
    """
    phases = chart.get(RunPhases)
    if phases is None:
        return None
    steps, calls, traced = chart.get(RunSteps), chart.get(RunCalls), chart.get(Steps)
    ending, samples = chart.get(RunEnding), chart.get(Samples)
    epochs, times = extrapolation(chart, for_epochs)
    known_bytes = (ending.peak_bytes if ending else None, samples.run_bytes if samples else None)
    like = steps.window_share if steps else None
    return RunAccount(
        total_ms=phases.total_ms,
        rows=tuple(
            PhaseRow(phase=phase, ms=phases.of(phase), lines=_lines(phases, phase))
            for phase in Phase
            if phases.of(phase) > 0
        ),
        segments=tuple(
            PhaseSegment(phase=one.phase, start_ms=MS_PER_S * one.start_s, end_ms=MS_PER_S * one.end_s, at=one.at)
            for one in phases.spans
        ),
        whole=phases.whole,
        missing=phases.missing,
        finished=phases.finished,
        ended_early=phases.ended_early,
        unseen=phases.unseen,
        recurring_ms=phases.recurring_ms,
        steps=steps.count if steps else 0,
        step_loops=steps.loops if steps else 1,
        step_mean_ms=steps.mean_ms if steps else None,
        step_median_ms=steps.median_ms if steps else None,
        epochs=calls.epochs if calls else 0,
        planned_epochs=calls.planned_epochs if calls else None,
        for_epochs=epochs,
        for_times=times,
        window_share=like,
        window_steps=traced.count if traced and like is not None else 0,
        peak_bytes=max((amount for amount in known_bytes if amount), default=None),
        others=phases.others,
        notes=phases.notes,
        long_steps=_long_steps(steps, phases, chart.get(RunLongLines), chart.get(Cores)) if steps else None,
    )


def extrapolation(chart: Chart, asked: int | None) -> tuple[int | None, float | None]:
    """Return the number of epochs to extrapolate the run to, and how many times as much of what recurs they have.

    Both are None where none is known beyond the epochs recorded: without one asked for it is that of ``fit``'s own
    plan, where the recorded run had fewer. The last epoch of a run that was ended early is a part of one: there the
    steps are counted.
    """
    calls, steps, phases = chart.get(RunCalls), chart.get(RunSteps), chart.get(RunPhases)
    if calls is None or not calls.epochs:
        return None, None
    planned = calls.planned_epochs
    epochs = asked if asked is not None else planned if planned is not None and planned > calls.epochs else None
    if not epochs:
        return epochs, None
    if phases and phases.ended_early and calls.epoch_steps and steps and steps.count:
        return epochs, epochs * calls.epoch_steps / steps.count
    return epochs, epochs / calls.epochs


def _lines(phases: RunPhases, phase: Phase) -> tuple[PhaseLine, ...]:
    """Return the lines of a phase that are sampled often enough to be named, largest first."""
    sure = sorted((line for line in phases.at(phase) if line.sure), key=lambda line: -line.ms)
    return tuple(PhaseLine(at=one.at, ms=one.ms, calls=one.calls, samples=one.samples) for one in sure[:SHOWN])


def _between_steps(
    steps: RunSteps, phases: RunPhases, most_ms: float, named: Container[Location | None]
) -> Iterator[PhaseLine]:
    """Yield the lines of other phases between training steps, within what all steps take beyond their own phase."""
    trains = [span.start_s for span in phases.spans if span.phase is Phase.STEPS]
    inner = {(span.phase, span.at) for span in phases.spans if trains and trains[0] < span.start_s < trains[-1]}
    left_ms = min(most_ms, steps.total_ms - phases.of(Phase.STEPS)) if phases.whole else 0.0
    for line in phases.lines:
        own = line.phase is Phase.STEPS or line.at in named or (line.phase, line.at) not in inner
        if line.sure and not own and left_ms > 0:
            yield PhaseLine(at=line.at, ms=min(line.ms, left_ms), calls=line.calls, samples=line.samples)
            left_ms -= line.ms


def _long_steps(
    steps: RunSteps, phases: RunPhases, seen: RunLongLines | None, cores: Cores | None
) -> LongStepTime | None:
    """Return the time of long steps; that beyond usual ones is divided as the samples of them are.

    What they do not show is in the lines of other phases between training steps, as far as these have it.
    """
    long = steps.long
    if long is None or not long.count:
        return None
    known = seen.lines if seen else ()
    named = [one for one in known if one.sure or (steps.wait_longer and one.may_wait)][:SHOWN]
    scale = long.beyond_ms / seen.ms if seen and seen.ms else 0.0
    lines = [PhaseLine(at=one.at, ms=scale * one.ms, calls=one.calls, samples=one.samples) for one in named]
    unknown_ms = max(0.0, long.beyond_ms - sum(line.ms for line in lines))
    lines += _between_steps(steps, phases, unknown_ms, {line.at for line in lines})
    return LongStepTime(
        count=long.count,
        ms=long.ms,
        beyond_ms=long.beyond_ms,
        lines=tuple(lines),
        unknown_ms=max(0.0, long.beyond_ms - sum(line.ms for line in lines)),
        first=long.first,
        first_beyond_ms=long.first_beyond_ms,
        every=long.every,
        other_cores=cores.others if cores and cores.contended else 0.0,
    )
