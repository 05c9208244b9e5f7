"""What a TPU's operations achieve: their use of the MXU and of the memory's bandwidth, and their padding."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.tpu.shapes import Array, arrays, convolves_each_alone
from tfdoctor.facts.tpu.time import COMPUTE, category_of, counted, name_of, part_of, rounds_of, starts_of
from tfdoctor.trace.hlo import Instruction
from tfdoctor.trace.names import TPU_OPS

DEPTHWISE = "DepthwiseConv"  # The prefix of the types of TensorFlow's depthwise convolutions and their gradients
# The prefix of XLA's categories of operations with a dot or a convolution ("convolution fusion").
MATMUL_CATEGORY = "convolution"


class TpuOperation(Record):
    """One computing instruction on the busiest core. Milliseconds per round; FLOPs and bytes per call.

    ``arrays`` are its results, then its operands; ``matmuls`` the dots and convolutions that it holds,
    where the trace has the program.
    """

    name: str  # "fusion.12"
    title: str  # the framework's: "jit(train_step)/jvp(dense)/dot_general"
    category: str
    ms: float
    calls: float
    flops: float | None
    nbytes: float | None
    arrays: tuple[Array, ...]
    matmuls: tuple[Instruction, ...] = ()
    depthwise: bool = False

    @classmethod
    def of(cls, kind: EventType, ms: float, calls: float, xla_programs: XlaPrograms) -> Self:
        """Describe an instruction that takes so many ms and calls of a round."""
        name, fingerprint = name_of(kind), str(kind.stats.get("program_id", ""))
        matmuls, called = xla_programs.matmuls(fingerprint, name), str(kind.stats.get("tf_op", ""))
        typed = called.rpartition(":")[2].startswith(DEPTHWISE) or convolves_each_alone(kind.name)
        flops, nbytes = (
            float(value) if isinstance(value, int | float) and value >= 0 else None
            for value in (kind.stats.get("flops"), kind.stats.get("bytes_accessed"))
        )
        depthwise = xla_programs.is_depthwise(fingerprint, name) if matmuls else typed
        title, category, moved = called.rstrip(":"), category_of(kind), arrays(kind.name)
        return cls(name, title, category, ms, calls, flops, nbytes, moved, matmuls, depthwise)

    @property
    def is_matmul(self) -> bool:
        """Whether the MXU runs it."""
        return bool(self.matmuls) or self.category.startswith(MATMUL_CATEGORY)

    @property
    def in_float32(self) -> bool:
        """Whether it multiplies float32 operands, by the types of its operands, else of its results."""
        dtypes = [array.dtype for array in self.arrays[1:] or self.arrays]
        floats = [dtype for dtype in dtypes if dtype.startswith(("f", "bf"))]
        return self.is_matmul and bool(floats) and all(dtype == "f32" for dtype in floats)


class TpuOperations(Record):
    """The busiest core's computing operations, the heaviest first. Peaks are those of one core's plane."""

    rows: tuple[TpuOperation, ...]
    peak_flop_s: float | None
    bandwidth_bytes_s: float | None

    @classmethod
    def measure(cls, device: Device, hardware: Hardware, xla_programs: XlaPrograms) -> Self:
        """Sum the operations of the rounds by instruction."""
        core = device.busiest
        if device.kind != DeviceKind.TPU or core is None or device.missing:
            raise Unavailable(str(device.missing or "the run used no TPU"))
        starts, end = starts_of(core, *rounds_of(core, xla_programs))
        line = next((line for line in core.lines if line.name == TPU_OPS), None)
        if line is None or not len(starts):
            raise Unavailable("the TPU's trace contains no operation within a step or a run of a program")
        inside = counted(line) & (line.start_ps >= starts[0]) & (line.start_ps < end)
        time = np.bincount(line.kind[inside], line.duration_ps[inside], len(line.types)) / PS_PER_MS / len(starts)
        calls = np.bincount(line.kind[inside], minlength=len(line.types)) / len(starts)
        rows = [
            TpuOperation.of(line.types[at], float(time[at]), float(calls[at]), xla_programs)
            for at in np.flatnonzero(calls).tolist()
            if part_of(category_of(line.types[at])) == COMPUTE
        ]
        if not rows:
            raise Unavailable("the TPU computed nothing in its traced steps")
        rows.sort(key=lambda row: -row.ms)
        return cls(tuple(rows), hardware.peak_flop_s, hardware.bandwidth_bytes_s)

    @property
    def matmuls(self) -> tuple[TpuOperation, ...]:
        """The dots and convolutions, and what is fused with them."""
        return tuple(row for row in self.rows if row.is_matmul)

    @property
    def compute_ms(self) -> float:
        """The time of all operations, in ms per round."""
        return sum(row.ms for row in self.rows)

    @property
    def mxu_use(self) -> float | None:
        """The matmuls' FLOPs over what the MXU could do while the core computes; None where any is unknown."""
        done = [None if row.flops is None else row.flops * row.calls for row in self.matmuls]
        if not self.peak_flop_s or not self.compute_ms or None in done:
            return None
        return sum(flops or 0 for flops in done) / (self.compute_ms * 1e-3 * self.peak_flop_s)

    @property
    def ridge(self) -> float | None:
        """The FLOPs per byte from which the MXU and not the memory bounds an operation; None when unknown."""
        if not self.peak_flop_s or not self.bandwidth_bytes_s:
            return None
        return self.peak_flop_s / self.bandwidth_bytes_s

    def memory_bound(self, row: TpuOperation) -> bool:
        """Say whether the memory bounds an operation by the roofline, as far as its figures are known."""
        if self.ridge is None or row.flops is None or not row.nbytes:
            return False
        return not row.is_matmul or row.flops / row.nbytes < self.ridge

    @property
    def memory_bound_ms(self) -> float:
        """The time in memory-bound operations, in ms per round."""
        return sum(row.ms for row in self.rows if self.memory_bound(row))

    @property
    def float32_ms(self) -> float:
        """The time in matmuls of float32 operands, in ms per round."""
        return sum(row.ms for row in self.rows if row.in_float32)


class PaddedMatmul(Record):
    """One operation with a dot or a convolution. Shares from 0 to 1; None is unknown."""

    row: TpuOperation
    useful: float  # of the MXU's width
    depth_useful: float | None  # of its depth; unknown with a window, which XLA may fold into the depth
    stored_useful: float | None  # of results and operands in memory; None where no tile is known
    tiles: frozenset[tuple[int, ...]]  # of its arrays: (8, 128)

    @classmethod
    def of(cls, row: TpuOperation, side: int) -> Self | None:
        """Size a matmul by its instruction's text, else by the program; None where neither tells."""
        shapes = (shape for instruction in row.matmuls[:1] for shape in instruction.shapes)
        sized = row.arrays or tuple(map(Array.of, shapes))
        width = sized[0].width if sized else None
        if not width:
            return None
        tiled = [array for array in sized if array.tile]
        matmul = next((inner.matmul for inner in row.matmuls if inner.matmul), None)
        depth = matmul.k if matmul and matmul.window <= 1 else None
        used, deep = (size / (ceil(size / side) * side) if size and side else 1.0 for size in (width, depth))
        stored = _weighted((array.stored, array.useful) for array in tiled)
        return cls(row, used, None if depth is None else deep, stored, frozenset(array.tile for array in tiled))


class Padding(Record):
    """How much of the matmuls whose shapes are known is padding: of what the MXU multiplies, and of what is stored.

    The MXU is a square of 128 x 128, 256 x 256 from v6e on (Google Cloud, TPU architecture). A matmul whose
    width (the result's dimension in the lanes) or depth (the summed dimension) is not a multiple of it leaves
    part of the square idle. In memory XLA pads the two minor dimensions to the layout's tile: 8 x 128 up to
    v6e for 16-bit precision too, 16 x 128 for bf16 from 7x on. The tile is read from the trace.
    """

    side: int
    matmuls: tuple[PaddedMatmul, ...]
    unknown_ms: float  # per round, in matmuls whose shapes the trace does not contain

    @classmethod
    def measure(cls, operations: TpuOperations, hardware: Hardware) -> Self:
        """Size every matmul by the program, else by its instruction's text."""
        side = hardware.tile.multiple if hardware.tile else 0
        if not operations.matmuls:
            raise Unavailable("the step runs no matmul or convolution")
        sized = [(row, PaddedMatmul.of(row, side)) for row in operations.matmuls if not row.depthwise]
        known = [matmul for _, matmul in sized if matmul is not None]
        if not known:
            raise Unavailable("the trace does not contain the shapes of its matmuls and convolutions")
        known.sort(key=lambda matmul: -matmul.row.ms * (1 - matmul.useful))
        return cls(side, tuple(known), sum(row.ms for row, matmul in sized if matmul is None))

    @property
    def lost_ms(self) -> float:
        """The time per round in which columns of the MXU multiply padding."""
        return sum(matmul.row.ms * (1 - matmul.useful) for matmul in self.matmuls)

    @property
    def useful(self) -> float:
        """The share of the MXU's width that is used, weighted by time."""
        total = sum(matmul.row.ms for matmul in self.matmuls)
        return 1 - self.lost_ms / total if total else 1.0

    @property
    def depth_useful(self) -> float | None:
        """The used share of the MXU's depth, over the matmuls whose depth is known; None without any."""
        return _weighted((matmul.row.ms, matmul.depth_useful) for matmul in self.matmuls)

    @property
    def stored_useful(self) -> float | None:
        """The share of the matmuls' arrays in memory that is not padding to tiles, weighted by time."""
        return _weighted((matmul.row.ms, matmul.stored_useful) for matmul in self.matmuls)

    @property
    def tiles(self) -> tuple[tuple[int, ...], ...]:
        """The tiles of the matmuls' arrays."""
        return tuple(sorted({tile for matmul in self.matmuls for tile in matmul.tiles}))


def _weighted(shares: Iterable[tuple[float, float | None]]) -> float | None:
    """Return the mean of the shares that are known, each of which comes after its weight."""
    known = [(weight, share) for weight, share in shares if share is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * share for weight, share in known) / total if total else None
