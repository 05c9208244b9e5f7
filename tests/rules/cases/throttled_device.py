"""The cases of throttled-device: what its tests judge, and the examples of its page."""

from tfdoctor.facts.machine.samples import Board, GpuBoards, GpuClock, GpuClocks
from tfdoctor.rules.scale.throttled_device import POWER_CAP, check
from tfdoctor.terms.verdict import Verdict


def example(
    samples: int = 30,
    held: int = 10,
    reason: str = "software-thermal",
    mhz: float | None = 1000.0,
    board: Board | None = None,
) -> Verdict:
    """A GPU that is too hot for a third of the time, and then runs at 1000 of 1500 MHz."""
    clocks = {reason: mhz} if mhz else {}
    gpu = GpuClock("GPU", 0, samples, {reason: held}, clocks, 1500.0)
    return check(GpuClocks((gpu,)), GpuBoards((board,)) if board else None)


sick = example


def healthy() -> Verdict:
    """A GPU at its power cap that runs at 1400 of 1500 MHz."""
    return example(30, 25, POWER_CAP, 1400.0)
