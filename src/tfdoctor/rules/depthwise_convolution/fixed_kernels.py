"""Depthwise convolutions whose kernels are the same in every step, such as a blur or a window."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE, Dataflow
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.names import FRAME

# The scope of gradients inside the body of a loop, before the name of the forward operation and ``_grad``.
IN_LOOP = "gradients/"
KERNEL = 1  # The position of the kernel among the inputs of a depthwise convolution


@dataclass(frozen=True, slots=True)
class FixedConvolution(OperationRows):
    """A depthwise convolution with a constant kernel, and its gradient."""

    rows: tuple[OperationTime, ...]
    size: tuple[int, int] | None = None  # the kernel's height and width; None is unknown
    separable: bool = False  # the kernel is a column times a row in each channel, without strides
    at: Location | None = None

    @property
    def left(self) -> float:
        """The share of the arithmetic that two convolutions with a column and a row do; 1 where there are none."""
        if self.size is None or not self.separable:
            return 1.0
        height, width = self.size
        return min(1.0, (height + width) / (height * width))


@dataclass(frozen=True, slots=True)
class FixedKernels:
    """The depthwise convolutions with constant kernels, those of most time first."""

    rows: tuple[FixedConvolution, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Follow the kernel of each convolution to what it is computed from."""
        groups: dict[str, list[OperationTime]] = defaultdict(list)
        for row in operations.rows:
            if row.is_depthwise:
                groups[_forward(row)].append(row)
        found = []
        for name, rows in groups.items():
            made = dataflow.program.by_name.get(name)
            if made is None or not any(map(dataflow.is_fixed, made.sources[KERNEL : KERNEL + 1])):
                continue
            kernel, tensors = dataflow.source(made, KERNEL), made.inputs[KERNEL : KERNEL + 1]
            sizes = [size for size in (tensors[0][1] or ())[:2] if size] if tensors else []
            separable = kernel is not None and kernel.separable and set(made.attrs.strides) <= {1}
            size = (sizes[0], sizes[1]) if len(sizes) > 1 else None
            found.append(FixedConvolution(tuple(rows), size, separable, dataflow.program.line_of(made)))
        return cls(tuple(sorted(found, key=lambda one: -one.ms)))


def _forward(row: OperationTime) -> str:
    """Return the name in the program of a convolution, of a gradient that of the convolution that it belongs to."""
    name = row.operation.name if row.operation else row.name
    frames = list(FRAME.finditer(name))
    name = name[frames[-1].end() + 1 :] if frames else name
    before, scope, inner = name.rpartition(IN_LOOP)
    if scope and (not before or before.endswith("/")):
        return inner.rpartition("/")[0].removesuffix("_grad")
    if name.startswith(GRADIENT_SCOPE):
        return name.removeprefix(GRADIENT_SCOPE).rpartition("/")[0]
    return name
