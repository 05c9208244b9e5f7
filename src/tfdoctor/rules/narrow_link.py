from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.machine.gpu_boards import Board, GpuBoards

__doc__, CODE = page(__file__)

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
