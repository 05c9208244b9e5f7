"""How the host launches a TPU's programs: the gaps between runs, and whether the host was late.

`DoEnqueueProgram` on the host and the run on the line "XLA Modules" share run_id and queue_id. Both use
the host's clock. A core that has nothing queued waits until the next enqueueing ends.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.xla_programs import module_runs
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.trace import Trace

ENQUEUE = "DoEnqueueProgram"  # The host hands a program to a core's queue (libtpu, v3 to v6e)


@dataclass(frozen=True, slots=True)
class TpuLaunches:
    """The runs on the busiest core, all programs together. Milliseconds, summed over the window."""

    runs: int
    window_ms: float  # from the first run's start to the last one's end
    between_ms: float  # between two runs, where the core has no program
    late_ms: float | None  # the part until the host had enqueued the next run; None is unknown

    @classmethod
    def measure(cls, trace: Trace, device: Device) -> Self:
        """Match the core's runs to what the host enqueued."""
        core = device.busiest if device.kind == DeviceKind.TPU else None
        modules = module_runs(core) if core else ()
        named = ((one, one.runs or [(-1, -1)] * len(one.starts_ps)) for one in modules)
        runs = sorted(
            row for one, ids in named for row in zip(one.starts_ps.tolist(), one.ends_ps.tolist(), ids, strict=True)
        )
        if core is None or len(runs) < 2:  # noqa: PLR2004 - no time between them
            raise Unavailable("the trace shows fewer than two runs of compiled programs on a TPU")
        gaps = [(end, start, run) for (_, end, _), (start, _, run) in pairwise(runs) if start > end]
        number = core.name.rpartition(":")[2]
        queued = {  # when each run of this core was enqueued
            (int(event.stats["run_id"]), int(event.stats.get("queue_id", 0))): event.end_ps
            for event in trace.host_events(ENQUEUE)
            if "run_id" in event.stats and str(event.stats.get("device_ordinal", number)) == number
        }
        late = [min(start, queued[at]) - end for end, start, at in gaps if queued.get(at, end) > end]
        return cls(
            len(runs),
            (max(end for _, end, _ in runs) - runs[0][0]) / PS_PER_MS,
            sum(start - end for end, start, _ in gaps) / PS_PER_MS,
            sum(late) / PS_PER_MS if queued else None,
        )
