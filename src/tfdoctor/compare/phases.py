"""The phases of two whole runs."""

from tfdoctor.diagnosis import Diagnosis, RunAccount
from tfdoctor.diagnosis.comparison import ChangeOfRun, PhaseChange
from tfdoctor.terms.kinds import Phase


def run_change(before: Diagnosis, after: Diagnosis) -> ChangeOfRun | None:
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
            PhaseChange(phase=phase, before_ms=times[0].get(phase, 0.0), after_ms=times[1].get(phase, 0.0))
            for phase in shown
        ),
        epochs=(first.epochs, last.epochs),
        steps=(first.steps, last.steps),
        ended_early=first.ended_early or last.ended_early,
    )


def _times(run: RunAccount) -> dict[Phase, float]:
    """Return the time of each phase, in ms."""
    times: dict[Phase, float] = {}
    for row in run.rows:
        times[row.phase] = times.get(row.phase, 0.0) + row.ms
    times.pop(Phase.PROFILER, None)
    return times
