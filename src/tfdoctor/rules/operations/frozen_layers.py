from tfdoctor.facts.savings.layer_work import FrozenWork
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    passes: float = limit(2.0)
    memory: float = share_limit(0.5)


def check(
    frozen: FrozenWork, operations: Operations, memory: HostMemory | None, dispatch: Dispatch | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Check that the work is the same in every pass, and compare it with the compute time."""
    if not frozen.layers:
        return Healthy(summary="All layers whose weights the step uses are trained")
    named, one = counted(len(frozen.layers), "frozen layer"), len(frozen.layers) == 1
    if not frozen.rows:
        why = operations.why_unnamed
        return NotApplicable(reason=why) if why else Healthy(summary=f"The inputs of {named} {VARY}")
    part = operations.part(frozen.ms)
    takes = f"{named} {'takes' if one else 'take'} {part}"
    evidence = [
        Measure("time in frozen layers on unchanged examples, per step", ms(frozen.ms)),
        Measure.share("share of the compute time in frozen layers", part.share, limits.share),
        Measure("operations per step in frozen layers", count(frozen.calls)),
    ]
    if frozen.passes:
        evidence.append(Measure("passes over the data", count(frozen.passes), count(limits.passes)))
    if frozen.features_bytes:
        evidence.append(Measure("results of frozen layers per batch", nbytes(frozen.features_bytes)))
    if part.share < limits.share:
        return Healthy(summary=takes, evidence=tuple(evidence))
    if frozen.passes is None:
        return NotApplicable(reason=f"{takes}, but {UNKNOWN_PASSES}")
    size, free = frozen.features_total or 0, memory.total - memory.used if memory else None
    needed = f"{takes}, but {frozen.differs}" if frozen.differs else ""
    if frozen.passes < limits.passes:
        passes = f"{number(frozen.passes)} {'pass' if frozen.passes == 1 else 'passes'}"
        needed = f"The run makes {passes} over its data"
    elif not needed and free is not None and size > limits.memory * free:
        needed = f"{takes}, but {quantity(nbytes(size))} of results do not fit into memory"
    if needed:
        return Healthy(summary=needed, evidence=tuple(evidence))
    # nothing starts the operations any more: the host's time between them goes as well
    host_ms = sum(map(dispatch.of_row, frozen.rows)) if dispatch else 0.0
    dispatching = Effect.of_stages({Stage.HOST: host_ms}, DISPATCHING, bound=Bound.EXPECTED)
    return Finding(
        summary=f"{named} {'computes' if one else 'compute'} the same in every epoch: {part}",
        evidence=tuple(evidence),
        remedies=(Remedy("Compute the results of the frozen layers once", CODE["once"], frozen.at),),
        effects=(*(row.scaled(0.0) for row in frozen.rows if row.ms), *dispatching),
    )


DISPATCHING = "dispatching frozen layers"  # The name of the host's part for the step model

UNKNOWN_PASSES = "the number of passes over the data is unknown; let the run finish"

VARY = "change from step to step (random operations, or trained weights before them)"
