"""Gradients of several losses that a step only adds: one gradient of the sum of the losses has all of them."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.operations.dataflow import Dataflow, is_backward
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import MATMULS
from tfdoctor.facts.run.program import Operation

SUMS = frozenset(("AddN", "Add", "AddV2"))
# Gradients of weights: the product of a layer's input, which all losses share, with what comes back from a loss.
PRODUCTS = MATMULS | {"Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter"}
NOTHING = frozenset(("Const", "Fill", "ZerosLike"))  # Of a weight that a loss does not depend on


class AddedGradients(Record, OperationRows):
    """The operations of the backward passes that lead to such gradients; ``passes`` is the number of losses.

    Gradients are linear in what comes back: x·a + x·b is x·(a + b).
    """

    at: Location | None = None  # the line that adds them
    passes: int = 1
    rows: tuple[OperationTime, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Find sums of products that have a factor in common, and follow them back."""
        found = [(one, len(parts)) for one in dataflow.operations if (parts := _products(one, dataflow))]
        if not found:
            return cls()
        # The gradients of biases and scales are added there, too.
        lines, passes = {one.at for one, _ in found}, max(number for _, number in found)
        sums = (one for one in dataflow.operations if one.type in SUMS and one.at in lines)
        built = dataflow.program.by_name

        def before(one: Operation) -> Iterable[Operation]:
            made = (built[source] for source in one.sources if source in built)
            return (each for each in made if is_backward(each.name) or each.type in SUMS)

        names = {one.name for one in reached((part for one in sums for part in _parts(one, dataflow)), before)}
        rows = operations.of(names)
        return cls(next(iter(lines)), passes, rows)

    @property
    def spared_ms(self) -> float:
        """The time of all passes but one, in ms per step."""
        return self.ms * (1.0 - 1.0 / self.passes)


def _parts(one: Operation, dataflow: Dataflow) -> Sequence[Operation]:
    """Return the gradients that a sum adds, where nothing else takes them; () where it adds others as well.

    The line that takes a gradient adds what comes back along several ways, as from each step of a loop of layers.
    """
    made = [dataflow.source(one, at) for at in range(len(one.sources))]
    parts = [part for part in made if part is not None and part.type not in NOTHING]
    uses = {user.name for part in parts for user in dataflow.consumers.get(part.name, ())}
    alone = None not in made and uses == {one.name} and all(is_backward(part.name) for part in parts)
    apart = one.at not in {part.at for part in parts}
    return parts if alone and apart and len(parts) > 1 else ()


def _products(one: Operation, dataflow: Dataflow) -> Sequence[Operation]:
    """Return the products that an operation adds, if all are of one kind and have a factor in common."""
    parts = _parts(one, dataflow) if one.type in SUMS else ()
    if not parts or parts[0].type not in PRODUCTS or len({part.type for part in parts}) > 1:
        return ()
    factors = zip(*(part.sources for part in parts), strict=False)
    return parts if any(len(set(same)) == 1 for same in factors) else ()
