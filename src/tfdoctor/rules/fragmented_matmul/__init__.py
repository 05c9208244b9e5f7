from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.matmuls.unrecorded_matmuls import UnrecordedMatmuls
from tfdoctor.rules.fragmented_matmul.sibling_matmuls import SiblingMatmuls, Siblings

__doc__, CODE = page(__file__)

TOPIC = Topic.PRECISION
SINCE = "0.1.0"
BY_HAND = "the layers have to be written as one, whose result is split"


@dataclass(frozen=True, slots=True)
class Limits:
    """How many matmuls, and how small, are worth one larger matmul."""

    products: float = limit(
        4.0,
        "Smallest number of matmuls of one tensor with weights of one shape that is reported: query, key and "
        "value are three by design",
    )
    each_ms: float = limit(
        0.2,
        "Longest call of a small matmul, in ms: twice its fixed cost on a CPU (benchmarks/precision.py); a "
        "longer call is mostly arithmetic, which one larger matmul does not save",
    )
    unseen: float = share_limit(
        0.05,
        "Largest share of the compute time in small matmuls with unknown inputs for which the step can be "
        "called healthy",
    )


def check(siblings: SiblingMatmuls, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Keep the time of one call of each group of small matmuls."""
    groups = [group for group in siblings.groups if len(group.matmuls) >= limits.products]
    small = [group for group in groups if group.each_ms <= limits.each_ms]
    if small:
        return _finding(small, operations, limits)
    if operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    if groups:
        longest = milliseconds(max(group.each_ms for group in groups))
        return Healthy(summary=f"The matmuls that share a tensor are large enough: up to {longest} per call")
    unrecorded = UnrecordedMatmuls.measure(operations)
    repeated = unrecorded.repeated(limits.products, limits.each_ms, limits.unseen)
    if repeated:
        return NotApplicable(reason=f"{repeated}: {LOOP}")
    return Healthy(summary="No tensor is multiplied by many weights of the same shape")


def _finding(small: list[Siblings], operations: Operations, limits: Limits) -> Finding:
    total_ms = sum(group.ms for group in small)
    number = sum(len(group.rows) for group in small)
    at = next((group.at for group in small if group.at), None)
    table = Table.of(
        small,
        ("tensor", lambda group: group.source),
        ("your line", lambda group: group.at),
        ("matmuls", lambda group: count(len(group.matmuls))),
        ("weights", lambda group: " x ".join(str(size or "?") for size in group.weights)),
        ("time per step with gradients", lambda group: ms(group.ms)),
    )
    return Finding(
        summary=f"{counted(number, 'small matmul')} take {milliseconds(total_ms)} per step; "
        f"{counted(len(small), 'larger matmul')} (gradients included) could replace them",
        evidence=(
            *operations.part(total_ms).measures("in small matmuls of shared tensors"),
            Measure("time per call of a small matmul", ms(total_ms / number), ms(limits.each_ms)),
            table,
        ),
        remedies=(Remedy("Run one larger matmul and split its result", CODE["one-matmul"], at),),
        effects=tuple(  # the time of one call remains, forward and backward
            row.scaled(1.0 / len(group.matmuls), Bound.AT_MOST) for group in small for row in group.rows
        ),
    )


LOOP = (
    "whether they share an input is unknown. The loop over time of a recurrent layer also takes host time: "
    "try `unroll=True` (for short sequences) or jit_compile=True and measure"
)
