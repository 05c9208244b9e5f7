"""The cases of unfused-batch-norm: what its tests judge, and the examples of its page."""

from math import prod

from tests.rules.kit import *
from tfdoctor.facts.operations.step_parts import MOMENTS
from tfdoctor.rules.operations.unfused_batch_norm import check


def sick() -> Verdict:
    """The separate operations of a layer take 20 ms."""
    return check(_norms(MOMENTS), Hardware(DeviceKind.CPU, "example"))


def healthy() -> Verdict:
    """The layer runs as the fused operation."""
    return check(_norms("FusedBatchNormV3"), Hardware(DeviceKind.CPU, "example"))


def _norms(kind: str) -> BatchNorms:
    layer = Layer(name="bn", kind="BatchNormalization", at=Location("train.py", 10))
    program = Program(layers=(layer,), settings=RunSettings(batch_size=32))
    tensor = ("float32", (32, 64, 64, 48))
    graph = Operation(name="model/bn/moments", type=kind, inputs=(tensor,), outputs=(tensor,))
    size = 3.0 * prod(tensor[1]) * 4
    norm = OperationTime(name=graph.name, type=kind, ms=20.0, layer="bn", operation=graph)
    add = OperationTime(name="model/add", type="AddV2", ms=2.0, nbytes=size)
    return BatchNorms.measure(program, Operations((norm, add)))
