"""How the run ended, and its memory then."""

from signal import SIGINT, SIGKILL

from tfdoctor.facts.kit import *
from tfdoctor.facts.machine.memory import MemoryWanted, is_memory_error
from tfdoctor.facts.phases.run_course import RunCourse
from tfdoctor.facts.phases.run_pieces import BucketPieces
from tfdoctor.facts.run.program import Places
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.run_log import ProcessEnd, RunLog
from tfdoctor.terms.record import common

SHELL = 128  # What a shell adds to a signal's number for its exit code
AFTERWARDS = (Phase.END, Phase.PROFILER, Phase.UNNAMED)  # What may follow an error before the process ends


class EndKind(StrEnum):
    """How a run ends."""

    EXIT = "exit"
    EXCEPTION = "exception"
    OUT_OF_MEMORY = "out of memory"  # MemoryError, ResourceExhaustedError, or the kernel's OOM kill
    KILLED = "killed"  # by a signal
    INTERRUPT = "interrupt"
    RUNNING = "running"  # or its end was not recorded


class RunEnding(Record, kw_only=True):
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

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Read how the process ended: as it told, else as the launcher saw it.

        Raises:
            Unavailable: neither was recorded.
        """
        log, manifest = recording.run, recording.manifest or Manifest()
        if log is None and recording.manifest is None:
            raise Unavailable("how the run ended was not recorded")
        end = (log.end if log else None) or ProcessEnd()
        limit = (manifest.times and manifest.times.limit_bytes) or manifest.host.memory_bytes
        counters = [bucket.counters for bucket in log.buckets] if log else []
        resident: list[float] = [one.rss for one in counters if one.rss is not None]
        resident += [one.host.run_rss_bytes for one in recording.samples if one.host and one.host.run_rss_bytes]
        device_peak = max((one.device for one in counters if one.device is not None), default=None)
        kind, wanted = _kind(end, manifest, log), MemoryWanted.of(end.message)
        return common(
            cls, end, wanted, kind=kind, at=Places.of(recording)(end.at), phase=_last_phase(log) if log else None,
            killed_by_kernel=kind is EndKind.OUT_OF_MEMORY and not end.error, wanted_bytes=wanted.nbytes,
            peak_bytes=float(max(resident)) if resident else None, limit_bytes=float(limit) if limit else None,
            device_peak_bytes=None if device_peak is None else float(device_peak),
        )  # fmt: skip


def _kind(end: ProcessEnd, manifest: Manifest, log: RunLog | None) -> EndKind:
    """Return what the process said of its end; of one that said nothing, what the launcher saw."""
    if end.why == "exception" and is_memory_error(end.error, end.message):
        return EndKind.OUT_OF_MEMORY
    if end.why in {"exit", "exception", "interrupt"}:
        return EndKind(end.why)
    times, outcome = manifest.times, manifest.outcome
    code = outcome.exit_code
    number = outcome.signal or (code - SHELL if code is not None and code > SHELL else None)
    started = log is None or times is None or times.pid == log.process.pid
    killed = number == SIGKILL or not started
    if killed and times and times.oom_kills and manifest.finished:
        return EndKind.OUT_OF_MEMORY
    if number is not None and started:
        return EndKind.INTERRUPT if number == SIGINT else EndKind.KILLED
    return EndKind.EXIT if code is not None and started else EndKind.RUNNING


def _last_phase(log: RunLog) -> Phase | None:
    """Return the phase that the process ended in: the last one in the log that is more than its end."""
    divided = BucketPieces(RunCourse.of(log))
    for number in reversed(range(len(log.buckets))):
        times = summed((one.phase, one.ms) for one in divided.pieces(number) if one.phase not in AFTERWARDS)
        if any(times.values()):
            return next(iter(times))
    return None
