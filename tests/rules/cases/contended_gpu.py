"""The cases of contended-gpu: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.scale.contended_gpu import check


def example(share: float | None = 0.4, *, others: int = 1, kind: DeviceKind = DeviceKind.GPU) -> Verdict:
    """Another process computes on the GPU for 40 % of the time."""
    board = Board(name="GPU", index=0, others=others, others_share=share)
    return check(GpuBoards((board,)), Device(kind, 1, 1))


sick = example


def healthy() -> Verdict:
    """An idle notebook holds memory of the GPU."""
    return example(0.0)
