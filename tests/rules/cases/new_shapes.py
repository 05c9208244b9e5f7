"""The cases of new-shapes: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.tracing.new_shapes import Searches, check


def example(
    searches: Searches = Searches(20, 20, 10, (("conv/Conv2D", 12.0, 1.0),)),
    conv_ms: float = 12.0,
    padding: SequencePadding | None = None,
) -> Verdict:
    """Every image has another size: all steps search, and 11 of 12 ms of a convolution are only tried."""
    row = OperationTime(name="conv/Conv2D", type="Conv2D", ms=conv_ms)
    operations = Operations.training(conv_ms + 4.0, row, rest="ReluGrad")
    return check(searches, Breakdown.of(host=2.0, device=conv_ms + 4.0), operations, padding, None)


sick = example


def healthy() -> Verdict:
    """The search was over before the traced steps."""
    return example(Searches(0, 20, 0), 1.0)
