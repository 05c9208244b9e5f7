"""What ran in a step: stages of the input pipeline and operations, and the device's rates."""

from dataclasses import dataclass
from typing import Annotated

from tfdoctor.terms.json_form import Named
from tfdoctor.terms.verdict import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStage:
    """One iterator of the input pipeline; consumers come before producers."""

    name: str  # "Map", "Prefetch", ...: what ran
    parent: int | None  # index of the consumer in the tuple of stages
    self_ms: float  # work of this stage alone, per step, summed over threads
    parallelism: float  # mean number of threads at work in it while it works
    calls: float  # per step
    critical: bool  # on the chain that limits the pipeline
    written: str = ""  # what the user wrote, when it is known: ".map(decode)"
    at: Location | None = None
    note: str = ""  # "injected by tf.data", "ran in parallel (autotuned)", ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """Compute time of one operation type in one layer."""

    layer: str  # "" when it belongs to none
    operation: str  # "Conv2D"
    self_ms: float  # wall time it is accountable for, per step
    share: float  # of the step
    at: Location | None = None
    detail: str = ""  # shapes and types, for the reader
    flops: float | None = None  # per step; None where not all of it is known
    nbytes: Annotated[float | None, Named("bytes")] = (
        None  # of operands and results, per step; likewise
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRates:
    """What the device can compute and move at most; None where unknown."""

    flop_s: Annotated[float | None, Named("flop_per_s")] = (
        None  # dense matmuls in the fastest 16-bit type
    )
    bytes_s: Annotated[float | None, Named("bytes_per_s")] = None  # of its memory
    measured: bool = False  # the memory's rate is that of this run's own elementwise operations
