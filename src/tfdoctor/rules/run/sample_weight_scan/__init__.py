from tfdoctor.families.kit import *
from tfdoctor.rules.run.sample_weight_scan.weight_scans import WeightScans

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)


class Limits(RuleLimits):
    share: float = share_limit(0.02)
    least_ms: float = limit(500.0)


def check(scans: WeightScans, phases: RunPhases, limits: Limits = Limits()) -> Verdict:
    """Compare the time in scans with the run."""
    if not scans.lines:
        return Healthy(summary="No sample of the run shows a scan of sample weights", concern=Concern.RUN)
    taken, at = sum(line.ms for line in scans.lines), scans.lines[0].at
    share = taken / phases.total_ms if phases.total_ms else 0.0
    time = f"{milliseconds(taken)} ({percent(share)} of the run)"
    summary = f"Keras looks through sample weights one by one for {time}"
    return judged(
        Measure("time in scans of sample weights", ms(taken), ms(limits.least_ms)),
        Measure.share("share of the run in scans of sample weights", share, limits.share),
        Measure("stack samples in scans", count(sum(line.samples for line in scans.lines))),
        healthy=summary,
        finding=f"{summary} at {location(at)}" if at else summary,
        remedies=[Remedy("Pass the weights in a list, one entry for each output", CODE["in-a-list"], at)],
        run_effects=(
            RunEffect(phase=line.phase, of=ms(line.ms), subject=location(line.at) if line.at else "")
            for line in scans.lines
        ),
        concern=Concern.RUN,
    )
