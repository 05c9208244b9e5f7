from tfdoctor.facts.gpu.activity import Collectives
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

ONE_DEVICE = "the replicas share one device, so that nothing would have to be exchanged; see shared-device"
NONE = "the trace contains no collective: one device trains, or the exchange was not recorded"


class Limits(RuleLimits):
    share: float = share_limit(0.1)


def check(
    breakdown: Breakdown, collectives: Collectives | None, skew: DeviceSkew | None, replicas: Replicas,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare the exposed exchange with the step."""
    exposed_ms = exchange_ms = breakdown[Stage.COLLECTIVE]
    if replicas.share_a_device:
        return NotApplicable(reason=ONE_DEVICE)
    if not exposed_ms and not (collectives and collectives.ms):
        return NotApplicable(reason=NONE)
    if skew and any(skew.exchanging_ms.values()):  # of the device that arrives last: without waiting
        exchange_ms = min(exposed_ms, *skew.exchanging_ms.values())
    took, rest_ms = milliseconds(exchange_ms), exposed_ms - exchange_ms
    waiting = f"; waiting for other devices adds {milliseconds(rest_ms)}" if rest_ms > 0 else ""
    part = f"{percent(breakdown.share(exchange_ms))}{'' if skew else ', including waiting for other devices'}"
    batch = f" (now {replicas.each:g} examples)" if replicas.each else ""
    times = [Measure("exposed collective time per step", ms(exposed_ms))]
    if skew:
        times.append(Measure("communication time, excluding waiting", ms(exchange_ms)))
    if collectives:
        times.append(
            Measure("collective time hidden by other kernels", ms(collectives.ms - collectives.exposed_ms))
        )
        calls = ", ".join(f"{name} {number:.3g}" for name, number in collectives.kinds)
        times.append(Measure(f"collective time per step (calls: {calls})", ms(collectives.ms)))
    return judged(
        Measure.share("share of the step in exposed collectives", breakdown.share(exposed_ms), limits.share),
        *times,
        healthy=f"The exchange delays each step by {took}{waiting}",
        finding=f"Exchanging gradients takes {took} of {breakdown.each_step} ({part})",
        wrong=exchange_ms >= limits.share * breakdown.step_ms,
        remedies=[
            Remedy("Overlap the exchange with the backward pass, and use NCCL", CODE["options"]),
            Remedy(f"Or exchange less often: use a larger batch per replica{batch}", CODE["larger"]),
        ],
        effects=[Effect(Stage.COLLECTIVE, 0.0, StepWork.EXCHANGE, ms(exchange_ms), bound=Bound.AT_MOST)],
    )
