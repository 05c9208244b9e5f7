from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (
    found(
        Operations,
        "The step computes no gradient of max pooling",
        lambda operations: any(map(_is_gradient, operations.rows)),
    ),
)

GRADIENTS = frozenset(("MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradWithArgmax", "MaxPool3DGrad"))
XLA_GRADIENT = "select-and-scatter"  # What XLA calls the gradient of max pooling
ONEDNN = re.compile("(^|:)_Mkl[^:]*$")  # Kernels of oneDNN, by the type at the end of their name


class Limits(RuleLimits):
    share: float = share_limit(0.03)


def check(operations: Operations, hardware: Hardware, limits: Limits = Limits()) -> Verdict:
    """Add up the gradients of max pooling, except those that oneDNN runs."""
    rows = [row for row in operations.rows if _is_gradient(row)]
    part = operations.part(sum(row.ms for row in rows))
    summary = f"The gradients of max pooling take {part}"
    slow = [row for row in rows if not any(map(ONEDNN.search, row.ran))]
    average = CODE["average"]
    code = CODE["on-cpu"].format(average) if hardware.kind == DeviceKind.CPU else average
    action = "Replace max pooling with average pooling or a convolution with stride 2"
    return spared(
        part,
        limits.share,
        "in gradients of max pooling",
        [(row, 0.0) for row in slow],
        healthy=summary if slow else f"{summary}; oneDNN runs them fast",
        finding=summary,
        wrong=bool(slow) and sum(row.ms for row in slow) >= limits.share * operations.total_ms,
        remedies=[Remedy(action, code, next((row.at for row in slow if row.at), None))],
        shown=[layer_table(slow)],
    )


def _is_gradient(row: OperationTime) -> bool:
    return row.type in GRADIENTS or XLA_GRADIENT in row.category or XLA_GRADIENT in row.name
