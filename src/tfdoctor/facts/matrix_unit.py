"""How much of the matrix unit's capacity a step uses, while the device is busy."""

import re
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.device import Device
from tfdoctor.facts.hardware import Hardware
from tfdoctor.facts.operations import Operations, OperationTime

TENSOR_CORE = re.compile(
    r"(?:^|[_\W])(?:[hsi]?884|[hsi]?1688|[hsi]?16816|i?8816|i?16832|hmma|imma|wgmma|gmma|nvjet|tensorop|xmma)"
    r"|[hsi](?:884|1688|16816)|xmma_|nvjet_|tensorop|wgmma",
)
"""Kernel-name families that run on Tensor Cores: Volta (884), Turing and Ampere (1688, 16816,
tensorop, xmma), Hopper and Blackwell (wgmma, nvjet). From cuBLAS, cuDNN and CUTLASS naming."""

SCALAR = re.compile(
    r"sgemm|scudnn(?!.*(?:884|1688|16816))|winograd|fft|implicit_convolve|explicit_convolve"
)
"""Kernel-name families that do not: single-precision SIMT kernels of cuBLAS and cuDNN."""

SIMT = re.compile(r"ffma|simt")
"""What the names of CUTLASS and xmma kernels say when they use the scalar units after all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixUnit:
    """Use of the matrix unit. Times in ms per training step; shares from 0 to 1.

    ``utilization`` is achieved FLOPs over the peak while the device is busy; on a GPU without FLOPs
    it is None and ``on_unit_ms`` (the time in kernels known to use Tensor Cores) tells.
    """

    unit: str
    busy_ms: float
    matrix_ms: float  # in matmuls and convolutions
    utilization: float | None = None
    matrix_rate: float | None = None  # FLOP/s achieved by the matmuls and convolutions
    peak_flop_s: float | None = None
    on_unit_ms: float | None = None
    off_unit_ms: float | None = None
    unknown_ms: float = 0.0  # matrix work of which nobody knows where it ran

    @classmethod
    def measure(cls, operations: Operations, hardware: Hardware, device: Device) -> Self:
        """Set what the matmuls and convolutions achieved against what the unit can do.

        Raises:
            Unavailable: the device has no matrix unit that is known, or nothing tells its use.
        """
        if device.kind == "CPU":
            raise Unavailable(
                "a CPU's peak rate depends on clocks that the trace does not hold; "
                "float32-matmul judges the precision instead"
            )
        if not hardware.matrix_unit:
            raise Unavailable(hardware.missing)
        return cls.of(operations, hardware)

    @classmethod
    def of(cls, operations: Operations, hardware: Hardware) -> Self:
        """Compute the use from the operations' FLOPs and kernels."""
        rows, busy = operations.matrix, operations.total_ms
        if not rows and operations.why_unnamed:
            raise Unavailable(operations.why_unnamed)
        flops = [row.flops * row.calls for row in operations.rows if row.flops]
        peak = hardware.peak_flop_s
        known = bool(peak and flops and busy) and all(row.flops for row in rows)
        on, off, unknown = _by_kernel(rows) if hardware.kind == "GPU" else (None, None, 0.0)
        return cls(
            unit=hardware.matrix_unit,
            busy_ms=busy,
            matrix_ms=sum(row.ms for row in rows),
            utilization=sum(flops) / (busy * 1e-3) / peak if known and peak else None,
            matrix_rate=_rate(rows),
            peak_flop_s=peak,
            on_unit_ms=on,
            off_unit_ms=off,
            unknown_ms=unknown,
        )


def _rate(rows: tuple[OperationTime, ...]) -> float | None:
    ms = sum(row.ms for row in rows if row.flops)
    return sum((row.flops or 0) * row.calls for row in rows) / (ms * 1e-3) if ms else None


def _by_kernel(rows: tuple[OperationTime, ...]) -> tuple[float, float, float]:
    """Return the ms in kernels that use Tensor Cores, that do not, and that are unknown."""
    kinds = [(uses_tensor_cores(row), row.ms) for row in rows]
    on, off, unknown = (sum(ms for kind, ms in kinds if kind is one) for one in (True, False, None))
    return on, off, unknown


def uses_tensor_cores(row: OperationTime) -> bool | None:
    """Return whether an operation's kernels run on Tensor Cores, by name; None when unknown."""
    scalar = [bool(SIMT.search(kernel)) for kernel in row.ran]
    named = zip(row.ran, scalar, strict=True)
    if any(TENSOR_CORE.search(kernel) and not simt for kernel, simt in named):
        return True
    return False if any(scalar) or any(SCALAR.search(kernel) for kernel in row.ran) else None
