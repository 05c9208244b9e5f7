"""How the host launches a TPU's programs: the gaps between runs, and whether the host was late.

`DoEnqueueProgram` on the host and the run on the line "XLA Modules" share run_id and queue_id. Both use
the host's clock. A core that has nothing queued waits until the next enqueueing ends.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.xla_runs import ProgramRuns, module_runs
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.trace import Trace

ENQUEUE = "DoEnqueueProgram"
"""The host hands a program to a core's queue (libtpu, v3 to v6e)."""

Run = tuple[int, int]
"""run_id and queue_id."""


@dataclass(frozen=True, slots=True)
class TpuLaunches:
    """The runs on the busiest core, all programs together. Milliseconds, summed over the window."""

    runs: int
    window_ms: float  # from the first run's start to the last one's end
    between_ms: float  # between two runs, where the core has no program
    late_ms: float | None  # the part until the host had enqueued the next run; None is unknown

    @classmethod
    def measure(cls, trace: Trace, device: Device) -> Self:
        """Match the core's runs to what the host enqueued.

        Raises:
            Unavailable: the device is no TPU, or ran fewer than two programs.
        """
        core = device.busiest if device.kind == DeviceKind.TPU else None
        modules = module_runs(core) if core else ()
        runs = sorted(run for module in modules for run in _runs(module))
        if core is None or len(runs) < 2:  # noqa: PLR2004 - no time between them
            raise Unavailable("the trace shows fewer than two runs of compiled programs on a TPU")
        gaps = [(end, start, run) for (_, end, _), (start, _, run) in pairwise(runs) if start > end]
        queued = _enqueued(trace, core.name.rpartition(":")[2])
        late = [min(start, queued[at]) - end for end, start, at in gaps if queued.get(at, end) > end]
        return cls(
            len(runs),
            (max(end for _, end, _ in runs) - runs[0][0]) / PS_PER_MS,
            sum(start - end for end, start, _ in gaps) / PS_PER_MS,
            sum(late) / PS_PER_MS if queued else None,
        )


def _runs(module: ProgramRuns) -> list[tuple[int, int, Run]]:
    names: list[Run] = list(module.runs) or [(-1, -1)] * len(module.starts_ps)
    return list(zip(module.starts_ps.tolist(), module.ends_ps.tolist(), names, strict=True))


def _enqueued(trace: Trace, core: str) -> dict[Run, int]:
    """Return when each run of this core was enqueued, in ps."""
    queued: dict[Run, int] = {}
    for event in trace.host_events(ENQUEUE):
        if "run_id" in event.stats and str(event.stats.get("device_ordinal", core)) == core:
            run = (int(event.stats["run_id"]), int(event.stats.get("queue_id", 0)))
            queued[run] = event.end_ps
    return queued
