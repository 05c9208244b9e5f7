"""What was sampled of the machine: its load in the traced steps, its GPU boards, and their clocks."""

from dataclasses import asdict

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording.samples import GpuBoard, GpuDriver, GpuSample, MachineSample

# Cores that other programs may use before they count as a disturbance: a quarter of a small machine.
BUSY_CORES = 0.5
BUSY_PCT = 50  # Percent of the time with a kernel on the GPU from which it is busy: an idle GPU may lower its clock
# NVML's load is a mean over the past 1/6 to 1 s, by product (nvml.h), and GPM's over half a second: a shorter
# window says nothing for certain.
GPU_PERIOD_S = 2.0
# Attribution of processes whose numbers are those of this machine, and not of the host of a container.
BY_PROCESS = "by process"


class Samples(Record):
    """Means over the traced window, or over the whole run when the window is shorter than a sample.

    Cores are numbers of logical CPUs at work; None is "not sampled".
    """

    count: int
    run_cores: float | None = None  # used by the run
    other_cores: float | None = None  # used by everything else on the machine
    run_bytes: float | None = None  # resident memory of the run, the maximum
    gpu_busy: float | None = None  # 0 to 1: share of time with any kernel (not matrix-unit use)
    tensor_active: float | None = None  # 0 to 1: share of time in which tensor cores worked (GPM)
    tensor_share: float | None = None  # the same, of the time in which the GPUs were busy

    @classmethod
    def measure(cls, recording: Recording, framework: Framework) -> Self:
        """Average the samples."""
        window = window_of(recording)
        sampled = in_window(window, [row for row in recording.samples if row.host])
        host = [row.host for row in sampled if row.host]
        if not host:
            raise Unavailable(f"the machine was not sampled{framework.with_tfdoctor}")
        rows = in_window(window, [row for row in recording.samples if row.gpu])
        long = window is None or window[1] - window[0] >= GPU_PERIOD_S * 1e9
        gpus = [gpu for row in rows for gpu in row.gpu if gpu.visible is not False and long]
        # A reading of GPM covers half a second, so that those in which a GPU begins or ends its work hold idle time
        # too: the median leaves them out.
        busy = [gpu for gpu in gpus if (gpu.gpu_pct or 0) >= BUSY_PCT]
        active = [float(gpu.tensor_pct) for gpu in busy if gpu.tensor_pct is not None]
        load = _mean(gpu.gpu_pct for gpu in busy)
        return cls(
            count=len(host),
            run_cores=_mean((row.run_cpu_pct for row in host), 0.01),
            other_cores=_mean((row.other_cpu_pct for row in host), 0.01),
            run_bytes=max((row.run_rss_bytes for row in host if row.run_rss_bytes), default=None),
            gpu_busy=_mean((gpu.gpu_pct for gpu in gpus), 0.01),
            tensor_active=_mean((gpu.tensor_pct for gpu in gpus), 0.01),
            tensor_share=min(1.0, float(np.median(active)) / load) if active and load else None,
        )


def of_gpus(recording: Recording, least_pct: float = 0.0) -> dict[int, list[GpuSample]]:
    """Return the samples of each GPU that the run may use, by NVML's index, at which it was so busy."""
    gpus = (gpu for sample in recording.samples for gpu in sample.gpu if gpu.visible is not False)
    return dict(sorted(by_key((gpu.index, gpu) for gpu in gpus if (gpu.gpu_pct or 0) >= least_pct).items()))


def window_of(recording: Recording) -> tuple[int, int] | None:
    """Return when tracing began and ended, in ns since 1970; None where unknown, because all samples count then."""
    window = recording.manifest.window if recording.manifest else None
    if window is None or not window.stopped_unix_ns:
        return None
    return window.started_unix_ns, window.stopped_unix_ns


def in_window(window: tuple[int, int] | None, rows: Sequence[MachineSample]) -> Sequence[MachineSample]:
    """Return the samples of the traced window; a sample covers the time before it was taken.

    Of a short window it is the sample that was under way when it ended, else the last before that.
    """
    if window is None:
        return rows
    start, stop = window
    inside = [row for row in rows if start < row.unix_ns <= stop]
    return inside[1:] or inside or [row for row in rows if row.unix_ns > stop][:1] or rows[-1:]


def process_cores(recording: Recording) -> dict[str, float]:
    """Return the logical CPUs that each process of the run used in the traced window, by its id; {} is unknown."""
    rows = in_window(window_of(recording), [row for row in recording.samples if row.host])
    told = (row.host.processes_pct or {} for row in rows if row.host)
    return summed((pid, 0.01 * pct / len(rows)) for shares in told for pid, pct in shares.items())


def counter_rate(counts: Iterable[tuple[int, float | None]]) -> float | None:
    """Return how fast a counter of microseconds ran per microsecond between its first and last sample."""
    known = [(unix_ns, us) for unix_ns, us in counts if us is not None]
    passed = (known[-1][0] - known[0][0]) / 1000 if known else 0.0
    return max(0.0, (known[-1][1] - known[0][1]) / passed) if passed > 0 else None


def _mean(values: Iterable[float | None], unit: float = 1.0) -> float | None:
    known = [float(value) for value in values if value is not None]
    return float(np.mean(known)) * unit if known else None


class Board(GpuBoard, kw_only=True):
    """One GPU board; None is unknown. Links are a generation of PCIe and a number of lanes."""

    name: str
    index: int  # NVML's
    widest_link: tuple[int, int] | None = None  # that board and slot both have
    link: tuple[int, int] | None = None  # in use while the board is busy
    link_samples: int = 0  # of the busy board
    others: int = 0  # the most other processes at a time
    others_at_start: int = 0  # other processes when the run began
    others_share: float | None = None  # of the time, with kernels of others beside the run's, 0 to 1


class GpuBoards(Record):
    """All boards that the run may use, and their driver."""

    boards: tuple[Board, ...]
    version: str = ""
    opened_ms: float | None = None  # how long it took to open all boards of the machine when the run began

    @classmethod
    def measure(cls, recording: Recording, framework: Framework) -> Self:
        """Gather what the samples of the whole run tell."""
        rows = of_gpus(recording)
        if not rows:
            raise Unavailable(f"no NVIDIA GPU that the run may use was sampled{framework.with_tfdoctor}")
        boards = []
        for index, samples in rows.items():
            last = next((row.board for row in reversed(samples) if row.board), GpuBoard())
            busy = [row for row in samples if (row.gpu_pct or 0) >= BUSY_PCT]
            links = [(row.pcie_gen, row.pcie_width) for row in busy if row.pcie_gen and row.pcie_width]
            processes = [row.processes for row in samples if row.processes]
            shared = [one.others_sm_pct for one in processes if one.run and one.attribution == BY_PROCESS]
            known, widest = [pct for pct in shared if pct is not None], (last.pcie_max_gen, last.pcie_max_width)
            board = Board(
                **asdict(last),
                name=samples[-1].name or f"GPU {index}",
                index=index,
                widest_link=(widest[0], widest[1]) if widest[0] and widest[1] else None,
                link=max(sorted(set(links)), key=links.count, default=None),
                link_samples=len(links),
                others=max((one.others for one in processes), default=0),
                others_at_start=processes[0].others if processes else 0,
                others_share=sum(known) / len(known) / 100 if known else None,
            )
            boards.append(board)
        driver = next((sample.driver for sample in recording.samples if sample.driver), GpuDriver())
        return cls(tuple(boards), driver.version, driver.opened_ms)


class GpuClock(Record):
    """One GPU while it is busy. ``reasons_known`` counts the samples with the reasons for throttling."""

    name: str
    index: int  # NVML's
    reasons_known: int
    reasons: Mapping[str, int]  # samples by reason; one sample may have several
    held_mhz: Mapping[str, float]  # mean clock of the multiprocessors by reason, where sampled
    top_mhz: float | None  # the GPU's highest clock
    mean_mhz: float | None = None  # of its multiprocessors, throttled or not

    def share(self, reason: str) -> float:
        """Return the share of the busy time that a reason throttled the clock."""
        return self.reasons.get(reason, 0) / self.reasons_known if self.reasons_known else 0.0

    def ratio(self, reason: str) -> float | None:
        """Return the throttled clock relative to the highest; None when one of them is unknown."""
        held = self.held_mhz.get(reason)
        return min(1.0, held / self.top_mhz) if held and self.top_mhz else None

    def left(self, reason: str) -> float:
        """Return what is left of the compute time at the highest clock, if only the clock limited it."""
        ratio = self.ratio(reason)
        return 1.0 if ratio is None else 1.0 - self.share(reason) * (1.0 - ratio)


class GpuClocks(Record):
    """All GPUs that the run may use and that were busy, over the whole run."""

    gpus: tuple[GpuClock, ...]

    @classmethod
    def measure(cls, recording: Recording, device: Device, framework: Framework) -> Self:
        """Gather the samples of each GPU."""
        if device.kind != DeviceKind.GPU:
            raise Unavailable(f"only clocks of NVIDIA GPUs are sampled, and the run used a {device.kind}")
        plane, gpus = device.busiest.stats if device.busiest else {}, []
        for index, rows in of_gpus(recording, BUSY_PCT).items():
            explained = [(row.sm_mhz, row.throttle) for row in rows if row.throttle is not None]
            reasons = Counter(reason for _, held in explained for reason in dict.fromkeys(held))
            clocks = {reason: _mean(mhz for mhz, held in explained if mhz and reason in held) for reason in reasons}
            known = {reason: mhz for reason, mhz in clocks.items() if mhz is not None}
            top = max(float(row.sm_max_mhz or 0) for row in rows)
            top = top or float(plane.get("clock_rate") or 0) / 1000
            name, mean = rows[-1].name or f"GPU {index}", _mean(row.sm_mhz for row in rows if row.sm_mhz)
            gpus.append(GpuClock(name, index, len(explained), dict(reasons), known, top or None, mean))
        gpus = [gpu for gpu in gpus if gpu.reasons_known]
        if not gpus:
            raise Unavailable(
                f"no clock of a busy NVIDIA GPU was sampled (this takes some seconds){framework.with_tfdoctor}"
            )
        return cls(tuple(gpus))
