from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.zero_factor.dropped_work import DroppedWork

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.2.0"
BY_HAND = "which weights are to be trained, or which loss counts, is for you to say"


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = share_limit(0.05)


def check(dropped: DroppedWork, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Compare the work for zeros with the compute time."""
    if not dropped.factors:
        return Healthy(summary="No operation of the step multiplies by a constant zero")
    what = "gradients" if dropped.of_gradients else "results"
    action, code = "Compute this only where its factor is not zero", CODE["weighed"]
    if dropped.of_gradients:
        action, code = "Take gradients only for the weights that train", CODE["trained"]
    part = operations.part(sum(row.ms for row in dropped.rows))
    return spared(
        part, limits.share, "for results that are multiplied by zero",
        [(row, 0.0) for row in dropped.rows if row.ms],
        healthy=f"Work for {what} times zero takes {part}",
        finding=f"{counted(dropped.factors, 'multiplication')} by zero drop {what}, which take {part}",
        remedies=[Remedy(action, code, dropped.at)],
        more=[
            Measure("multiplications by zero", count(dropped.factors)),
            Measure("operations for them per step", count(dropped.calls)),
        ],
    )  # fmt: skip
