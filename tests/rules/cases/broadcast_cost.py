"""The cases of broadcast-cost: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.operations.step_parts import Broadcast, Broadcasts
from tfdoctor.rules.operations.broadcast_cost import ExpandedProduct, ExpandedProducts, check

TILE = OperationTime(name="model/Tile", type="Tile", ms=4.0, at=Location("train.py", 22))


def example(
    repeated: tuple[Broadcast, ...] = (Broadcast(TILE, 128.0, (TILE,)),),
    expanded: tuple[ExpandedProduct, ...] = (),
    total_ms: float = 24.0,
) -> Verdict:
    """A row of weights is repeated 128 times by `tf.tile`."""
    rows = (*(one.row for one in repeated), *(one.row for one in expanded))
    operations = Operations.training(total_ms, *rows)
    products = ExpandedProducts(expanded) if expanded else None
    return check(Broadcasts(repeated), operations, None, None, products)


sick = example


def healthy() -> Verdict:
    """The step repeats no tensor."""
    return example(())
