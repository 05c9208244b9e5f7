"""The GPU boards that the run may use: their settings, PCIe links and processes, as NVML tells them."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.samples import BUSY_PCT, of_gpus
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording import Recording
from tfdoctor.recording.samples import GpuBoard, GpuDriver, GpuSample
from tfdoctor.terms.record import Record

# Attribution of processes whose numbers are those of this machine, and not of the host of a container.
BY_PROCESS = "by process"


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

    @classmethod
    def of(cls, index: int, rows: Sequence[GpuSample]) -> Self:
        """Gather what the samples of one board tell."""
        last = next((row.board for row in reversed(rows) if row.board), GpuBoard())
        busy = [row for row in rows if (row.gpu_pct or 0) >= BUSY_PCT]
        links = [(row.pcie_gen, row.pcie_width) for row in busy if row.pcie_gen and row.pcie_width]
        processes = [row.processes for row in rows if row.processes]
        shared = [one.others_sm_pct for one in processes if one.run and one.attribution == BY_PROCESS]
        known = [pct for pct in shared if pct is not None]
        widest = (last.pcie_max_gen, last.pcie_max_width)
        return cls(
            **asdict(last),
            name=rows[-1].name or f"GPU {index}",
            index=index,
            widest_link=(widest[0], widest[1]) if widest[0] and widest[1] else None,
            link=max(sorted(set(links)), key=links.count, default=None),
            link_samples=len(links),
            others=max((one.others for one in processes), default=0),
            others_at_start=processes[0].others if processes else 0,
            others_share=sum(known) / len(known) / 100 if known else None,
        )


class GpuBoards(Record):
    """All boards that the run may use, and their driver.

    ``opened_ms`` is how long it took to open all boards of the machine when the run began.
    """

    boards: tuple[Board, ...]
    version: str = ""
    opened_ms: float | None = None

    @classmethod
    def measure(cls, recording: Recording, framework: Framework) -> Self:
        """Gather what the samples of the whole run tell."""
        rows = of_gpus(recording)
        if not rows:
            raise Unavailable(f"no NVIDIA GPU that the run may use was sampled{framework.with_tfdoctor}")
        driver = next((sample.driver for sample in recording.samples if sample.driver), GpuDriver())
        boards = tuple(Board.of(index, samples) for index, samples in rows.items())
        return cls(boards, driver.version, driver.opened_ms)
