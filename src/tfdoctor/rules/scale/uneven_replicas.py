from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    lag: float = share_limit(0.05)
    waited: float = share_limit(0.5)


def check(skew: DeviceSkew, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Compare the compute times of devices that wait for each other."""
    if not any(skew.exchanging_ms.values()):
        return NotApplicable(reason="the devices exchange nothing in the traced steps, so none waits for another")
    lag, share = milliseconds(skew.lag_ms), breakdown.share(skew.lag_ms)
    wrong = skew.lag_ms >= limits.lag * breakdown.step_ms
    if wrong and skew.waited_ms < limits.waited * skew.lag_ms:
        return NotApplicable(
            reason=f"{skew.slowest} computes {lag} longer than the others, but they do not wait for it in "
            "collectives: they may hold different parts of the model"
        )
    table = Table.of(
        sorted(skew.computing_ms, key=lambda name: -skew.computing_ms[name]),
        ("device", str),
        ("compute time", lambda name: ms(skew.computing_ms[name])),
        ("time in collectives", lambda name: ms(skew.exchanging_ms[name])),
    )
    # The slowest becomes as fast as the next: it computes less, or the device that is shown waits less.
    stage = Stage.COLLECTIVE if skew.shown in skew.exchanging_ms.keys() - {skew.slowest} else Stage.DEVICE
    return judged(
        Measure.share("share of the step by which the slowest device lags", share, limits.lag),
        Measure("extra time other devices wait in collectives", ms(max(0.0, skew.waited_ms))),
        table,
        healthy=f"The devices' compute times differ by {lag}",
        finding=f"{skew.slowest} computes {lag} longer than the other devices, which wait for it",
        wrong=wrong,
        remedies=[
            Remedy("Divide each batch evenly", CODE["even"]),
            Remedy(f"Find what slows {skew.slowest}", CODE["inspect"]),
        ],
        effects=[Effect(stage, 0.0, StepWork.SLOWEST_REPLICA, ms(skew.gain_ms), bound=Bound.AT_MOST)],
    )
