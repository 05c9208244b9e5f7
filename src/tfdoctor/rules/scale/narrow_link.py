from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

# GB/s of a lane in one direction by generation: 2.5, 5, 8, 16, 32 and 64 GT/s without the encoding (PCI-SIG).
LANE_RATES = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}


class Limits(RuleLimits):
    samples: float = limit(3.0)
    rate: float = share_limit(0.75)
    share: float = share_limit(0.03)


def check(boards: GpuBoards, device: Device, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Compare the links in use with the possible ones, where the step waits for copies."""
    if device.kind is not DeviceKind.GPU:
        return NotApplicable(reason="the run used no GPU")
    enough = [board for board in boards.boards if board.link_samples >= limits.samples]
    rates = [(_rate(board.link), _rate(board.widest_link), board) for board in enough]
    known = [(min(1.0, now / widest), board) for now, widest, board in rates if now and widest]
    if not known:
        return NotApplicable(reason="the PCIe link of a busy GPU was not sampled often enough; record a longer run")
    rate, slowest = min(known, key=lambda one: one[0])
    copies = breakdown[Stage.TRANSFER]
    share = breakdown.share(copies)
    links = slowest.link or (0, 0), slowest.widest_link or (0, 0)  # both known: their rates are
    now, possible = (f"generation {generation} with {lanes} lanes" for generation, lanes in links)
    summary = f"The PCIe link is {now}"
    if rate <= limits.rate:
        waits = f"{breakdown.each_step} waits for copies for {percent(share)} of its time"
        summary = f"{summary}, and {possible} is possible, but {waits}"
    return judged(
        Measure.share("ratio of the link's rate to the possible one", rate, limits.rate),
        Measure("readings of the busy GPU's link", count(slowest.link_samples), count(limits.samples)),
        Measure("waiting for copies, per step", ms(copies), ms(limits.share * breakdown.step_ms)),
        healthy=summary,
        finding=f"The PCIe link of {slowest.name} is {now}, and {possible} is possible",
        wrong=rate <= limits.rate and share >= limits.share,
        remedies=[Remedy("Find out why the PCIe link is narrower than possible", CODE["inspect"])],
        effects=[Effect(Stage.TRANSFER, rate, bound=Bound.AT_MOST)],
    )


def _rate(link: tuple[int, int] | None) -> float:
    """Return the rate of a link in GB/s; 0 where it is unknown."""
    return LANE_RATES.get(link[0], 0.0) * link[1] if link else 0.0
