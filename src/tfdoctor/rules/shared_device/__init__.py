from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.scale.replicas import Replicas
from tfdoctor.facts.step_time.host_time import PythonOverhead
from tfdoctor.rules.shared_device.copied_work import CopiedWork

__doc__, CODE = page(__file__)
TOPIC, SINCE = Topic.SCALE, "0.2.0"
BY_HAND = "the strategy may be there for other machines, on which it stays"

ONE_EACH = Remedy(
    "Train one replica on each physical device",
    CODE["one-each"],
    edit_id="one-replica",
    changes="one replica trains on the whole batch",
)
GROWS = (
    "{} share one device, but {} of the compute time of the further ones is in operations on large tensors, which "
    "several may run side by side: time the program without the strategy"
)


@dataclass(frozen=True, slots=True)
class Limits:
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
    if replicas.count == 1:
        return NotApplicable(reason="one replica trains")
    if replicas.sharing is None:
        return NotApplicable(reason="the recording does not say on which device each replica computes")
    if not replicas.share_a_device:
        return Healthy(summary="Each replica has a device of its own")
    if copied is None:
        return NotApplicable(reason="the trace names no operation of a second replica")
    # A single replica does without these; the host's time for the operations goes with them.
    exchange = Effect.of_stages({Stage.COLLECTIVE: breakdown[Stage.COLLECTIVE]}, StepWork.EXCHANGE)
    entry = {Stage.HOST: overhead.edges_ms} if overhead else {}
    entries = Effect.of_stages(entry, StepWork.STEP_ENTRY, 1.0 / replicas.sharing)
    effects = [*(row.scaled(0.0, Bound.AT_MOST) for row in copied.spared if row.ms), *exchange, *entries]
    share = breakdown.share(sum((1.0 - effect.scales) * effect.of.value for effect in effects if effect.of))
    named = counted(replicas.sharing, "replica")
    if share >= limits.share and copied.fixed_share < limits.fixed:
        return NotApplicable(reason=GROWS.format(named, percent(1.0 - copied.fixed_share)))
    further = (*copied.fixed, *copied.growing)
    calls = sum(row.calls for row in (*further, *copied.updates))
    small = "share of the further replicas' compute time on small tensors"
    return judged(
        Measure("replicas on one device", count(replicas.sharing)),
        Measure.share("share of the step for having several", share, limits.share),
        Measure("operations per step of the further replicas", count(calls)),
        Measure("compute time of the further replicas, per step", ms(sum(row.ms for row in further))),
        Measure.share(small, copied.fixed_share, limits.fixed),
        Measure("updates of the further replicas' variables, per step", ms(sum(row.ms for row in copied.updates))),
        Measure("waiting for the exchange, per step", ms(breakdown[Stage.COLLECTIVE])),
        healthy=f"{named} on one device cost {percent(share)} of {breakdown.each_step}",
        finding=f"{named} share one device: {percent(share)} of {breakdown.each_step} is for having several",
        remedies=[replace(ONE_EACH, at=replicas.at)],
        effects=effects,
    )
