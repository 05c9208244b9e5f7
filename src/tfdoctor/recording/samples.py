"""samples.jsonl: samples of the machine during the run, one on each line."""

from collections.abc import Mapping
from dataclasses import dataclass

from tfdoctor.recording.field_types import Amount, Count


@dataclass(frozen=True, slots=True)
class HostSample:
    """A sample of the host; times in microseconds are counters that only grow; None is unknown."""

    run_cpu_pct: Amount | None = None  # of one core
    other_cpu_pct: Amount | None = None
    processes_pct: Mapping[str, Amount] | None = (
        None  # of one core, by the number of each of the run's
    )
    run_rss_bytes: Amount | None = None
    memory_used_bytes: Amount | None = None
    memory_total_bytes: Amount | None = None
    psi_cpu_us: Amount | None = None
    psi_memory_us: Amount | None = None
    throttled_us: Amount | None = None
    quota_cores: Amount | None = None


@dataclass(frozen=True, slots=True)
class GpuSample:
    """A sample of one GPU; None is unknown."""

    index: Count = 0
    name: str = ""
    visible: bool | None = None  # False: the run may not use it
    gpu_pct: Amount | None = None
    tensor_pct: Amount | None = None
    sm_mhz: Amount | None = None
    sm_max_mhz: Amount | None = None
    throttle: tuple[str, ...] | None = None  # why its clock is lower


@dataclass(frozen=True, slots=True)
class MachineSample:
    """A sample; its rates cover the time since the sample before."""

    unix_ns: Count
    host: HostSample | None = None
    gpu: tuple[GpuSample, ...] = ()
