"""The cases of unused-gradients: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.recording.agent import GradientsTaken
from tfdoctor.rules.execution.unused_gradients import check
from tfdoctor.rules.execution.unused_gradients.unused_work import UnusedWork

MOST = GradientsTaken(
    variables=10,
    unused=6,
    names=("encoder/conv/kernel:0", "encoder/conv/bias:0"),
    types=(("Conv2DBackpropFilter", 3, 4.0), ("Conv2DBackpropInput", 3, 2.0)),
)
UNUSED = UnusedWork(
    calls=20, most=MOST, at=Location("train.py", 43), operations=37.0, kernels_ms=6.0, host_ms=2.0
)  # fmt: skip


def example(unused: UnusedWork = UNUSED, breakdown: Breakdown | None = None) -> Verdict:
    """An eager step asks for the gradients of the head, and computes those of the encoder as well."""
    return check(unused, breakdown or Breakdown.of(host=8.0, device=12.0))


sick = example


def healthy() -> Verdict:
    """The encoder runs before the tape begins."""
    return example(UnusedWork(calls=20))
