"""Matmuls and convolutions: which unit or library runs them, and which the program does not describe."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.operations.kernel_kinds import DEPTHWISE, MATMUL, kernel
from tfdoctor.facts.operations.operation_time import OperationTime, flop_s
from tfdoctor.facts.operations.operations import MOSTLY_NAMED, Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware

WHERE = "in a graph that was not recorded, such as the loop of an LSTM or GRU over time"
ONEDNN = ("_Mkl", "_OneDnn")  # Prefixes of the types of operations that oneDNN runs (TensorFlow 2.5 to 2.21)


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
            **(_of_kernels(rows) if hardware.kind == DeviceKind.GPU else {}),
        )


def _of_kernels(rows: tuple[OperationTime, ...]) -> dict[str, Any]:
    fields = dict.fromkeys(("on_unit_ms", "off_unit_ms", "beside_ms", "unknown_ms"), 0.0)
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
    return {**fields, "precisions": tuple(summed(precisions).items())}


class OneDnn(Record):
    """The share of the time of a CPU's matmuls and convolutions that oneDNN ran, 0 to 1."""

    share: float

    @classmethod
    def measure(cls, operations: Operations, device: Device, framework: Framework) -> Self:
        """Sort the matmuls and convolutions by the type that ran.

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
        onednn = (row for row in matmuls if any(ran.rpartition(":")[2].startswith(ONEDNN) for ran in row.ran))
        total_ms = sum(row.ms for row in matmuls)
        return cls(sum(row.ms for row in onednn) / total_ms if total_ms else 0.0)


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
