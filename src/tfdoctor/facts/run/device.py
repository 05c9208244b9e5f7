"""Which device did the work, and whether the trace shows it."""

from tfdoctor.facts.kit import *
from tfdoctor.trace.names import DRIVER_LAUNCH, STREAM_PREFIX, TPU_OPS

NO_CUPTI = Unavailable(
    "GPU kernels were not recorded because the profiler could not load CUPTI",
    "install the CUDA toolkit's CUPTI (`pip install 'tensorflow[and-cuda]'`, or put extras/CUPTI/lib64 on "
    "LD_LIBRARY_PATH) and record again",
)
NO_PERMISSION = Unavailable(
    "GPU kernels were not recorded because the driver restricts its counters to administrators",
    "set the module option NVreg_RestrictProfilingToAdminUsers=0, or run the container with "
    "--cap-add=SYS_ADMIN, and record again",
)
NO_KERNELS = Unavailable("the trace shows a GPU but no kernel on it", "record steps that use the GPU")
NO_GPU = Unavailable(
    "GPU kernels were launched, but the GPU plane was removed from the trace",
    "use the original trace, or record again",
)

IDLE = 0.01  # Share of the busiest device's work below which a device (a few copies at startup) counts as unused


class Device(Record):
    """The kind of device that the run trained on, and its busiest one.

    ``missing`` says why its work is not in the trace, and ``busiest`` is then any device; None when it is.
    """

    kind: DeviceKind
    visible: int
    used: int
    busiest: Plane | None = None
    missing: Unavailable | None = None

    @classmethod
    def measure(cls, trace: Trace) -> Self:
        """Look for accelerators; a trace with neither accelerators nor launches is of a CPU run."""
        for kind in (DeviceKind.TPU, DeviceKind.GPU):
            planes = trace.devices(kind)
            busy = [Intervals.any_of(map(spans, work_lines(plane))).total for plane in planes]
            if busy:
                most = max(busy)
                used = sum(1 for total in busy if total and total >= IDLE * most)
                said = " ".join((*trace.errors, *trace.warnings)).lower()
                why = NO_PERMISSION if "privilege" in said else NO_CUPTI if "cupti" in said else NO_KERNELS
                return cls(kind, len(planes), used, planes[busy.index(most)], None if used else why)
        if trace.host and any(DRIVER_LAUNCH.match(one.name) for one in trace.host.types):
            return cls(DeviceKind.GPU, 0, 0, missing=NO_GPU)
        return cls(DeviceKind.CPU, 1, 1, trace.host)


def work_lines(plane: Plane) -> tuple[Line, ...]:
    """Return the lines that hold a device's own work; derived lines repeat the same time."""
    return tuple(line for line in plane.lines if line.name.startswith(STREAM_PREFIX) or line.name == TPU_OPS)


def spans(line: Line) -> Intervals:
    """Return when any event of a line ran."""
    return Intervals.merged(line.start_ps, line.start_ps + line.duration_ps)
