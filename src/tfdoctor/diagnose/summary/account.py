"""The account of the run in a report, from the facts about its phases, steps, calls, memory and end."""

from collections.abc import Iterator, Sequence

from tfdoctor.diagnose.summary.imports import imported_packages
from tfdoctor.diagnosis.work import PhaseRow, RunAccount
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_ending import RunEnding
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import RunLongLines, RunSteps
from tfdoctor.facts.phases.worker_times import WorkerTimes
from tfdoctor.facts.run_work.line_groups import LineGroup
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import common
from tfdoctor.terms.run_time import LongStepTime, PhaseLine, WorkersTime

MOST = 0.5  # Share of the time of a phase
SHOWN = 8  # Lines of a phase: the largest; what the others take together is small and no reader changes it


def run_account(chart: Chart, for_epochs: int | None = None) -> RunAccount | None:
    """Return the account of the run; None where nothing is known of its phases.

    ``for_epochs`` is the number that the user asked to extrapolate to.
    """
    phases, steps, traced = chart.get(RunPhases), chart.get(RunSteps), chart.get(Steps)
    if phases is None:
        return None
    ending, samples, workers = chart.get(RunEnding), chart.get(Samples), chart.get(WorkerTimes)
    epochs, times = extrapolation(chart, for_epochs)
    known_bytes = (ending.peak_bytes if ending else None, samples.run_bytes if samples else None)
    rows = []
    for phase in (phase for phase in Phase if phases.of(phase) > 0):
        lines = sorted((line for line in phases.at(phase) if line.sure), key=lambda line: -line.ms)
        shown = (*_leading(lines), *(common(PhaseLine, line) for line in lines[:SHOWN]))
        rows.append(PhaseRow(phase=phase, ms=phases.of(phase), lines=shown))
    return common(
        RunAccount,
        phases,
        chart.get(RunCalls),
        rows=tuple(rows),
        segments=phases.spans,
        imports=imported_packages(chart),
        steps=steps.count if steps else 0,
        step_loops=steps.loops if steps else 1,
        step_mean_ms=steps.mean_ms if steps else None,
        step_median_ms=steps.median_ms if steps else None,
        for_epochs=epochs,
        for_times=times,
        window_share=steps.window_share if steps else None,
        window_steps=traced.count if traced and steps and steps.window_share is not None else 0,
        peak_bytes=max((amount for amount in known_bytes if amount), default=None),
        workers=common(WorkersTime, workers) if workers else None,
        long_steps=_long_steps(steps, phases, chart.get(RunLongLines), chart.get(Cores)) if steps else None,
    )


def _leading(lines: Sequence[RunLine]) -> Iterator[PhaseLine]:
    """Yield the lines that lead to most of a phase, where none of its own lines takes as much."""
    group = LineGroup(tuple(lines))
    if lines and lines[0].ms < MOST * group.ms:
        yield from (PhaseLine(at=at, ms=ms, leads=True) for at, ms in group.leading)


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


def _long_steps(
    steps: RunSteps, phases: RunPhases, seen: RunLongLines | None, cores: Cores | None
) -> LongStepTime | None:
    """Return the time of long steps; that beyond usual ones is divided as the samples of them are.

    What they do not show is in the lines of other phases between training steps, within what all steps take beyond
    their own phase.
    """
    long = steps.long
    if long is None or not long.count:
        return None
    known = seen.lines if seen else ()
    named = [one for one in known if one.sure or (steps.wait_longer and one.may_wait)][:SHOWN]
    scale = long.beyond_ms / seen.ms if seen and seen.ms else 0.0
    lines = [common(PhaseLine, one, ms=scale * one.ms) for one in named]
    unknown_ms = max(0.0, long.beyond_ms - sum(line.ms for line in lines))
    others_ms = min(unknown_ms, steps.total_ms - phases.of(Phase.STEPS)) if phases.whole else 0.0
    trains = [span.start_ms for span in phases.spans if span.phase is Phase.STEPS]
    inner = {(one.phase, one.at) for one in phases.spans if trains and trains[0] < one.start_ms < trains[-1]}
    places = {line.at for line in lines}
    for line in phases.lines:
        other = line.phase is not Phase.STEPS and line.at not in places and (line.phase, line.at) in inner
        if line.sure and other and others_ms > 0:
            lines.append(common(PhaseLine, line, ms=min(line.ms, others_ms)))
            others_ms -= line.ms
    unknown_ms = max(0.0, long.beyond_ms - sum(line.ms for line in lines))
    disturbing = cores.others if cores and cores.contended else 0.0
    return common(LongStepTime, long, lines=tuple(lines), unknown_ms=unknown_ms, other_cores=disturbing)
