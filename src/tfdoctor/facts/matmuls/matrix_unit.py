"""How much of the matrix unit's peak rate a step uses while the device is busy."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.operations.kernel_kinds import Kernel, kernel, of_operation
from tfdoctor.facts.operations.kernel_names import KernelRole
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.terms.kinds import DeviceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixUnit:
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
        """Compare what the matmuls and convolutions achieved with the unit's peak.

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
        return replace(cls.of(operations, hardware), active=samples.tensor_share if samples else None)

    @classmethod
    def of(cls, operations: Operations, hardware: Hardware) -> Self:
        """Compute the use from the operations' FLOPs and kernels."""
        rows, busy = operations.matrix, operations.total_ms
        if not rows and operations.why_unlisted:
            raise Unavailable(operations.why_unlisted)
        flops = [row.flops * row.calls for row in operations.rows if row.flops]
        peak = hardware.peak_flop_s
        known = bool(peak and flops and busy and rows) and all(row.flops for row in rows)
        timed_ms = sum(row.ms for row in rows if row.flops)
        done = sum((row.flops or 0) * row.calls for row in rows)
        return cls(
            unit=hardware.matrix_unit,
            busy_ms=busy,
            matrix_ms=sum(row.ms for row in rows),
            utilization=sum(flops) / (busy * 1e-3) / peak if known and peak else None,
            matrix_rate=done / (timed_ms * 1e-3) if timed_ms else None,
            peak_flop_s=peak,
            **(_of_kernels(rows, hardware) if hardware.kind == DeviceKind.GPU else {}),
        )


def _of_kernels(rows: Iterable[OperationTime], hardware: Hardware) -> dict[str, Any]:
    """Return the fields of a MatrixUnit that the names of kernels tell."""
    times = dict.fromkeys(("on_unit_ms", "off_unit_ms", "beside_ms", "unknown_ms"), 0.0)
    precisions: dict[str, float] = defaultdict(float)
    unused = 0.0
    for row in rows:
        names, parts = (
            (row.ran, row.ran_ms) if len(row.ran_ms) == len(row.ran) else (row.ran[:1] or ("",), (row.ms,))
        )
        for name, ms in zip(names, parts, strict=True):  # the first stands for all where their times are unknown
            launched = kernel(name)
            times[_place(launched)] += ms
            if launched.role is KernelRole.MATMUL:
                precisions[launched.precision or "unknown"] += ms
        unused += row.ms if of_operation(row.ran) is False and is_eligible(row, hardware) else 0.0
    longest = sorted(precisions.items(), key=lambda item: -item[1])
    return {**times, "unused_ms": unused, "precisions": tuple(longest)}


def _place(launched: Kernel) -> str:
    """Return the field of MatrixUnit that a kernel's time belongs to."""
    if launched.on_unit is None:
        return "unknown_ms"
    if launched.on_unit:
        return "on_unit_ms"
    return "off_unit_ms" if launched.role in (KernelRole.MATMUL, KernelRole.DEPTHWISE) else "beside_ms"


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
