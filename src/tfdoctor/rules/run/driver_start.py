from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)


class Limits(RuleLimits):
    least_ms: float = limit(1000.0)
    share: float = share_limit(0.01)


def check(boards: GpuBoards, phases: RunPhases, limits: Limits = Limits()) -> Verdict:
    """Compare the time to open the GPUs with the run, where nothing keeps the driver loaded."""
    modes = [board.persistence for board in boards.boards]
    if boards.opened_ms is None or all(mode is None for mode in modes):
        return NotApplicable(
            reason="the driver does not tell its persistence mode: Linux's does, in recordings of the whole run"
        )
    opened, share = milliseconds(boards.opened_ms), boards.opened_ms / phases.total_ms
    # Other programs that computed on each GPU when the run began had it open before.
    in_use, off = all(board.others_at_start for board in boards.boards), False in modes
    return judged(
        Measure("time to open all GPUs", ms(boards.opened_ms), ms(limits.least_ms)),
        Measure("GPUs with persistence mode off", count(modes.count(False))),
        healthy=f"Persistence mode is {'off, and' if off else 'on:'} the GPUs opened in {opened}",
        finding=f"Persistence mode is off, and the driver took {opened} to open the GPUs, as long as "
        f"{percent(share)} of the run",
        wrong=off and not in_use and boards.opened_ms >= limits.least_ms and share >= limits.share,
        remedies=[Remedy("Keep the NVIDIA driver loaded with nvidia-persistenced", CODE["persistence"])],
        severity=Severity.NOTE,
        concern=Concern.RUN,
    )
