"""What a TPU's operations achieve: their use of the MXU and of the memory's bandwidth, and their bounds."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.tpu.copies import name_of
from tfdoctor.facts.tpu.rounds import counted, rounds_of, starts_of
from tfdoctor.facts.tpu.shapes import Array, arrays, convolves_each_alone
from tfdoctor.facts.tpu.time import COMPUTE, part_of
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.trace import EventType
from tfdoctor.trace.hlo import Instruction
from tfdoctor.trace.names import TPU_OPS

DEPTHWISE = "DepthwiseConv"  # The prefix of the types of TensorFlow's depthwise convolutions and their gradients
# The prefix of XLA's categories of operations with a dot or a convolution ("convolution fusion").
MATMUL_CATEGORY = "convolution"


@dataclass(frozen=True, slots=True)
class TpuOperation:
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
    def of(cls, kind: EventType, time: float, calls: float, rounds: int, xla_programs: XlaPrograms) -> Self:
        """Describe an instruction that took so many ps of so many rounds."""
        name, fingerprint = name_of(kind), str(kind.stats.get("program_id", ""))
        matmuls, called = xla_programs.matmuls(fingerprint, name), str(kind.stats.get("tf_op", ""))
        typed = called.rpartition(":")[2].startswith(DEPTHWISE) or convolves_each_alone(kind.name)
        flops, nbytes = (
            float(value) if isinstance(value, int | float) and value >= 0 else None
            for value in (kind.stats.get("flops"), kind.stats.get("bytes_accessed"))
        )
        return cls(
            name=name,
            title=called.rstrip(":"),
            category=str(kind.stats.get("hlo_category", "")),
            ms=time / PS_PER_MS / rounds,
            calls=calls / rounds,
            flops=flops,
            nbytes=nbytes,
            arrays=arrays(kind.name),
            matmuls=matmuls,
            depthwise=xla_programs.is_depthwise(fingerprint, name) if matmuls else typed,
        )

    @property
    def is_matmul(self) -> bool:
        """Whether the MXU runs it."""
        return bool(self.matmuls) or self.category.startswith(MATMUL_CATEGORY)

    @property
    def in_float32(self) -> bool:
        """Whether it multiplies float32 operands, by the types of its operands, else of its results."""
        dtypes = [array.dtype for array in self.arrays[1:]] or [array.dtype for array in self.arrays]
        floats = [dtype for dtype in dtypes if dtype.startswith(("f", "bf"))]
        return self.is_matmul and bool(floats) and all(dtype == "f32" for dtype in floats)


@dataclass(frozen=True, slots=True)
class TpuOperations:
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
        time = np.bincount(line.kind[inside], line.duration_ps[inside], len(line.types))
        calls = np.bincount(line.kind[inside], minlength=len(line.types))
        rows = [
            TpuOperation.of(line.types[at], float(time[at]), float(calls[at]), len(starts), xla_programs)
            for at in np.flatnonzero(calls).tolist()
            if part_of(str(line.types[at].stats.get("hlo_category", ""))) == COMPUTE
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
        flops = [row.flops for row in self.matmuls]
        if not self.peak_flop_s or not self.compute_ms or None in flops:
            return None
        done = sum((row.flops or 0) * row.calls for row in self.matmuls)
        return done / (self.compute_ms * 1e-3 * self.peak_flop_s)

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
