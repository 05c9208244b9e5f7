"""The GPU boards that the run may use: their settings, PCIe links and processes, as NVML tells them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.samples import BUSY_PCT
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording import Recording
from tfdoctor.recording.samples import GpuBoard, GpuDriver, GpuProcesses, GpuSample

BY_PROCESS = "by process"
"""Attribution of processes whose numbers are those of this machine, and not of the host of a container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One GPU board; None is unknown. Links are a generation of PCIe and a number of lanes."""

    name: str
    index: int  # NVML's
    persistence: bool | None = None  # whether the driver stays loaded without clients
    power_limit_w: float | None = None
    power_default_w: float | None = None
    power_max_w: float | None = None  # the highest limit that may be set
    slowdown_c: float | None = None  # from which the hardware lowers clocks
    ecc: bool | None = None
    ecc_uncorrected: int | None = None  # errors since the driver was loaded
    mig: bool | None = None  # whether the board is divided into instances
    widest_link: tuple[int, int] | None = None  # that board and slot both have
    link: tuple[int, int] | None = None  # in use while the board is busy
    link_samples: int = 0  # of the busy board
    others: int = 0  # the most other processes at a time
    others_at_start: int = 0  # other processes when the run began
    others_share: float | None = None  # of the time, with kernels of others beside the run's, 0 to 1


@dataclass(frozen=True, slots=True)
class GpuBoards:
    """All boards that the run may use, and their driver.

    ``opened_ms`` is how long it took to open all boards of the machine when the run began.
    """

    boards: tuple[Board, ...]
    version: str = ""
    opened_ms: float | None = None

    @classmethod
    def measure(cls, recording: Recording, framework: Framework) -> Self:
        """Gather what the samples of the whole run tell."""
        rows: dict[int, list[GpuSample]] = defaultdict(list)
        for sample in recording.samples:
            for gpu in sample.gpu:
                if gpu.visible is not False:
                    rows[gpu.index].append(gpu)
        if not rows:
            raise Unavailable(f"no NVIDIA GPU that the run may use was sampled{framework.with_tfdoctor}")
        drivers = [sample.driver for sample in recording.samples if sample.driver]
        driver = drivers[0] if drivers else GpuDriver()
        boards = tuple(_board(index, samples) for index, samples in sorted(rows.items()))
        return cls(boards, driver.version, driver.opened_ms)


def _board(index: int, rows: Sequence[GpuSample]) -> Board:
    told = [row.board for row in rows if row.board]
    last = told[-1] if told else GpuBoard()
    links = _links(row for row in rows if (row.gpu_pct or 0) >= BUSY_PCT)
    processes = [row.processes for row in rows if row.processes]
    widest = (last.pcie_max_gen, last.pcie_max_width)
    return Board(
        name=rows[-1].name or f"GPU {index}",
        index=index,
        persistence=last.persistence,
        power_limit_w=last.power_limit_w,
        power_default_w=last.power_default_w,
        power_max_w=last.power_max_w,
        slowdown_c=last.slowdown_c,
        ecc=last.ecc,
        ecc_uncorrected=last.ecc_uncorrected,
        mig=last.mig,
        widest_link=(widest[0], widest[1]) if widest[0] and widest[1] else None,
        link=max(sorted(set(links)), key=links.count, default=None),
        link_samples=len(links),
        others=max((one.others for one in processes), default=0),
        others_at_start=processes[0].others if processes else 0,
        others_share=_others_share(processes),
    )


def _links(rows: Iterable[GpuSample]) -> list[tuple[int, int]]:
    """Return the links in use in some samples, without those that do not tell them."""
    return [(row.pcie_gen, row.pcie_width) for row in rows if row.pcie_gen and row.pcie_width]


def _others_share(processes: Iterable[GpuProcesses]) -> float | None:
    """Return the share of the time with kernels of other programs, while the run has a process on the board."""
    known = [
        one.others_sm_pct
        for one in processes
        if one.run and one.attribution == BY_PROCESS and one.others_sm_pct is not None
    ]
    return sum(known) / len(known) / 100 if known else None
