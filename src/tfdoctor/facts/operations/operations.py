"""Where the device's time went: each operation's time, layer, shapes and types, and its least time."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.operations.kernel_kinds import multiplies
from tfdoctor.facts.operations.operation_time import OF_HOST, ComputePart, OperationTime
from tfdoctor.facts.operations.shapes import TracedShapes, flops_of, nbytes_of
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.operation_types import COMPILED, base_type
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity, Work
from tfdoctor.facts.timeline.host_events import UNNAMED
from tfdoctor.trace.names import EAGER_OPERATION

# The prefix that inlining a function or a loop's body adds to its operations' names.
CALLED = re.compile(r"^.*PartitionedCall(?:_\d+)?/")
# Distance in the graph's order within which a bias or activation was fused with an earlier operation: a layer
# builds a handful of operations between them.
FUSED_WITHIN = 12
# Parts of an operation's name or type in a backward pass: gradient_tape/, ReluGrad, JAX's transpose(jvp(...)).
BACKPROP = re.compile(r"grad|backprop|transpose\(", re.IGNORECASE)
XLA_MODULE = "XlaModule"  # XLA's operation name for every kernel of a program that JAX compiled
MOSTLY_NAMED = 0.1  # Share of unnamed work up to which "there is no such operation" can be said
# Operations that only read and write their tensors: they run at the memory's rate.
STREAMING = ("AddV2", "Sub", "ReluGrad", "AddN", "RealDiv")
LARGE = 1_000_000  # Bytes per call from which an operation exceeds the caches and its fixed costs do not matter
FEWEST_BYTES = 0.5  # Share of float32's bytes in 16-bit precision: no change that tfdoctor proposes moves fewer
HALVES = ("float16", "bfloat16")  # The 16-bit types


class Operations(Record):
    """Every operation of the device's work, the heaviest first; they sum to the device's part."""

    rows: tuple[OperationTime, ...]

    @classmethod
    def measure(
        cls, activity: Activity, steps: Steps, breakdown: Breakdown, device: Device, program: Program | None,
        traced: TracedShapes,
    ) -> Self:  # fmt: skip
        """Divide the device's time among its operations and join them to the program.

        Raises:
            Unavailable: the trace does not contain the device's work.
        """
        work = activity.stages.get(Stage.DEVICE)
        if device.missing or work is None or not len(work.label):
            raise Unavailable(str(device.missing or "the trace contains no operation"))
        inside = steps.steady_spans.holds(work.start_ps)
        number, size = sum(step.calls for step in steps.steady_steps), len(work.labels)
        # (labels,) ps per step
        share = np.bincount(work.label[inside], work.attributed_ps()[inside], size) / number
        calls = np.bincount(work.label[inside], minlength=size) / number
        if not share.sum():
            raise Unavailable("the trace contains no operation inside its steady steps")
        times = share * (breakdown["device"] / share.sum())
        program = program or Program()
        labels = ((at, float(times[at]), float(calls[at])) for at in np.flatnonzero(calls).tolist())
        rows = (_row(work, *label, program, traced) for label in labels)
        kernels = by_key(((row.name, row.type), row) for row in rows)  # of each operation
        return cls(tuple(sorted(map(_merged, kernels.values()), key=lambda row: -row.ms)))

    @property
    def total_ms(self) -> float:
        """The time of all operations, in ms per step."""
        return sum(row.ms for row in self.rows)

    def of(self, names: Container[str]) -> tuple[OperationTime, ...]:
        """Return those of the program that have these names there; an instruction of XLA's is none of it."""
        built = ((row, row.operation) for row in self.rows)
        return tuple(row for row, one in built if one and not one.compiled and one.name in names)

    def part(self, ms: float) -> ComputePart:
        """Return what work that takes so many ms per step is of the compute time."""
        return ComputePart(ms, self.total_ms)

    @property
    def why_unnamed(self) -> str:
        """Why the absence of an operation proves nothing; "" when it does."""
        if self.unnamed <= MOSTLY_NAMED:  # each whole training step computes gradients
            trains = any(BACKPROP.search(f"{row.name} {row.type}") for row in self.rows)
            return "" if trains else "the traced step contains no gradient, so it is not a whole training step"
        if any(row.is_fused for row in self.rows):
            return f"XLA compiled {percent(self.unnamed)} of the compute time into kernels of several operations"
        return (
            f"the trace does not name the operations of {percent(self.unnamed)} of the compute time "
            "(XLA compiled them, or the profiler did not record their names)"
        )

    @property
    def why_unlisted(self) -> str:
        """Why the absence of a matmul or convolution proves nothing: XLA's instructions show which they hold."""
        unlisted = sum(row.ms for row in self.rows if row.type == UNNAMED)
        known = any(row.is_fused for row in self.rows) and unlisted <= MOSTLY_NAMED * self.total_ms
        return "" if known else self.why_unnamed

    @property
    def compiled(self) -> float:
        """The share of the time in instructions of programs that XLA compiled."""
        return self.part(sum(row.ms for row in self.rows if row.operation and row.operation.compiled)).share

    @property
    def matrix(self) -> tuple[OperationTime, ...]:
        """The matmuls and convolutions."""
        return tuple(row for row in self.rows if row.is_matrix)

    @property
    def unnamed(self) -> float:
        """The share of the time in operations that the trace does not name."""
        return self.part(sum(row.ms for row in self.rows if row.type == UNNAMED or row.is_fused)).share

    @property
    def streaming_rate(self) -> float | None:
        """The bytes per second that this run's own elementwise operations stream; None is unknown."""
        streaming = (row for row in self.rows if row.type in STREAMING and row.ms)
        rows = [row for row in streaming if (row.nbytes or 0) >= LARGE]
        time = sum(row.ms for row in rows) * 1e-3
        return sum((row.nbytes or 0) * row.calls for row in rows) / time if time else None


def _row(work: Work, label: int, ms: float, calls: float, program: Program, traced: TracedShapes) -> OperationTime:
    raw, raw_type, ran = work.labels[label]
    name, kind = CALLED.sub("", raw), base_type(raw_type)
    if raw == XLA_MODULE or (kind in COMPILED and not OF_HOST.search(ran)):  # one name for all kernels of a program
        name, kind = ran, ""
    if EAGER_OPERATION.fullmatch(ran):  # named by its type, as a graph's operation may be
        name = ran
    operation = lookup(name, kind, program) or traced.operations.get((raw, kind))
    exact = operation if operation and operation.type == kind else None
    event = work.types[label]
    category = str(event.stats.get("hlo_category", ""))
    return OperationTime(
        name=name or ran,
        type=kind or category or UNNAMED,
        ms=ms,
        calls=calls,
        ran=(ran,),
        ran_ms=(ms,),
        layer=operation.layer if operation else "",
        at=program.line_of(operation),
        operation=operation,
        category=category,
        flops=_stat(event, "flops", "model_flops") or flops_of(kind, exact, program),
        nbytes=_stat(event, "bytes_accessed") or nbytes_of(exact, program),
    )


def lookup(name: str, kind: str, program: Program) -> Operation | None:
    """Find the program's operation that ran under this name.

    Fusing renames: a convolution with its bias and activation runs under the name of the last of
    them. The operation is then the last one of the right type before that name in the graph.
    """
    named = program.by_name.get(name)
    if named is None or named.type == kind:
        return named
    at = program.position[name]
    before = reversed(program.operations[max(0, at - FUSED_WITHIN) : at])
    return next((operation for operation in before if operation.type == kind), named)


def _merged(rows: list[OperationTime]) -> OperationTime:
    """Return an operation with the time of all its kernels.

    A convolution is called as often as its multiplying kernel, not as those that convert its layout; an instruction
    of XLA's as often as the kernel that it launches once.
    """
    first = max(rows, key=lambda row: row.ms)
    multiplying = [row for row in rows if multiplies(row.ran)]
    least = first.operation is not None and first.operation.compiled
    return replace(
        first,
        ms=sum(row.ms for row in rows),
        calls=(min if least else max)(row.calls for row in multiplying or rows),
        ran=tuple(kernel for row in rows for kernel in row.ran),
        ran_ms=tuple(time for row in rows for time in row.ran_ms),
    )


def _stat(event: EventType, *names: str) -> float | None:
    amounts = (event.stats.get(name, 0) for name in names)
    return next((float(amount) for amount in amounts if isinstance(amount, int | float) and amount > 0), None)


class Roofline(Record):
    """The least time of each operation, in ms per training step, by the operation's name.

    The larger of its bytes (in 16-bit precision) over the memory's rate and of its FLOPs over the peak in
    16-bit precision; Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009. It is 0 where both are
    unknown, or where caches may hold the operation's tensors.
    """

    floors: Mapping[str, float]

    @classmethod
    def measure(cls, operations: Operations, hardware: Hardware) -> Self:
        """Take the device's peaks; for a CPU the rate at which this run's own operations stream.

        Raises:
            Unavailable: neither the memory's rate nor the peak is known.
        """
        rate, peak = hardware.bandwidth_bytes_s, hardware.peak_flop_s
        if hardware.kind == DeviceKind.CPU:
            rate = operations.streaming_rate
        if not rate and not peak:
            raise Unavailable(
                "the peak rates of this hardware are unknown, and no operation of the run shows its memory "
                "bandwidth"
            )
        floors = {}
        for row in operations.rows:
            moved = 1.0 if row.precision in HALVES else FEWEST_BYTES  # share of its bytes
            bounds = rate and (row.nbytes or 0.0) * moved >= LARGE
            floors[row.name] = min(row.ms, row.least_ms(rate / moved if rate and bounds else None, peak))
        return cls({name: ms for name, ms in floors.items() if ms})
