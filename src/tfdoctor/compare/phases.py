"""The phases of two whole runs."""

from tfdoctor.compare.report_data import ReportData, RunData
from tfdoctor.comparison import ChangeOfRun, PhaseChange
from tfdoctor.kinds import Phase


def run_change(before: ReportData, after: ReportData) -> ChangeOfRun | None:
    """Return the times of the phases of two runs; None where one of them is not known whole.

    tfdoctor's own work is left out: how much of a run it takes depends on what was traced.
    """
    first, last = before.run, after.run
    if first is None or last is None or not (first.whole and last.whole):
        return None
    times = [_times(run) for run in (first, last)]
    shown = [phase for phase in Phase if any(phase in known for known in times)]
    return ChangeOfRun(
        before_ms=sum(times[0].values()),
        after_ms=sum(times[1].values()),
        phases=tuple(
            PhaseChange(
                phase=phase,
                before_ms=times[0].get(phase, 0.0),
                after_ms=times[1].get(phase, 0.0),
            )
            for phase in shown
        ),
        epochs=(first.epoch_count, last.epoch_count),
        steps=(first.step_count, last.step_count),
    )


def _times(run: RunData) -> dict[Phase, float]:
    """Return the time of each phase, in ms; a phase of a later tfdoctor is unnamed."""
    times: dict[Phase, float] = {}
    for row in run.phases:
        phase = Phase(row.phase) if row.phase in set(Phase) else Phase.UNNAMED
        times[phase] = times.get(phase, 0.0) + row.ms
    times.pop(Phase.PROFILER, None)
    return times
