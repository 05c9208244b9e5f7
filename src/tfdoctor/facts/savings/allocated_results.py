"""The bytes of operations whose shapes the program leaves open, from the memory that they allocated."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.traced_shapes import allocations
from tfdoctor.facts.run.program import Operation, Shape
from tfdoctor.trace import Trace


@dataclass(frozen=True, slots=True)
class AllocatedResults:
    """The bytes of each different tensor that an operation on the host allocated, by the name it ran as.

    The profiler records large allocations only, and not those of operations that write over an input.
    """

    bytes_by_name: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def measure(cls, trace: Trace) -> Self:
        """Read the memory events of the host."""
        tensors: dict[str, dict[tuple[object, object], float]] = defaultdict(dict)
        for line in trace.host_lines:
            for name, size, *tensor in allocations(line, "requested_bytes", "shape", "data_type"):
                tensors[name][tensor[0], tensor[1]] = float(size or 0)
        return cls({name: tuple(sizes.values()) for name, sizes in tensors.items()})

    def sized(self, row: OperationTime) -> OperationTime:
        """Return an operation with bytes that can be trusted, else with unknown ones.

        The program fills an open first dimension with the batch size. Outside of layers, and in vectors, it may
        be anything: a tensor that was flattened, say. There the allocated results count, and each open operand as
        the largest of them.
        """
        operation = row.operation
        if operation is None or not is_open(operation, row.layer):
            return row
        names = [name.rpartition(":")[0] for name in row.ran]
        sizes = next((self.bytes_by_name[name] for name in names if name in self.bytes_by_name), ())
        operands = sum(_is_open(shape) for _, shape in operation.inputs)
        return replace(row, nbytes=sum(sizes) + operands * max(sizes) if sizes else None)


def is_open(operation: Operation, layer: str) -> bool:
    """Return whether the program leaves a dimension open that is not certain to be the batch."""
    shapes = [shape for _, shape in (*operation.inputs, *operation.outputs) if _is_open(shape)]
    return any(not layer or len(shape or ()) == 1 for shape in shapes)


def _is_open(shape: Shape | None) -> bool:
    return shape is not None and None in shape
