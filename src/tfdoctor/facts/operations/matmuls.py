"""Matmuls and convolutions: which unit or library runs them, and which the program does not describe."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.operations.kernel_kinds import DEPTHWISE, MATMUL, kernel, of_operation
from tfdoctor.facts.operations.operation_time import OperationTime, flop_s
from tfdoctor.facts.operations.operations import HALVES, MOSTLY_NAMED, Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware

WHERE = "in a graph that was not recorded, such as the loop of an LSTM or GRU over time"
ONEDNN = ("_Mkl", "_OneDnn")  # Prefixes of the types of operations that oneDNN runs (TensorFlow 2.5 to 2.21)
EIGEN_FUSED = ("_Fused",)  # Prefixes of operations that grappler fused and Eigen runs: _FusedConv2D, _FusedMatMul
# Instruction sets that oneDNN distinguishes, best first, by the recorded CPU flag (oneDNN, "CPU Dispatcher
# Control"; of AVX-512 it needs more than the foundation, which all but Xeon Phi have). AMX computes in 16-bit
# precision and 8 bit only; float32 then uses AVX-512.
LEVELS = (("AMX", "amx_tile"), ("AVX-512", "avx512f"), ("AVX2", "avx2"))


class MatrixUnit(Record, kw_only=True):
    """Use of the matrix unit. Times in ms per training step; shares from 0 to 1.

    ``utilization`` is achieved FLOPs over the peak while the device is busy. On a GPU without FLOPs it is
    None, and ``on_unit_ms``, the time in kernels known to use Tensor Cores, stands in for it.
    """

    unit: str
    busy_ms: float
    matrix_ms: float  # in matmuls and convolutions
    utilization: float | None = None
    matrix_rate: float | None = None  # FLOP/s achieved by the matmuls and convolutions
    peak_flop_s: float | None = None
    on_unit_ms: float | None = None
    off_unit_ms: float | None = None  # in kernels that multiply without the unit
    beside_ms: float = 0.0  # conversions, transforms and other helpers of matmuls
    unknown_ms: float = 0.0  # matrix work that ran on an unknown unit
    unused_ms: float = 0.0  # in operations that could have run on the unit as they are, but did not
    precisions: tuple[tuple[str, float], ...] = ()  # ms of the multiplying kernels, longest first
    active: float | None = None  # share of the busy time in which the unit worked, as sampled (GPM)

    @classmethod
    def measure(cls, operations: Operations, hardware: Hardware, device: Device, samples: Samples | None) -> Self:
        """Compare what the matmuls and convolutions achieved with the unit's peak, by their FLOPs and kernels.

        Raises:
            Unavailable: the device has no known matrix unit, or the trace does not show its use.
        """
        if device.kind == DeviceKind.CPU:
            raise Unavailable(
                "a CPU's peak rate depends on clock rates that the trace does not contain; see float32-matmul for "
                "the precision"
            )
        if not hardware.matrix_unit:
            raise Unavailable(hardware.missing)
        rows, busy, peak = operations.matrix, operations.total_ms, hardware.peak_flop_s
        if not rows and operations.why_unlisted:
            raise Unavailable(operations.why_unlisted)
        flops = [row.flops * row.calls for row in operations.rows if row.flops]
        known = bool(flops and busy and rows) and all(row.flops for row in rows)
        return cls(
            unit=hardware.matrix_unit,
            busy_ms=busy,
            matrix_ms=sum(row.ms for row in rows),
            utilization=sum(flops) / (busy * 1e-3) / peak if known and peak else None,
            matrix_rate=flop_s(rows),
            peak_flop_s=peak,
            active=samples.tensor_share if samples else None,
            **(_of_kernels(rows, hardware) if hardware.kind == DeviceKind.GPU else {}),
        )


def _of_kernels(rows: tuple[OperationTime, ...], hardware: Hardware) -> dict[str, Any]:
    fields = dict.fromkeys(("on_unit_ms", "off_unit_ms", "beside_ms", "unknown_ms", "unused_ms"), 0.0)
    precisions = list[tuple[str, float]]()
    for row in rows:  # the first kernel stands for all where their times are unknown
        timed = len(row.ran_ms) == len(row.ran)
        names, parts = (row.ran, row.ran_ms) if timed else (row.ran[:1] or ("",), (row.ms,))
        for launched, ms in zip(map(kernel, names), parts, strict=True):
            place = {None: "unknown_ms", True: "on_unit_ms", False: "beside_ms"}[launched.on_unit]
            if launched.on_unit is False and launched.role in (MATMUL, DEPTHWISE):
                place = "off_unit_ms"
            fields[place] += ms
            if launched.role is MATMUL:
                precisions.append((launched.precision or "unknown", ms))
        if of_operation(row.ran) is False and is_eligible(row, hardware):
            fields["unused_ms"] += row.ms
    return {**fields, "precisions": tuple(summed(precisions).items())}


def is_eligible(row: OperationTime, hardware: Hardware) -> bool | None:
    """Compare an operation on a GPU with the types and sizes that the unit supports; None is unknown."""
    if not hardware.matrix_unit:
        return False if hardware.without_unit else None
    dtype = row.precision
    if not row.is_matrix or row.is_depthwise or (dtype and dtype not in hardware.multiplies):
        return False
    if not dtype:
        return None
    if not hardware.strict or dtype != "float16":
        return True
    # cuBLAS before 11 and cuDNN before 7.6.3 skip the unit where a dimension is no multiple; later ones pad it.
    multiple = hardware.tile.multiple if hardware.tile else 1
    return True if row.kernel and not any(size % multiple for size in row.kernel[-2:]) else None


class OneDnn(Record):
    """The matmuls and convolutions of a CPU's step by the library that ran them, in ms per training step.

    ``instructions`` are the best that oneDNN can choose by the CPU's flags; traces do not show its choice,
    and ``ONEDNN_MAX_CPU_ISA`` may forbid the best. "" is unknown, and ``why_unknown`` says why.
    """

    onednn_ms: float
    eigen_fused_ms: float
    other_ms: float
    instructions: str
    why_unknown: str = ""

    @property
    def share(self) -> float:
        """The share of the matmuls' and convolutions' time that oneDNN ran, 0 to 1."""
        total = self.onednn_ms + self.eigen_fused_ms + self.other_ms
        return self.onednn_ms / total if total else 0.0

    @classmethod
    def measure(cls, operations: Operations, device: Device, recording: Recording, framework: Framework) -> Self:
        """Sort the matmuls and convolutions by the type that ran.

        AMX counts only where all of them are in 16-bit precision.

        Raises:
            Unavailable: the run was not on a CPU, or ran no matmul or convolution by name.
        """
        if device.kind != DeviceKind.CPU:
            raise Unavailable(f"oneDNN runs on CPUs; this run computed on a {device.kind}")
        if framework.foreign:
            raise Unavailable(f"a trace of {framework.title} does not name oneDNN's operations")
        matmuls = [row for row in operations.rows if row.is_matrix or row.is_depthwise]
        if not matmuls:
            raise Unavailable("the traced steps contain no matmul or convolution by name")
        onednn, fused = (
            sum(row.ms for row in matmuls if any(ran.rpartition(":")[2].startswith(prefixes) for ran in row.ran))
            for prefixes in (ONEDNN, EIGEN_FUSED)
        )
        rest = sum(row.ms for row in matmuls) - (onednn + fused)
        halves = all(row.precision in HALVES for row in matmuls)
        flags = recording.manifest.host.cpu_flags if recording.manifest else ()
        best = next((name for name, flag in LEVELS if flag in flags and (halves or name != "AMX")), "")
        why = "the CPU's flags name no instruction set that oneDNN distinguishes"
        if not flags:
            why = "the recording does not contain the CPU's flags; record with `tfdoctor profile`"
        return cls(onednn, fused, max(0.0, rest), best, "" if best else why)


def of_unknown_precision(operations: Operations) -> str:
    """Say that the precision of matmuls that no program describes is unknown; "" where they take little."""
    total = sum(row.ms for row in operations.matrix)
    time = sum(row.ms for row in operations.matrix if row.operation is None and not row.precision)
    if time <= MOSTLY_NAMED * total:
        return ""
    of = f"{milliseconds(time)} of {milliseconds(total)} of matmuls and convolutions per step"
    return f"the precision of {of} is unknown: they run {WHERE}"


def repeated(operations: Operations, calls: float, each_ms: float, share: float) -> str:
    """Describe small matmuls that run repeatedly; "" where they are below a share of the compute."""
    rows = [row for row in operations.matrix if row.calls >= calls and row.ms <= each_ms * row.calls]
    rows = [row for row in rows if row.operation is None]
    time, times = sum(row.ms for row in rows), sum(row.calls for row in rows)
    if time <= share * operations.total_ms:
        return ""
    return f"{number(times)} small matmuls per step ({milliseconds(time)}) run {WHERE}"
