"""Which of a CPU's operations oneDNN ran, and with which instructions where known."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.roofline import HALVES
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording import Recording
from tfdoctor.terms.kinds import DeviceKind

ONEDNN = ("_Mkl", "_OneDnn")  # Prefixes of the types of operations that oneDNN runs (TensorFlow 2.5 to 2.21)
EIGEN_FUSED = ("_Fused",)  # Prefixes of operations that grappler fused and Eigen runs: _FusedConv2D, _FusedMatMul
# Instruction sets that oneDNN distinguishes, best first, by the recorded CPU flag (oneDNN, "CPU Dispatcher
# Control"; of AVX-512 it needs more than the foundation, which all but Xeon Phi have). AMX computes in 16-bit
# precision and 8 bit only; float32 then uses AVX-512.
LEVELS = (("AMX", "amx_tile"), ("AVX-512", "avx512f"), ("AVX2", "avx2"))


@dataclass(frozen=True, slots=True)
class OneDnn:
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

        def ran_ms(prefixes: tuple[str, ...]) -> float:
            ran = ((row.ms, [name.rpartition(":")[2] for name in row.ran]) for row in matmuls)
            return sum(ms for ms, types in ran if any(kind.startswith(prefixes) for kind in types))

        onednn, fused = ran_ms(ONEDNN), ran_ms(EIGEN_FUSED)
        rest = sum(row.ms for row in matmuls) - (onednn + fused)
        halves = all(row.precision in HALVES for row in matmuls)
        flags = recording.manifest.host.cpu_flags if recording.manifest else ()
        best = next((name for name, flag in LEVELS if flag in flags and (halves or name != "AMX")), "")
        why = "the CPU's flags name no instruction set that oneDNN distinguishes"
        if not flags:
            why = "the recording does not contain the CPU's flags; record with `tfdoctor profile`"
        return cls(onednn, fused, max(0.0, rest), best, "" if best else why)
