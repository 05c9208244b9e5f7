"""The cases of serial-transfer: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.gpu.activity import H2D, PAGEABLE, UNKNOWN, Transfer, Transfers
from tfdoctor.rules.execution.serial_transfer import check


def example(
    *copies: Transfer, exposed_ms: float = 25.0, device_ms: float = 175.0, framework: Framework = Framework()
) -> Verdict:
    """Copying a batch of 100 MB from pageable memory takes 25 of 200 ms."""
    copy = Transfer(H2D, 1.0, 25.0, exposed_ms, 1e8, 4e9, {PAGEABLE: 1e8, UNKNOWN: 0.0})
    step = Breakdown.of(transfer=exposed_ms, device=device_ms)
    return check(Transfers(copies or (copy,)), step, framework)


sick = example


def healthy() -> Verdict:
    """The same copy overlaps with kernels."""
    return example(exposed_ms=0.1)
