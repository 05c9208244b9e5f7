from tfdoctor.facts.savings.given import Epoch, Price
from tfdoctor.facts.step_time.breakdown import UNKNOWN
from tfdoctor.families.kit import *
from tfdoctor.terms.humanize import dollars
from tfdoctor.terms.units import flops_per_dollar, usd

__doc__, CODE = page(__file__)

SECONDS_PER_HOUR = 3600  # For a rate per second and a price per hour


class Limits(RuleLimits):
    idle: float = share_limit(0.5)
    mean: float = limit(1.25, least=1.0)


def check(
    price: Price, breakdown: Breakdown, epoch: Epoch | None, matrix: MatrixUnit | None, steps: Steps,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Give the parts of the step in dollars, where the price of a steady step says enough."""
    if steps.mean_ms > limits.mean * breakdown.step_ms:
        return NotApplicable(
            reason=f"a steady step takes {milliseconds(breakdown.step_ms)}, but the mean of the traced steps is "
            f"{milliseconds(steps.mean_ms)}: the cost depends on how often the long steps occur"
        )
    if breakdown[UNKNOWN] > limits.idle * breakdown.step_ms:
        return NotApplicable(reason="the trace does not show what takes most of the step")
    idle = 1.0 - (breakdown[Stage.DEVICE] + breakdown[UNKNOWN]) / breakdown.step_ms
    share = Measure.share("share of the step without compute", idle, limits.idle)
    evidence = [
        share,
        Measure("cost per hour", usd(price.usd_per_hour)),
        Measure("cost per step", usd(price.of_ms(breakdown.step_ms))),
    ]
    if epoch:
        label = f"cost per epoch ({epoch.steps} steps)"
        evidence.append(Measure(label, usd(price.of_ms(breakdown.step_ms * epoch.steps))))
    if matrix and matrix.matrix_rate:
        per_hour = matrix.matrix_rate * matrix.matrix_ms / breakdown.step_ms * SECONDS_PER_HOUR
        label = "FLOPs of matmuls and convolutions per dollar"
        evidence.append(Measure(label, flops_per_dollar(per_hour / price.usd_per_hour)))
    cost = f"A thousand steps cost {dollars(1000 * price.of_ms(breakdown.step_ms))}"
    return judged(
        *evidence,
        healthy=f"{cost}; {percent(1 - idle)} of the cost pays for compute",
        finding=f"{cost}; {percent(idle)} of the cost pays for idle time",
        wrong=idle > limits.idle,
        remedies=[Remedy("After the other findings are fixed, try a smaller or cheaper machine")],
        severity=Severity.NOTE,
        concern=Concern.MONEY,
    )
