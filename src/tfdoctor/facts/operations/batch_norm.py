"""The batch normalization layers, and which of them ran as separate operations."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Layer, Program

KINDS = ("BatchNormalization", "SyncBatchNormalization")  # Keras' classes; subclasses usually keep the ending
MOMENTS = "SquaredDifference"  # The operation that shows an unfused variance in a training step: inference has none
IMAGE_RANK = 4  # Batch, height, width, channels
# Passes of a fused layer over its activation: forward two reads and a write; backward x and its gradient are read
# twice and the new gradient is written.
FUSED_PASSES = 8
# Passes over a float32 activation for the casts that Keras adds around an unfused layer in mixed precision: to
# float32 before it and back after it, forward and backward, at 2 + 4 bytes per value.
CAST_PASSES = 6


@dataclass(frozen=True, slots=True)
class BatchNorm:
    """One layer that ran unfused, with its time in ms per training step."""

    layer: Layer
    ms: float
    operations: int
    shape: tuple[int, ...] | None = None  # of the activation it normalizes, 0 for each dimension where one is open
    nbytes: int | None = None  # of the same
    names: tuple[str, ...] = ()  # of its operations

    @property
    def subject(self) -> str:
        """The layer, as effects name it."""
        return f"{self.layer.name} (batch norm)"

    @property
    def of_images(self) -> bool:
        """Whether the fused operation accepts it: rank 4, normalized over the last dimension."""
        axis = self.layer.config.axis
        axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
        return self.shape is not None and len(self.shape) == IMAGE_RANK and axis in (-1, 3)

    @property
    def channels(self) -> int | None:
        """The last dimension; None when the shape is not known."""
        return self.shape[-1] if self.shape else None


@dataclass(frozen=True, slots=True)
class BatchNorms:
    """The program's batch normalization layers. ``rate`` is this run's streaming rate, in bytes/s."""

    unfused: tuple[BatchNorm, ...]
    fused: int
    seen: int  # layers with any operation of their own in the trace
    rate: float | None = None

    @classmethod
    def measure(cls, program: Program, operations: Operations) -> Self:
        """Classify each layer by the operations it ran.

        Raises:
            Unavailable: the program has none.
        """
        layers = [layer for layer in program.layers if layer.kind.endswith(KINDS)]
        if not layers:
            raise Unavailable("the program has no batch normalization layer")
        unfused, fused, seen = [], 0, 0
        for layer in layers:
            rows = [row for row in operations.rows if row.layer == layer.name]
            fused += any("FusedBatchNorm" in row.type for row in rows)
            seen += bool(rows)
            moments = next((row for row in rows if row.type == MOMENTS), None)
            if moments is None:
                continue
            tensors = moments.operation.inputs if moments.operation else ()
            sized = [(program.nbytes(tensor) or 0, tensor[1]) for tensor in tensors]
            nbytes, shape = max(sized, key=lambda tensor: tensor[0], default=(0, None))
            full = None if shape is None else program.shape(shape) or tuple(size or 0 for size in shape)
            names = tuple(row.name for row in rows)
            unfused.append(BatchNorm(layer, sum(row.ms for row in rows), len(rows), full, nbytes or None, names))
        return cls(tuple(unfused), fused, seen, operations.streaming_rate)

    def passes_ms(self, norm: BatchNorm, passes: float) -> float | None:
        """Return the time of passes over a layer's activation at the run's own rate, in ms."""
        return passes * norm.nbytes / self.rate * 1e3 if norm.nbytes and self.rate else None
