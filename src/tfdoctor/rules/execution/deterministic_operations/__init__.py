from tfdoctor.families.kit import *
from tfdoctor.rules.execution.deterministic_operations.determinism import Determinism

__doc__, CODE = page(__file__)
PRECONDITIONS = (only_on(DeviceKind.GPU, "deterministic operations have slower kernels on GPUs only"),)

# Types of operations with other kernels where results must be deterministic, besides convolutions (NVIDIA, status
# of GPU determinism).
OTHERS = frozenset(
    ["BiasAddGrad", "CropAndResizeGradBoxes", "CropAndResizeGradImage", "DepthwiseConv2dNativeBackpropFilter",
     "MaxPool3DGrad", "MaxPoolGrad", "MaxPoolGradV2", "ResizeBilinearGrad", "ScatterNd", "SegmentSum",
     "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", "TensorScatterAdd",
     "TensorScatterUpdate", "UnsortedSegmentSum"]
)  # fmt: skip


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    reached: float = share_limit(0.3)


def check(
    determinism: Determinism, operations: Operations, hardware: Hardware, limits: Limits = Limits()
) -> Verdict:
    """Add up the time of operations that have slower kernels because of a setting."""
    how = "enable_op_determinism()" if determinism.by_call else determinism.variable
    if not how:
        return Healthy(summary="No setting asks for deterministic operations")
    peak, slow = hardware.peak_flop_s or 0.0, []
    for row in (row for row in operations.rows if row.ms):
        # The least time is that at the peak rates of the device; 0 where they are unknown.
        slower = hardware.sixteen_bit.scales if row.precision == "float32" and hardware.sixteen_bit else 1.0
        least_ms = row.least_ms(hardware.bandwidth_bytes_s, peak * slower)
        if least_ms < limits.reached * row.ms if row.type in CONVOLUTIONS else row.type in OTHERS:
            slow.append((row, min(1.0, least_ms / row.ms)))
    if not slow and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    part = operations.part(sum(row.ms for row, _ in slow))
    code = f"unset {determinism.variable}  # in the shell" if not determinism.by_call else CODE["flag"]
    return spared(
        part,
        limits.share,
        "in operations that determinism may slow down",
        slow,
        finding=f"Operations that {how} may slow down take {part}",
        remedies=[Remedy("Switch deterministic operations off, and compare", code, determinism.at)],
        shown=[layer_table((row for row, _ in slow), most=10)],
    )
