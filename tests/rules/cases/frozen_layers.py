"""The cases of frozen-layers: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.savings.dispatch import Dispatch
from tfdoctor.facts.savings.layer_work import FrozenWork
from tfdoctor.rules.operations.frozen_layers import check

TEACHER = OperationTime(name="teacher/conv/Relu", type="Conv2D", ms=20.0, layer="conv", at=Location("train.py", 34))

FROZEN = FrozenWork(("conv",), (TEACHER,), features_bytes=1280, passes=4.0, batches=25)


def example(
    frozen: FrozenWork = FROZEN,
    memory: HostMemory | None = None,
    dispatch: Dispatch | None = None,
    rest: str = "Conv2DBackpropFilter",
) -> Verdict:
    """A frozen teacher takes 20 of 30 ms of compute in each of four epochs."""
    return check(frozen, Operations.training(30.0, *frozen.rows, rest=rest), memory, dispatch)


sick = example


def healthy() -> Verdict:
    """The same in a run of a single epoch."""
    return example(replace(FROZEN, passes=1.0))
