from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

INPUT = "the job waits for its input: larger batches would only wait longer"
ONE_DEVICE = "the replicas share one device, which one replica would use with the whole batch; see shared-device"
UNRECORDED = "the recording does not say among how many replicas the batch is divided"


class Limits(RuleLimits):
    examples: float = limit(32.0)
    share: float = share_limit(0.3)


def check(replicas: Replicas, breakdown: Breakdown, device: Device, limits: Limits = Limits()) -> Verdict:
    """Compare the cost of a step that does not depend on the batch with the step."""
    reason = why_not(
        (replicas.count is None, UNRECORDED),
        ((replicas.count or 0) < 2, "one replica trains: its batch is not divided"),  # noqa: PLR2004 - several
        (replicas.share_a_device, ONE_DEVICE),
        (replicas.each is None, "the number of examples per step is not recorded"),
        (breakdown.waits_for_input, INPUT),
        (device.missing, str(device.missing)),
    )
    if reason:
        return NotApplicable(reason=reason)
    each = replicas.each or 0.0
    parts = {stage: breakdown[stage] for stage in (Stage.HOST, Stage.COLLECTIVE)}
    fixed = breakdown.share(sum(parts.values()))
    examples = f"{replicas.count} replicas with {with_noun(each, 'example')} each per step"
    return judged(
        Measure("examples per replica", count(each), count(limits.examples)),
        Measure("replicas", count(replicas.count or 0)),
        Measure.share("share of the step that does not depend on the batch", fixed, limits.share),
        healthy=f"{examples} spend {percent(fixed)} of the step on fixed costs",
        wrong=each < limits.examples and fixed >= limits.share,
        remedies=[Remedy("Give each replica the batch that one device would get", CODE["batch"])],
        effects=Effect.of_stages(parts, "", each / limits.examples),
    )
