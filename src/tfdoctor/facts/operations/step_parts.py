"""Parts of the step that rules ask for: the optimizer, batch normalization, and tensors repeated in memory."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import BROADCASTING, FUSED_UPDATES, REPEATS, UNARY, UPDATES
from tfdoctor.facts.run.program import Layer, Operation, Program

# The name scopes of Keras' optimizers, numbered from the second on ("adam_1").
OPTIMIZERS = frozenset(
    ["adam", "adamw", "adamax", "adagrad", "adadelta", "rmsprop", "nadam", "ftrl", "lion", "lamb", "sgd", "muon",
     "adafactor", "optimizer", "loss_scale_optimizer"]
)  # fmt: skip

# Keras' classes of batch normalization; subclasses usually keep the ending.
KINDS = ("BatchNormalization", "SyncBatchNormalization")
MOMENTS = "SquaredDifference"  # The operation that shows an unfused variance in a training step: inference has none
IMAGE_RANK = 4  # Batch, height, width, channels
# Passes of a fused layer over its activation: forward two reads and a write; backward x and its gradient are read
# twice and the new gradient is written.
FUSED_PASSES = 8
# Passes over a float32 activation for the casts that Keras adds around an unfused layer in mixed precision: to
# float32 before it and back after it, forward and backward, at 2 + 4 bytes per value.
CAST_PASSES = 6


class OptimizerWork(Record, OperationRows):
    """The optimizer's operations; ``updates`` are those of variables, moments among them."""

    rows: tuple[OperationTime, ...]
    updates: float  # per step

    @classmethod
    def measure(cls, operations: Operations) -> Self:
        """Find the operations by the optimizer's name scope, fused updates by their type."""
        rows = []
        for row in operations.rows:
            scopes = {re.sub(r"_\d+$", "", part).lower() for part in row.name.split("/")[:-1]}
            if scopes & OPTIMIZERS or FUSED_UPDATES.fullmatch(row.type):
                rows.append(row)
        return cls(tuple(rows), sum(row.calls for row in rows if UPDATES.fullmatch(row.type)))

    def others(self, operations: Operations) -> tuple[OperationTime, ...]:
        """Return the operations of the same step that are not the optimizer's.

        Rows are known by identity: to compare each of thousands with all of these takes half a minute.
        """
        own = frozenset(map(id, self.rows))
        return tuple(row for row in operations.rows if id(row) not in own)


def is_small(row: OperationTime, values: float, each_ms: float) -> bool:
    """Say whether an operation works on at most ``values``, or where unknown takes at most ``each_ms`` a call."""
    tensors = (*row.operation.inputs, *row.operation.outputs) if row.operation else ()
    shapes = [shape for _, shape in tensors if shape is not None and None not in shape]
    largest = max((prod(size or 0 for size in shape) for shape in shapes), default=None)
    return row.ms <= each_ms * row.calls if largest is None else largest <= values


class BatchNorm(Record):
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


class BatchNorms(Record):
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


class Broadcast(Record, OperationRows):
    """A repetition with its gradient, and the ``chain`` of operations that recompute each repeated value.

    ``rows`` is empty where an operation needs the repeated tensor itself.
    """

    row: OperationTime
    times: float  # the size of its result over that of its input
    rows: tuple[OperationTime, ...]
    chain: tuple[OperationTime, ...] = ()  # forward and backward

    @property
    def chain_ms(self) -> float:
        """The time that the chain would save before the repetition, in ms per step."""
        return sum(row.ms for row in self.chain) * (1.0 - 1.0 / self.times)


class Broadcasts(Record):
    """The forward pass' needless repetitions, and those that precede operations that could precede them.

    Operations that broadcast by themselves need no tensor that is repeated in memory.
    """

    rows: tuple[Broadcast, ...]

    @classmethod
    def measure(cls, operations: Operations, program: Program, dataflow: Dataflow) -> Self:
        """Follow each repetition to the operations that use it."""
        rows, found, consumers = operations.rows, [], dataflow.consumers
        for row in (row for row in rows if row.type in REPEATS):
            forward = row.operation
            times = _times(forward, program) if forward else None
            if not forward or not times or forward.name.startswith("gradient"):
                continue
            names = [forward.name]  # and the unary operations that follow it, forward and backward
            for name in names:
                users = consumers.get(name, ())
                names += [user.name for user in users if user.type in UNARY and user.name not in names]
            after = [user for name in names for user in consumers.get(name, ()) if user.name not in names]
            others = [user.type in BROADCASTING for user in after if not user.name.startswith("gradient")]
            own = [one for one in rows if dataflow.is_gradient_of(one.name, forward) or one is row]
            chain = [one for one in rows if one.operation and one.operation.name in names[1:]]
            needless = bool(others) and all(others)
            if needless or chain:
                found.append(Broadcast(row, times, tuple(own if needless else ()), tuple(chain)))
        return cls(tuple(found))


def _times(operation: Operation, program: Program) -> float | None:
    """Return how many times as large the result is; None when a shape is not known, or ranks differ."""
    if not operation.inputs or not operation.outputs:
        return None
    before, after = program.shape(operation.inputs[0][1]), program.shape(operation.outputs[0][1])
    if before is None or after is None or not prod(before):
        return None
    # Only dimensions of size 1 can be left to broadcasting: 2 repeated to 4 cannot.
    padded = (1,) * (len(after) - len(before)) + before
    broadcasts = all(old in (1, new) for old, new in zip(padded, after, strict=True))
    return prod(after) / prod(before) if broadcasts else None
