"""Which device did the work, and whether the trace shows it."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.kinds import DeviceKind
from tfdoctor.trace import Intervals, Line, Plane, Trace
from tfdoctor.trace.names import DRIVER_LAUNCH, STREAM_PREFIX, TPU_OPS

NO_CUPTI = (
    "GPU kernels were not recorded because the profiler could not load CUPTI; install the CUDA "
    "toolkit's CUPTI (`pip install 'tensorflow[and-cuda]'`, or put extras/CUPTI/lib64 on "
    "LD_LIBRARY_PATH) and record again"
)
NO_PERMISSION = (
    "GPU kernels were not recorded because the driver keeps its counters for administrators; set "
    "the module option NVreg_RestrictProfilingToAdminUsers=0, or run the container with "
    "--cap-add=SYS_ADMIN, and record again"
)
NO_KERNELS = "the trace holds a GPU without a single kernel; record steps in which it works"
NO_GPU = (
    "GPU kernels were launched, but the trace holds no GPU: its plane was left out or removed; take "
    "the trace as the profiler wrote it, or record again"
)

IDLE = 0.01
"""Of the busiest device's work: one that does less (a few copies when the run starts) is not used."""


@dataclass(frozen=True, slots=True)
class Device:
    """The kind of device that the run trained on, and its busiest one.

    ``missing`` says why its work is not in the trace, of which ``busiest`` then is any; "" when it is.
    """

    kind: DeviceKind
    visible: int
    used: int
    busiest: Plane | None = None
    missing: str = ""

    @classmethod
    def measure(cls, trace: Trace) -> Self:
        """Look for accelerators; a trace with none, and without any launch, comes from a run on the CPU."""
        for kind in (DeviceKind.TPU, DeviceKind.GPU):
            planes = trace.devices(kind)
            if planes:
                return cls._accelerator(kind, planes, trace)
        if _launches(trace.host):
            return cls(DeviceKind.GPU, 0, 0, missing=NO_GPU)
        return cls(DeviceKind.CPU, 1, 1, trace.host)

    @classmethod
    def _accelerator(cls, kind: DeviceKind, planes: tuple[Plane, ...], trace: Trace) -> Self:
        busy = {plane.name: _busy(plane).total for plane in planes}
        most = max(busy.values())
        used = sum(1 for total in busy.values() if total and total >= IDLE * most)
        best = max(planes, key=lambda plane: busy[plane.name])
        return cls(kind, len(planes), used, best, "" if used else _why_missing(trace))


def work_lines(plane: Plane) -> tuple[Line, ...]:
    """Return the lines that hold a device's own work; derived lines repeat the same time."""
    return tuple(
        line for line in plane.lines if line.name.startswith(STREAM_PREFIX) or line.name == TPU_OPS
    )


def spans(line: Line) -> Intervals:
    """Return when anything of a line ran."""
    return Intervals.union(
        zip(line.start_ps.tolist(), (line.start_ps + line.duration_ps).tolist(), strict=True)
    )


def _launches(host: Plane | None) -> bool:
    """Say whether the host put kernels into a GPU's queue."""
    return host is not None and any(DRIVER_LAUNCH.match(kind.name) for kind in host.types)


def _busy(plane: Plane) -> Intervals:
    total = Intervals()
    for line in work_lines(plane):
        total |= spans(line)
    return total


def _why_missing(trace: Trace) -> str:
    said = " ".join((*trace.errors, *trace.warnings)).lower()
    if "insufficient_privileges" in said or "privilege" in said:
        return NO_PERMISSION
    return NO_CUPTI if "cupti" in said else NO_KERNELS
