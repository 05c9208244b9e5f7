"""The operations by type and line, and how far each is from what the hardware can do."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE, Dataflow
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import KerasPart, Operation, Program

LONG_MS = 0.05  # Mean time of a call, in ms, from which the fixed cost of about 0.002 ms does not change its rate
# The loop in the name of an operation of its body, the outermost; that of its gradient's body is the same.
LOOP = re.compile(r"^(?:gradient_tape/)?(.*?\bwhile(?:_\d+)?)/")

# Types that do at most one cheap instruction for each element that they read or write, in the order of the memory:
# their bytes bound their time on a CPU. Exponentials, random numbers, gathers, transposes and windows compute or
# jump more than that: what they need is not known from their bytes.
STREAMED = frozenset(
    ("Abs", "Add", "AddN", "AddV2", "AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp", "BiasAdd",
     "BiasAddGrad", "BroadcastTo", "Cast", "ClipByValue", "Concat", "ConcatV2", "Equal", "Fill", "Greater",
     "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "Max", "Maximum", "Mean", "Min", "Minimum",
     "Mul", "Neg", "NotEqual", "OnesLike", "Pack", "Pad", "PadV2", "Prod", "RealDiv", "Relu", "Relu6", "Relu6Grad",
     "ReluGrad", "ResourceApplyGradientDescent", "Select", "SelectV2", "Sign", "Slice", "Split", "SplitV", "Square",
     "SquaredDifference", "StridedSlice", "StridedSliceGrad", "Sub", "Sum", "Tile", "Unpack", "ZerosLike")
)  # fmt: skip

# Parts of the names of types whose work is more than linear in their elements, on every device.
NEVER_STREAMED = re.compile(
    r"Svd|Qr$|Cholesky|Eig|Inverse|Solve|Determinant|TopK|Sort|Unique|FFT|NonMax|CTC|PyFunc|LRN"
)


class OperationGroup(Record, OperationRows, kw_only=True):
    """Operations of one type that one line made; times in ms per training step.

    ``least_ms`` is the time that their bytes and FLOPs need at the hardware's rates, in the types that they
    have now; None where it is unknown, and ``missing`` says why.
    """

    type: str
    at: Location | None
    layers: tuple[str, ...]
    loop: str = ""  # the loop of the graph that runs them: "sequential/lstm/while"
    loop_at: Location | None = None  # the line that made the loop
    origin: KerasPart | None = None  # the part of Keras that made them, where no layer did
    metrics: tuple[str, ...] = ()  # the names of the metrics that they belong to
    makes: str = ""  # of the longest: "float32[512,512] from [512]"
    only_metrics: bool = False  # no gradient uses their results
    gflop_s: float | None = None  # that they reach; of matmuls and convolutions only
    best_gflop_s: float | None = None  # that this run reaches for such an operation
    rows: tuple[OperationTime, ...]
    least_ms: float | None = None
    missing: str = ""

    @property
    def each_ms(self) -> float:
        """The mean time of a call."""
        return self.ms / self.calls if self.calls else 0.0

    @property
    def attained(self) -> float | None:
        """The least time relative to the measured one, 0 to 1; None is unknown."""
        return None if self.least_ms is None or not self.ms else min(1.0, self.least_ms / self.ms)

    @property
    def is_matrix(self) -> bool:
        """Whether its operations multiply matrices or convolve."""
        return any(row.is_matrix for row in self.rows)


class OperationGroups(Record):
    """The operations by type and line, or by layer where no line is known, the heaviest first."""

    groups: tuple[OperationGroup, ...]
    why_unnamed: str = ""  # why operations may be missing from the groups; "" where none is

    @classmethod
    def measure(
        cls, operations: Operations, hardware: Hardware, program: Program | None, dataflow: Dataflow | None
    ) -> Self:
        """Group the operations of the step, and compare each with the rates of the hardware."""
        known = program or Program()
        bytes_s = operations.streaming_rate if hardware.kind == DeviceKind.CPU else hardware.bandwidth_bytes_s
        placed = [_placed(_sized(row), known) for row in operations.rows]
        rows = by_key(
            ((one.type, loop_of(one.name), one.at or one.layer or one.name, origin_of(one)), one) for one in placed
        )
        groups, best = [], dict[str, float]()  # and the rate that this run reaches for products of a type
        for own in rows.values():
            group = _group(own, [_least_ms(row, hardware, bytes_s) for row in own], known, dataflow)
            groups.append(group)
            if group.gflop_s and group.each_ms >= LONG_MS:
                best[group.type] = max(best.get(group.type, 0.0), group.gflop_s)
        groups = [replace(group, best_gflop_s=best.get(group.type)) for group in groups]
        return cls(tuple(sorted(groups, key=lambda group: -group.ms)), operations.why_unlisted)


def _sized(row: OperationTime) -> OperationTime:
    """Return an operation with bytes that can be trusted, else with unknown ones.

    The program fills an open first dimension with the batch size. Outside of layers, and in vectors, it may be
    anything: a tensor that was flattened, say.
    """
    tensors = (*row.operation.inputs, *row.operation.outputs) if row.operation else ()
    open_shapes = (shape for _, shape in tensors if shape and None in shape)
    doubtful = any(not row.layer or len(shape) == 1 for shape in open_shapes)
    return replace(row, nbytes=None) if doubtful else row


def loop_of(name: str) -> str:
    """Return the name of the loop whose body holds an operation; "" where none does."""
    found = LOOP.match(name)
    return found[1] if found else ""


def origin_of(row: OperationTime) -> KerasPart | None:
    """Return the part of Keras that made an operation; None is none or unknown."""
    return row.operation.origin if row.operation else None


def _least_ms(row: OperationTime, hardware: Hardware, bytes_s: float | None) -> float | str:
    """Return the least time of an operation in its present types, in ms per step; else why it is unknown.

    Tensors that fit into a cache move faster than the memory's rate, which on a CPU is the one at which this run's
    own elementwise operations stream: such a least time is too long, not too short.
    """
    on_cpu, peak = hardware.kind == DeviceKind.CPU, hardware.peak_flop_s
    streams = row.type in STREAMED if on_cpu else not NEVER_STREAMED.search(row.type)
    if not (streams or row.is_matrix or row.is_fused):
        return "its bytes do not bound its time"
    if row.nbytes is None or not bytes_s:
        return "shapes unknown" if row.nbytes is None else "memory bandwidth unknown"
    unmeasured = row.is_matrix and (not peak or row.flops is None or row.precision == "float64")
    if unmeasured or not row.nbytes:
        return "FLOPs unknown" if peak else "peak FLOP/s unknown"
    # the peak is of the fastest 16-bit type
    share = hardware.sixteen_bit.scales if hardware.sixteen_bit and row.precision == "float32" else 1.0
    return row.least_ms(bytes_s, peak * share if peak and row.is_matrix else None)


def _group(
    rows: list[OperationTime], least: list[float | str], program: Program, dataflow: Dataflow | None
) -> OperationGroup:
    first, loop = rows[0], loop_of(rows[0].name)
    names = [row.built for row in rows]
    flops = [row.flops * row.calls for row in rows if row.flops and row.is_matrix]
    time_s = sum(row.ms for row in rows) * 1e-3
    missing = next((why for why in least if isinstance(why, str)), "")
    return OperationGroup(
        type=first.type,
        at=first.at,
        loop=loop,
        loop_at=program.line_of(program.by_name.get(loop)),
        layers=tuple(dict.fromkeys(row.layer for row in rows if row.layer)),
        rows=tuple(rows),
        origin=origin_of(first),
        metrics=tuple(metric.name for metric in program.metrics_of(origin_of(first))),
        makes=_makes(max(rows, key=lambda row: row.ms), program),
        only_metrics=dataflow is not None and all(map(dataflow.only_metrics, names)),
        gflop_s=sum(flops) / time_s * 1e-9 if len(flops) == len(rows) and time_s else None,
        least_ms=None if missing else sum(time for time in least if not isinstance(time, str)),
        missing=missing,
    )


def _makes(row: OperationTime, program: Program) -> str:
    """Return the result and the largest operand of an operation, "" where shapes are unknown."""
    operation = row.operation
    if operation is None or operation.type != row.type or not operation.outputs:
        return ""
    dtype, made = operation.outputs[0][0], program.shape(operation.outputs[0][1])
    shapes = [shape for _, given in operation.inputs if (shape := program.shape(given)) is not None]
    if made is None or not shapes:
        return ""
    sizes, largest = (",".join(map(str, shape)) for shape in (made, max(shapes, key=prod)))
    return f"{dtype}[{sizes}] from [{largest}]"


def _placed(row: OperationTime, program: Program) -> OperationTime:
    """Give an operation the line of its metric, of the operation whose gradient it is, or of the loop around it.

    A gradient's own line is the one that asks for all gradients: where the user's line calls the operation itself,
    that counts. TensorFlow inlines the bodies of loops and branches: the names in them begin with those of these.
    """
    of_metric = next((metric.at for metric in program.metrics_of(origin_of(row)) if metric.at), None)
    if of_metric:
        return replace(row, at=of_metric)
    _, scope, name = row.name.partition(GRADIENT_SCOPE)
    forward = _innermost(name, program) if scope and not loop_of(row.name) else None
    made = forward if forward and forward.direct and forward.at else None
    if made is None and not row.at and not row.layer:
        made = _innermost(row.name.rpartition("/")[0], program)
    if made:
        row = replace(row, layer=row.layer or made.layer, at=program.line_of(made))
    lines = program.lines_of(forward or made or row.operation)
    return replace(row, around=tuple(line for line in lines if line != row.at))


def _innermost(name: str, program: Program) -> Operation | None:
    """Return the operation of a name, else of the innermost scope around it: "a/b" and "a" of "a/b/c"."""
    parts = name.split("/")
    names = ("/".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((program.by_name[one] for one in names if one in program.by_name), None)
