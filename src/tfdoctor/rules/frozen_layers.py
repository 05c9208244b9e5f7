from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.facts.savings.dispatch import Dispatch
from tfdoctor.facts.savings.frozen_work import FrozenWork
from tfdoctor.terms.humanize import quantity

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
BY_HAND = "the features have to be computed in the order of the examples, and the model divided in two"


@dataclass(frozen=True, slots=True)
class Limits:
    """When computing the results once is worth it, and how large they may be."""

    share: float = share_limit(
        0.05,
        "Smallest share of the compute time in frozen layers that is worth a second script to compute features",
    )
    passes: float = limit(2.0, "Smallest number of passes over the data for which results are used again")
    memory: float = share_limit(
        0.5,
        "Largest share of the host's free memory that the results may take; the rest is for buffers, checkpoints "
        "and later allocations of the run",
    )


def check(
    frozen: FrozenWork,
    operations: Operations,
    memory: HostMemory | None,
    dispatch: Dispatch | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Check that the work is the same in every pass, and compare it with the compute time."""
    if not frozen.layers:
        return Healthy(summary="All layers whose weights the step uses are trained")
    named, one = counted(len(frozen.layers), "frozen layer"), len(frozen.layers) == 1
    if not frozen.rows and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    if not frozen.rows:
        return Healthy(summary=f"The inputs of {named} {VARY}")
    part = operations.part(frozen.ms)
    evidence = _evidence(frozen, part.share, limits)
    takes = f"{named} {'takes' if one else 'take'} {part}"
    if part.share >= limits.share and frozen.passes is None:
        return NotApplicable(reason=f"{takes}, but {UNKNOWN_PASSES}")
    if why := _why_healthy(frozen, takes, part.share, memory, limits):
        return Healthy(summary=why, evidence=evidence)
    return Finding(
        summary=f"{named} {'computes' if one else 'compute'} the same in every epoch: {part}",
        evidence=evidence,
        remedies=(Remedy("Compute the results of the frozen layers once", CODE["once"], frozen.at),),
        effects=tuple(_effects(frozen, dispatch)),
    )


def _effects(frozen: FrozenWork, dispatch: Dispatch | None) -> Iterator[Effect]:
    """Yield the operations, and the host's time between them: nothing starts them any more."""
    for row in frozen.rows:
        if row.ms:
            yield row.scaled(0.0)
    host_ms = sum(map(dispatch.of_row, frozen.rows)) if dispatch else 0.0
    if host_ms:
        yield Effect(Stage.HOST, 0.0, DISPATCHING, ms(host_ms), bound=Bound.EXPECTED)


DISPATCHING = "dispatching frozen layers"
"""The name of the host's part for the step model."""


UNKNOWN_PASSES = "the number of passes over the data is unknown; let the run finish"


VARY = "change from step to step (random operations, or trained weights before them)"


def _why_healthy(frozen: FrozenWork, taken: str, share: float, memory: HostMemory | None, limits: Limits) -> str:
    """Return why the work is small, or cannot be spared; "" where it can."""
    passes, size = frozen.passes or 0.0, frozen.features_total or 0
    free = memory.total - memory.used if memory else None
    if share < limits.share:
        return taken
    if passes < limits.passes:
        return f"The run makes {number(passes)} {'pass' if passes == 1 else 'passes'} over its data"
    if frozen.differs:
        return f"{taken}, but {frozen.differs}"
    if free is not None and size > limits.memory * free:
        return f"{taken}, but {quantity(nbytes(size))} of results do not fit into memory"
    return ""


def _evidence(frozen: FrozenWork, share: float, limits: Limits) -> tuple[Measure, ...]:
    evidence = [
        Measure("time in frozen layers on unchanged examples, per step", ms(frozen.ms)),
        Measure.share("share of the compute time in frozen layers", share, limits.share),
        Measure("operations per step in frozen layers", count(frozen.calls)),
    ]
    if frozen.passes:
        least = count(limits.passes)
        evidence.append(Measure("passes over the data", count(frozen.passes), least))
    if frozen.features_bytes:
        size = nbytes(frozen.features_bytes)
        evidence.append(Measure("results of frozen layers per batch", size))
    return tuple(evidence)
