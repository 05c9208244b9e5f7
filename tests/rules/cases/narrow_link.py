"""The cases of narrow-link: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.machine.samples import Board, GpuBoards
from tfdoctor.rules.scale.narrow_link import check


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
