"""The cases of late-gather: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.late_gather import SelectedProduct, SelectedProducts, check

LOGITS = OperationTime(name="model/logits/MatMul", type="MatMul", ms=34.0, at=Location("train.py", 31))


GRADIENT = OperationTime(name="gradient_tape/model/logits/MatMul/MatMul_1", type="MatMul", ms=30.0)


def example(kept: float = 10 / 64, *, total: float = 240.0, kind: DeviceKind = DeviceKind.CPU) -> Verdict:
    """The logits of 64 positions are computed, and those of 10 are gathered."""
    to = (None, round(64 * kept), 16000)
    one = SelectedProduct(LOGITS, (LOGITS, GRADIENT), kept, (None, 64, 16000), to, Location("train.py", 35))
    device = Device(kind, visible=1, used=1)
    return check(SelectedProducts((one,)), Operations.training(total, *one.rows), device)


sick = example


def healthy() -> Verdict:
    """Most positions are used."""
    return example(60 / 64)
