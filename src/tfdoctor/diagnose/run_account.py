"""The account of the run in a report, from the facts about its phases, steps, calls, memory and end."""

from collections.abc import Container, Iterable, Iterator

from tfdoctor.diagnosis import LongStepTime, PhaseLine, PhaseRow, PhaseSegment, RunAccount
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_ending import RunEnding
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
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
    steps, calls = chart.get(RunSteps), chart.get(RunCalls)
    return RunAccount(
        total_ms=phases.total_ms,
        rows=_rows(phases),
        segments=_segments(phases),
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
        for_epochs=epochs_to(chart, for_epochs),
        for_times=times_to(chart, for_epochs),
        window_share=steps.window_share if steps else None,
        window_steps=_window_steps(chart, steps),
        peak_bytes=_peak(chart),
        others=phases.others,
        notes=phases.notes,
        long_steps=_long_steps(steps, phases, chart.get(RunLongLines), chart.get(Cores)) if steps else None,
    )


def epochs_to(chart: Chart, asked: int | None) -> int | None:
    """Return the number of epochs to extrapolate the run to; None where none is known beyond those recorded.

    Without one asked for it is that of ``fit``'s own plan, where the recorded run had fewer.
    """
    calls = chart.get(RunCalls)
    if calls is None or not calls.epochs:
        return None
    if asked is not None:
        return asked
    planned = calls.planned_epochs
    return planned if planned is not None and planned > calls.epochs else None


def times_to(chart: Chart, asked: int | None) -> float | None:
    """Return how many times as much of what recurs a run of so many epochs has; None where that is unknown.

    The last epoch of a run that was ended early is a part of one: there the steps are counted.
    """
    epochs, calls, steps = epochs_to(chart, asked), chart.get(RunCalls), chart.get(RunSteps)
    if not epochs or calls is None:
        return None
    phases = chart.get(RunPhases)
    early = phases is not None and phases.ended_early
    if early and calls.epoch_steps and steps and steps.count:
        return epochs * calls.epoch_steps / steps.count
    return epochs / calls.epochs


def _rows(phases: RunPhases) -> tuple[PhaseRow, ...]:
    return tuple(
        PhaseRow(phase=phase, ms=phases.of(phase), lines=_lines(phases.at(phase)))
        for phase in Phase
        if phases.of(phase) > 0
    )


def _segments(phases: RunPhases) -> tuple[PhaseSegment, ...]:
    return tuple(
        PhaseSegment(phase=span.phase, start_ms=MS_PER_S * span.start_s, end_ms=MS_PER_S * span.end_s, at=span.at)
        for span in phases.spans
    )


def _lines(lines: Iterable[RunLine]) -> tuple[PhaseLine, ...]:
    """Return the lines that are sampled often enough to be named, largest first."""
    sure = [line for line in lines if line.sure]
    return tuple(
        PhaseLine(at=line.at, ms=line.ms, calls=line.calls, samples=line.samples)
        for line in sorted(sure, key=lambda line: -line.ms)[:SHOWN]
    )


def _window_steps(chart: Chart, steps: RunSteps | None) -> int:
    """Return how many steps were traced, where it is known what part of the run they stand for."""
    traced = chart.get(Steps) if steps and steps.window_share is not None else None
    return traced.count if traced else 0


def _peak(chart: Chart) -> float | None:
    """Return the most memory that was resident, in bytes, by the process itself and by samples of the machine."""
    ending, samples = chart.get(RunEnding), chart.get(Samples)
    known = (ending.peak_bytes if ending else None, samples.run_bytes if samples else None)
    return max((amount for amount in known if amount), default=None)


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
    lines = tuple(
        PhaseLine(at=line.at, ms=scale * line.ms, calls=line.calls, samples=line.samples) for line in named
    )
    unknown_ms = max(0.0, long.beyond_ms - sum(line.ms for line in lines))
    lines += tuple(_between_steps(steps, phases, unknown_ms, {line.at for line in lines}))
    return LongStepTime(
        count=long.count,
        ms=long.ms,
        beyond_ms=long.beyond_ms,
        lines=lines,
        unknown_ms=max(0.0, long.beyond_ms - sum(line.ms for line in lines)),
        first=long.first,
        first_beyond_ms=long.first_beyond_ms,
        every=long.every,
        other_cores=cores.others if cores and cores.contended else 0.0,
    )
