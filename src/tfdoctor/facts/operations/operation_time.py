"""One operation of the step: its time, type, shapes and precision; and what several of them make up together."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.operations.kernel_kinds import WIDE, multiplies, precision_of
from tfdoctor.facts.run.operation_types import DEPTHWISE, MATRIX_TYPES
from tfdoctor.facts.run.program import Operation
from tfdoctor.facts.run.xla_operations import TYPES
from tfdoctor.facts.timeline.host_events import UNNAMED

# The end of the names of operations that ran on the host, "name:type"; kernels' names have none.
OF_HOST = re.compile(r"[^:]:\w+$")
# The names of what tf.summary computes and writes in a graph.
SUMMARY = re.compile(r"(?:^|.*/)write_summary(?:_\d+)?(?:/.*|$)")
# The types of operations that write summaries, or make them for a writer of TensorFlow 1.
SUMMARY_TYPE = re.compile(r"\w*Summary(V2|Writer)?")
HLO_TYPE = re.compile(r"= \(?(f32|bf16|f16)\[")  # The type of an HLO instruction's result, on a TPU
# Shortest time of one call whose rate is compared, in ms: launching, or starting threads, takes as long.
SHORTEST_MS = 0.05


class OperationTime(Record, kw_only=True):
    """One operation of the step, with its share of the wall time, per training step."""

    name: str
    type: str
    ms: float
    calls: float = 1.0
    ran: tuple[str, ...] = ()  # kernels, or the rewritten operation
    ran_ms: tuple[float, ...] = ()  # the part of ``ms`` of each of ``ran``; () is unknown
    layer: str = ""
    at: Location | None = None
    around: tuple[Location, ...] = ()  # the user's lines that lead to ``at``, from the inside outwards
    operation: Operation | None = None  # as the program built it
    category: str = ""  # XLA's, on TPU
    flops: float | None = None  # per call
    nbytes: float | None = None  # per call

    @property
    def built(self) -> str:
        """Its name in the program, also where it runs under another one."""
        return self.operation.name if self.operation else self.name

    @property
    def dtype(self) -> str:
        """The type of its first floating-point operand, "" when unknown."""
        tensors = self.operation.inputs if self.operation else ()
        return next((dtype for dtype, _ in tensors if "float" in dtype), "")

    @property
    def precision(self) -> str:
        """The type it computes in, by the program, else by its kernels' names; "" is unknown."""
        if self.dtype:
            return self.dtype
        kernels = tuple(name for name in self.ran if not OF_HOST.search(name))
        hlo = (result[1] for name in kernels if (result := HLO_TYPE.search(name)))
        return WIDE.get(precision_of(kernels), "") or TYPES.get(next(hlo, ""), "")

    @property
    def flop_s(self) -> float:
        """The FLOP rate that it reaches; 0 is unknown."""
        return (self.flops or 0.0) * self.calls / (self.ms * 1e-3)

    def least_ms(self, bytes_s: float | None, flop_s: float | None) -> float:
        """Return the time that its bytes and FLOPs need at these rates, in ms per step; 0 is unknown."""
        moving = (self.nbytes or 0.0) / bytes_s if bytes_s else 0.0
        return max(moving, (self.flops or 0.0) / flop_s if flop_s else 0.0) * self.calls * 1e3

    def scaled(self, scales: float, bound: Bound = Bound.EXPECTED) -> Effect:
        """Return the effect of a change after which it takes ``scales`` times as long."""
        return Effect(Stage.DEVICE, scales, self.name, ms(self.ms), bound=bound)

    @property
    def of_summary(self) -> bool:
        """Whether it computes or writes a summary: nothing that trains depends on it."""
        return SUMMARY.fullmatch(self.name) is not None or SUMMARY_TYPE.fullmatch(self.type) is not None

    @property
    def is_matrix(self) -> bool:
        """Whether it multiplies matrices or convolves: by its type, else by its kernels' names."""
        xla = self.category.startswith("convolution") and not self.is_depthwise
        return self.type in MATRIX_TYPES or xla or (self.type == UNNAMED and multiplies(self.ran))

    @property
    def is_fused(self) -> bool:
        """Whether it is an instruction of XLA's that may hold several operations of the program."""
        return self.operation is not None and self.operation.compiled and not self.is_matrix

    @property
    def is_depthwise(self) -> bool:
        """Whether it convolves each channel alone."""
        return self.type in DEPTHWISE

    @property
    def kernel(self) -> tuple[int, ...] | None:
        """The shape of a convolution's or matmul's weights; None when unknown."""
        if self.operation is None or self.operation.type != self.type:
            return None
        weights = self.operation.outputs[:1] if "Filter" in self.type else self.operation.inputs[1:2]
        shape = weights[0][1] if weights else None
        return tuple(size or 0 for size in shape) if shape and None not in shape else None


class OperationRows:
    """What some operations of the step make up together."""

    __slots__ = ()
    rows: tuple[OperationTime, ...]

    @property
    def ms(self) -> float:
        """Their time, in ms per step."""
        return sum(row.ms for row in self.rows)

    @property
    def calls(self) -> float:
        """How often they run, per step."""
        return sum(row.calls for row in self.rows)


class ComputePart(Record):
    """What some work takes of the compute time, in ms per step, as rules state it in sentences and as evidence."""

    ms: float
    total_ms: float

    @property
    def share(self) -> float:
        """Its share of the compute time, 0 to 1."""
        return self.ms / self.total_ms if self.total_ms else 0.0

    def __str__(self) -> str:
        return f"{milliseconds(self.ms)} per step, {percent(self.share)} of the compute time"

    def measures(self, work: str, least: float | None = None) -> tuple[Measure, Measure]:
        """Return its time and its share, with the least one that counts; ``work`` is such as "in casts"."""
        limit = None if least is None else ratio(least)
        share = Measure(f"share of the compute time {work}", ratio(self.share), limit)
        return Measure(f"time {work} per step", ms(self.ms)), share


class LayerTime(Record, OperationRows):
    """Operations of a layer, or those of one name where the layer is unknown."""

    name: str
    rows: tuple[OperationTime, ...]

    @property
    def at(self) -> Location | None:
        """The line that creates the first of them."""
        return self.rows[0].at


def layer_table(
    rows: Iterable[OperationTime],
    *columns: tuple[str, Callable[[LayerTime], Cell | None]],
    types: bool = True,
    most: int | None = None,
) -> Table:
    """Return the table of operations by layer, of the first ``most`` layers alone, with ``types`` of operations."""
    groups = by_key((row.layer or row.name, row) for row in rows)
    layers = (LayerTime(name, tuple(group)) for name, group in groups.items())
    of_types = ("operation types", lambda layer: ", ".join(sorted({row.type for row in layer.rows})))
    return Table.of(
        sorted(layers, key=lambda layer: -layer.ms),
        ("layer", lambda layer: layer.name),
        ("your line", lambda layer: layer.at),
        *([of_types] if types else []),
        ("number of operations", lambda layer: count(len(layer.rows))),
        ("time per step", lambda layer: ms(layer.ms)),
        *columns,
        most=most,
    )


def flop_s(rows: Iterable[OperationTime]) -> float | None:
    """Return the FLOP rate of those whose FLOPs are known; None where there is none."""
    known = [row for row in rows if row.flops]
    seconds = sum(row.ms for row in known) * 1e-3
    return sum((row.flops or 0.0) * row.calls for row in known) / seconds if seconds else None


def fastest_flop_s(rows: Iterable[OperationTime]) -> float | None:
    """Return the highest rate; None where no call is long enough, or its FLOPs are unknown."""
    return max((row.flop_s for row in rows if row.flops and row.ms > SHORTEST_MS * row.calls), default=None)
