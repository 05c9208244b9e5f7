from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.operation_time import layer_table
from tfdoctor.facts.run.operation_types import CONVOLUTIONS
from tfdoctor.rules.deterministic_operations.determinism import Determinism

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.2.0"
PRECONDITIONS = (
    not_on(
        DeviceKind.CPU,
        DeviceKind.TPU,
        verdict=NotApplicable(reason="deterministic operations have slower kernels on GPUs only"),
    ),
)
BY_HAND = "whether the results must be equal bit by bit is not in the file"

# Types of operations with other kernels where results must be deterministic, besides convolutions (NVIDIA, status
# of GPU determinism).
OTHERS = frozenset(
    ["BiasAddGrad", "CropAndResizeGradBoxes", "CropAndResizeGradImage", "DepthwiseConv2dNativeBackpropFilter",
     "MaxPool3DGrad", "MaxPoolGrad", "MaxPoolGradV2", "ResizeBilinearGrad", "ScatterNd", "SegmentSum",
     "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", "TensorScatterAdd",
     "TensorScatterUpdate", "UnsortedSegmentSum"]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = share_limit(0.05)
    reached: float = share_limit(0.3)


def check(
    determinism: Determinism, operations: Operations, hardware: Hardware, limits: Limits = Limits()
) -> Verdict:
    """Add up the time of operations that have slower kernels because of a setting."""
    if not determinism.how:
        return Healthy(summary="No setting asks for deterministic operations")
    least = [(row, _least_ms(row, hardware)) for row in operations.rows if row.ms]
    slow = [
        (row, least_ms)
        for row, least_ms in least
        if (least_ms < limits.reached * row.ms if row.type in CONVOLUTIONS else row.type in OTHERS)
    ]
    if not slow and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    part = operations.part(sum(row.ms for row, _ in slow))
    measures = part.measures("in operations that determinism may slow down", limits.share)
    summary = f"Operations that {determinism.how} may slow down take {part}"
    if part.share < limits.share:
        return Healthy(summary=summary, evidence=measures)
    code = f"unset {determinism.variable}  # in the shell" if not determinism.by_call else CODE["flag"]
    return Finding(
        summary=summary,
        evidence=(*measures, layer_table((row for row, _ in slow), most=10)),
        remedies=(Remedy("Switch deterministic operations off, and compare", code, determinism.at),),
        effects=tuple(row.scaled(min(1.0, least_ms / row.ms), Bound.AT_MOST) for row, least_ms in slow),
    )


def _least_ms(row: OperationTime, hardware: Hardware) -> float:
    """Return the time at the peak rates of the device, per step; 0 where they are unknown."""
    peak = hardware.peak_flop_s or 0.0
    if row.precision == "float32" and hardware.sixteen_bit:
        peak *= hardware.sixteen_bit.scales
    computing_s = (row.flops or 0.0) / peak if peak else 0.0
    bandwidth = hardware.bandwidth_bytes_s
    moving_s = (row.nbytes or 0.0) / bandwidth if bandwidth else 0.0
    return max(computing_s, moving_s) * row.calls * 1e3
