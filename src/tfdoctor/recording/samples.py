"""samples.jsonl: what was sampled of the machine while the run went on, one sample a line."""

from dataclasses import dataclass

from tfdoctor.recording.typed import Amount, Count


@dataclass(frozen=True, slots=True)
class HostSample:
    """The host; counters only grow, and None is not told."""

    run_cpu_pct: Amount | None = None  # of one core
    other_cpu_pct: Amount | None = None
    run_rss_bytes: Amount | None = None
    memory_used_bytes: Amount | None = None
    memory_total_bytes: Amount | None = None
    psi_cpu_us: Amount | None = None
    psi_memory_us: Amount | None = None
    throttled_us: Amount | None = None
    quota_cores: Amount | None = None


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU; None is not told."""

    index: Count = 0
    name: str = ""
    visible: bool | None = None  # False: the run may not use it
    gpu_pct: Amount | None = None
    tensor_pct: Amount | None = None
    sm_mhz: Amount | None = None
    sm_max_mhz: Amount | None = None
    throttle: tuple[str, ...] | None = None  # what holds its clock back


@dataclass(frozen=True, slots=True)
class MachineSample:
    """What was sampled at one moment; it covers the time before."""

    unix_ns: Count
    host: HostSample | None = None
    gpu: tuple[GpuSample, ...] = ()
