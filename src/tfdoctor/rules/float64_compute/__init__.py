from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.operation_time import layer_table
from tfdoctor.rules.float64_compute.float64_work import Float64Work

__doc__, CODE = page(__file__)

TOPIC = Topic.PRECISION
SINCE = "0.1.0"
PRECONDITIONS = (found(Float64Work, lambda work: work.rows),)
BY_HAND = "the recording does not show which line makes the values float64"


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = share_limit(0.03)


def check(work: Float64Work, operations: Operations, hardware: Hardware, limits: Limits = Limits()) -> Verdict:
    """Price float64 operations at the time of float32 ones."""
    part, single = operations.part(sum(row.ms for row in (*work.rows, *work.casts))), hardware.float32
    doing = "in float64 operations"
    if not work.rows:
        unused = "The step computes nothing in float64"
        return Healthy(summary=unused, evidence=part.measures(doing, limits.share))
    wide = (
        row.scaled(single.matmuls if row.is_matrix else single.others, single.bound) for row in work.rows if row.ms
    )
    return spared(
        part,
        limits.share,
        doing,
        (*wide, *((row, 0.0) for row in work.casts if row.ms)),
        finding=f"Operations in float64 take {part}",
        remedies=[Remedy(work.origin.value, CODE[work.origin.name.lower()], work.at, "floatx")],
        shown=[layer_table((*work.rows, *work.casts), most=10)],
    )
