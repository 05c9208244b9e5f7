"""How the run ended, and its memory then."""

from dataclasses import dataclass
from enum import StrEnum

from tfdoctor.kinds import Phase
from tfdoctor.verdict import Location


class EndKind(StrEnum):
    """How a run ends."""

    EXIT = "exit"
    EXCEPTION = "exception"
    OUT_OF_MEMORY = "out of memory"  # MemoryError, ResourceExhaustedError, or the kernel's OOM kill
    KILLED = "killed"  # by a signal
    INTERRUPT = "interrupt"
    RUNNING = "running"  # or its end was not recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnding:
    """How the run ended: ``error`` is the exception's class, ``shape`` and ``dtype`` the failed tensor's."""

    kind: EndKind
    error: str = ""
    message: str = ""
    at: Location | None = None
    phase: Phase | None = None
    killed_by_kernel: bool = False
    shape: tuple[int, ...] = ()
    dtype: str = ""
    allocator: str = ""  # "GPU_0_bfc"
    wanted_bytes: float | None = None
    peak_bytes: float | None = None  # resident, of the process
    limit_bytes: float | None = None  # of the machine, or of its cgroup
    device_peak_bytes: float | None = None
