from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.scale.replicas import Replicas
from tfdoctor.facts.step_time.python_overhead import PythonOverhead
from tfdoctor.rules.shared_device.copied_work import CopiedWork

__doc__, CODE = page(__file__)

TOPIC = Topic.SCALE
SINCE = "0.2.0"
BY_HAND = "the strategy may be there for other machines, on which it stays"


@dataclass(frozen=True, slots=True)
class Limits:
    """When replicas on one device are a loss."""

    share: float = share_limit(
        0.05,
        "Smallest share of the step spent on further replicas and their exchange; from there on a saving is a "
        "warning",
    )
    fixed: float = share_limit(
        0.5,
        "Smallest share of the further replicas' compute time in operations that take hardly longer with the "
        "whole batch; below it, replicas side by side may use cores that one would leave idle",
    )


def check(
    replicas: Replicas,
    breakdown: Breakdown,
    copied: CopiedWork | None,
    overhead: PythonOverhead | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the work of the further replicas, and of combining them, with the step."""
    if verdict := _without(replicas):
        return verdict
    if copied is None:
        return NotApplicable(reason="the trace names no operation of a second replica")
    effects = tuple(_effects(replicas, breakdown, copied, overhead))
    spent = sum((1.0 - effect.scales) * effect.of.value for effect in effects if effect.of)
    share, named = breakdown.share(spent), counted(replicas.sharing or 0, "replica")
    evidence = _evidence(replicas, breakdown, copied, share, limits)
    if share < limits.share:
        summary = f"{named} on one device cost {percent(share)} of {breakdown.each_step}"
        return Healthy(summary=summary, evidence=evidence)
    if copied.fixed_share < limits.fixed:
        return NotApplicable(reason=GROWS.format(named, percent(1.0 - copied.fixed_share)))
    return Finding(
        summary=f"{named} share one device: {percent(share)} of {breakdown.each_step} is for having several",
        evidence=evidence,
        remedies=(_remedy(replicas.at),),
        effects=effects,
    )


GROWS = (
    "{} share one device, but {} of the compute time of the further ones is in operations on large tensors, which "
    "several may run side by side: time the program without the strategy"
)


def _without(replicas: Replicas) -> Verdict | None:
    """Return the verdict where no device is shared, or where that is unknown."""
    if replicas.count == 1:
        return NotApplicable(reason="one replica trains")
    if replicas.sharing is None:
        return NotApplicable(reason="the recording does not say on which device each replica computes")
    if not replicas.share_a_device:
        return Healthy(summary="Each replica has a device of its own")
    return None


def _effects(
    replicas: Replicas, breakdown: Breakdown, copied: CopiedWork, overhead: PythonOverhead | None
) -> Iterator[Effect]:
    """Yield what a single replica does without; the host's time for these operations goes with them."""
    for row in copied.spared:
        if row.ms:
            yield row.scaled(0.0, Bound.AT_MOST)
    parts = {Stage.COLLECTIVE: breakdown[Stage.COLLECTIVE]}
    yield from Effect.of_stages(parts, StepWork.EXCHANGE)
    entry = {Stage.HOST: overhead.edges_ms} if overhead else {}
    yield from Effect.of_stages(entry, StepWork.STEP_ENTRY, 1.0 / (replicas.sharing or 1))


def _evidence(
    replicas: Replicas, breakdown: Breakdown, copied: CopiedWork, share: float, limits: Limits
) -> tuple[Measure, ...]:
    further = (*copied.fixed, *copied.growing)
    return (
        Measure("replicas on one device", count(replicas.sharing or 0)),
        Measure.share("share of the step for having several", share, limits.share),
        Measure("operations per step of the further replicas", count(_calls(*further, *copied.updates))),
        Measure("compute time of the further replicas, per step", ms(sum(row.ms for row in further))),
        Measure.share(
            "share of the further replicas' compute time on small tensors", copied.fixed_share, limits.fixed
        ),
        Measure("updates of the further replicas' variables, per step", ms(sum(row.ms for row in copied.updates))),
        Measure("waiting for the exchange, per step", ms(breakdown[Stage.COLLECTIVE])),
    )


def _calls(*rows: OperationTime) -> float:
    return sum(row.calls for row in rows)


def _remedy(at: Location | None) -> Remedy:
    return Remedy("Train one replica on each physical device", CODE["one-each"], at, "one-replica", changes=ONE)


ONE = "one replica trains on the whole batch"
