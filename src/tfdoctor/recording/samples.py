"""samples.jsonl: samples of the machine during the run, one on each line."""

from collections.abc import Mapping

from tfdoctor.recording.typed import Amount, Count
from tfdoctor.terms.record import Record


class HostSample(Record):
    """A sample of the host; times in microseconds are counters that only grow; None is unknown."""

    run_cpu_pct: Amount | None = None  # of one core
    other_cpu_pct: Amount | None = None
    processes_pct: Mapping[str, Amount] | None = None  # of one core, by the number of each of the run's
    run_rss_bytes: Amount | None = None
    memory_used_bytes: Amount | None = None
    memory_total_bytes: Amount | None = None
    psi_cpu_us: Amount | None = None
    psi_memory_us: Amount | None = None
    throttled_us: Amount | None = None
    quota_cores: Amount | None = None


class GpuDriver(Record):
    """The driver of NVIDIA's GPUs, and how long the sampler took to open all of them at its start."""

    version: str = ""
    opened_ms: Amount | None = None


class GpuBoard(Record):
    """The settings of a GPU board (capture/sampler/board.py lists what they mean); None is unknown."""

    persistence: bool | None = None
    power_limit_w: Amount | None = None
    power_default_w: Amount | None = None
    power_max_w: Amount | None = None
    slowdown_c: Amount | None = None
    ecc: bool | None = None
    ecc_uncorrected: Count | None = None
    pcie_max_gen: Count | None = None
    pcie_max_width: Count | None = None
    mig: bool | None = None


class GpuProcesses(Record):
    """How many processes compute on a GPU; ``others_sm_pct`` is the percent of the time with kernels of others."""

    run: Count = 0
    others: Count = 0
    attribution: str = ""
    others_sm_pct: Amount | None = None


class GpuSample(Record):
    """A sample of one GPU; None is unknown."""

    index: Count = 0
    name: str = ""
    visible: bool | None = None  # False: the run may not use it
    gpu_pct: Amount | None = None
    tensor_pct: Amount | None = None
    sm_mhz: Amount | None = None
    sm_max_mhz: Amount | None = None
    throttle: tuple[str, ...] | None = None  # why its clock is lower
    energy_j: Amount | None = None  # since the driver was loaded, of the board
    pcie_gen: Count | None = None
    pcie_width: Count | None = None  # in lanes
    processes: GpuProcesses | None = None
    board: GpuBoard | None = None


class PackageSample(Record):
    """The energy of one package of the CPU since the sampler's start, by all programs."""

    name: str = ""
    energy_j: Amount | None = None


class MachineSample(Record):
    """A sample; its rates cover the time since the sample before."""

    unix_ns: Count
    host: HostSample | None = None
    gpu: tuple[GpuSample, ...] = ()
    driver: GpuDriver | None = None
    package: tuple[PackageSample, ...] = ()
