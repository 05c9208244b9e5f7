"""A GPU's PCIe link is narrower than possible.

## What it checks

Generation and number of lanes of the PCIe link in use while the GPU was busy, against the highest that both the
board and its slot have. It counts where the step waits for copies between host and GPU.

## Why it matters

A link of 4 lanes instead of 16 copies a quarter as fast. A board that sits loosely, a riser cable, dust, or a
setting of the firmware makes a link fall back; nothing reports it.

## How to fix

`nvidia-smi -q` shows the link under "GPU Link Info". Seat the board again, try another slot or without a riser,
and check the firmware's settings of the slot. On a rented machine, report it and take another. Where the link
stays as it is, copy less: smaller types on the host, and the cast to float on the device.

## Holds for

NVIDIA GPUs, recorded with `tfdoctor profile` for at least a few seconds, since the link is read once a second.
An idle board lowers its link to save power: only readings of a busy one count. A slot with fewer lanes than the
board is no fault here: the driver tells what both have. The saving is an upper bound, by the rates of the
links. This rule was tested with a stand-in for the driver's library: it was never seen on hardware.

## Sources

- [NVML, device queries: PCIe link generation and width, NVIDIA](https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html)
- [PCI Express technology: rates by generation, PCI-SIG](https://pcisig.com/faq?field_category_value%5B%5D=pci_express_4.0)
- [nvidia-smi documentation: GPU link information, NVIDIA](https://docs.nvidia.com/deploy/nvidia-smi/index.html)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.machine.gpu_boards import Board, GpuBoards
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Bound, Effect, Finding, Healthy, Measure, NotApplicable, Remedy, Stage, Verdict

TOPIC = Topic.SCALE
SINCE = "0.2.0"
BY_HAND = "the link is a matter of the machine, not of the file"

LANE_RATES = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""GB/s of a lane in one direction by generation: 2.5, 5, 8, 16, 32 and 64 GT/s without the encoding (PCI-SIG)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a link is reported."""

    samples: float = limit(3.0, "Smallest number of readings of the busy GPU's link, one a second")
    rate: float = share_limit(
        0.75, "Largest ratio of the link's rate to the possible one; each step down halves it"
    )
    share: float = share_limit(
        0.03, "Smallest share of the step that waits for copies; of less a faster link saves nothing"
    )


def check(boards: GpuBoards, device: Device, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Compare the links in use with the possible ones, where the step waits for copies."""
    if device.kind is not DeviceKind.GPU:
        return NotApplicable(reason="the run used no GPU")
    known = [b for b in boards.boards if _ratio(b) is not None and b.link_samples >= limits.samples]
    if not known:
        return NotApplicable(reason="the PCIe link of a busy GPU was not sampled often enough; record a longer run")
    slowest = min(known, key=lambda board: _ratio(board) or 1.0)
    rate, copies = _ratio(slowest) or 1.0, breakdown[Stage.TRANSFER]
    evidence = (
        Measure.share("ratio of the link's rate to the possible one", rate, limits.rate),
        Measure("readings of the busy GPU's link", count(slowest.link_samples), count(limits.samples)),
        Measure("waiting for copies, per step", ms(copies), ms(limits.share * breakdown.step_ms)),
    )
    links = f"{_named(slowest.link)}, and {_named(slowest.widest_link)} is possible"
    if rate > limits.rate:
        return Healthy(summary=f"The PCIe link is {_named(slowest.link)}", evidence=evidence)
    if breakdown.share(copies) < limits.share:
        waits = f"{breakdown.each_step} waits for copies for {percent(breakdown.share(copies))} of its time"
        return Healthy(summary=f"The PCIe link is {links}, but {waits}", evidence=evidence)
    return Finding(
        summary=f"The PCIe link of {slowest.name} is {links}",
        evidence=evidence,
        remedies=(Remedy("Find out why the PCIe link is narrower than possible", INSPECT),),
        effects=(Effect(Stage.TRANSFER, rate, bound=Bound.AT_MOST),),
    )


def _ratio(board: Board) -> float | None:
    """Return the rate of the link in use relative to the possible one; None where one of them is unknown."""
    now, widest = _rate(board.link), _rate(board.widest_link)
    return min(1.0, now / widest) if now and widest else None


def _rate(link: tuple[int, int] | None) -> float | None:
    """Return the rate of a link in GB/s."""
    lane = LANE_RATES.get(link[0]) if link else None
    return lane * link[1] if lane and link else None


def _named(link: tuple[int, int] | None) -> str:
    return f"generation {link[0]} with {link[1]} lanes" if link else "unknown"


INSPECT = "# in a terminal, during training: nvidia-smi -q | grep -A 12 'GPU Link Info'"


def example(
    width: int = 4,
    generation: int = 4,
    samples: int = 20,
    *,
    transfer: float = 40.0,
    kind: DeviceKind = DeviceKind.GPU,
) -> Verdict:
    """Steps of 100 ms wait 40 ms for copies over 4 of 16 lanes."""
    board = Board(name="GPU", index=0, widest_link=(4, 16), link=(generation, width), link_samples=samples)
    breakdown = Breakdown.of(device=100.0 - transfer, transfer=transfer)
    return check(GpuBoards((board,)), Device(kind, 1, 1), breakdown)


sick = example


def healthy() -> Verdict:
    """The same step over 16 lanes."""
    return example(16)
