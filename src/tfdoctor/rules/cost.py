"""Most of the cost is spent on idle time.

## What it checks

With `--usd-per-hour`: the cost of a step, the cost of an epoch if its number of steps is known, and the share of
the cost that pays for time without compute (waits for input, copies, the host or other devices, and the time
between steps). Where the FLOPs of the matmuls are known, it reports the FLOPs per dollar. It
also reports the combined savings of all findings in dollars.

## Why it matters

Savings in dollars can be compared with the cost of an engineer's time; milliseconds cannot.

## How to fix

Fix the other findings in the order of the report. If the device still idles, a smaller or cheaper one may train
as fast.

## Holds for

Any run whose steps are known and similar. The price is given by the user: an hour of all machines of the job
together, in US dollars.

## Sources

- [Optimize TensorFlow performance using the Profiler](https://www.tensorflow.org/guide/profiler)
- [Analyze tf.data performance with the TF Profiler](https://www.tensorflow.org/guide/data_performance_analysis)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.matmuls.matrix_unit import MatrixUnit
from tfdoctor.facts.savings.price import Epoch, Price
from tfdoctor.facts.step_time.breakdown import UNKNOWN, Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.terms.humanize import dollars, milliseconds, percent
from tfdoctor.terms.units import flops_per_dollar, usd
from tfdoctor.terms.verdict import (
    Concern,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Stage,
    Verdict,
)

TOPIC = Topic.SCALE
SINCE = "0.1.0"
BY_HAND = "the machine is not chosen in the file"

SECONDS_PER_HOUR = 3600
"""For a rate per second and a price per hour."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    idle: float = share_limit(
        0.5, "Largest share of the step without compute; above it most of the cost pays for idle time"
    )
    mean: float = limit(
        1.25,
        "Largest ratio of the mean traced step to a steady step; above it a few long steps decide the cost, "
        "and a short trace does not show how often they occur",
        least=1.0,
    )


def check(
    price: Price,
    breakdown: Breakdown,
    epoch: Epoch | None,
    matrix: MatrixUnit | None,
    steps: Steps,
    limits: Limits = Limits(),
) -> Verdict:
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
    evidence = (share, *_prices(price, breakdown.step_ms, epoch, matrix))
    cost = f"A thousand steps cost {dollars(1000 * price.of_ms(breakdown.step_ms))}"
    if idle <= limits.idle:
        summary = f"{cost}; {percent(1 - idle)} of the cost pays for compute"
        return Healthy(summary=summary, evidence=evidence, concern=Concern.MONEY)
    return Finding(
        summary=f"{cost}; {percent(idle)} of the cost pays for idle time",
        evidence=evidence,
        remedies=(SMALLER,),
        severity=Severity.NOTE,
        concern=Concern.MONEY,
    )


SMALLER = Remedy("After the other findings are fixed, try a smaller or cheaper machine")


def _prices(price: Price, step_ms: float, epoch: Epoch | None, matrix: MatrixUnit | None) -> Iterator[Measure]:
    yield Measure("cost per hour", usd(price.usd_per_hour))
    yield Measure("cost per step", usd(price.of_ms(step_ms)))
    if epoch:
        label = f"cost per epoch ({epoch.steps} steps)"
        yield Measure(label, usd(price.of_ms(step_ms * epoch.steps)))
    if matrix and matrix.matrix_rate:
        rate = matrix.matrix_rate * matrix.matrix_ms / step_ms
        per_dollar = rate * SECONDS_PER_HOUR / price.usd_per_hour
        yield Measure("FLOPs of matmuls and convolutions per dollar", flops_per_dollar(per_dollar))


def example(
    epoch: Epoch | None = Epoch(1000),
    matrix: MatrixUnit | None = None,
    *,
    usd_per_hour: float = 3.0,
    mean_ms: float = 100.0,
    **parts: float,
) -> Verdict:
    """Steps of 100 ms at 3 dollars per hour, of which the device computes for 30 ms."""
    breakdown = Breakdown.of(**(parts or {"device": 30.0, "input": 70.0}))
    return check(Price(usd_per_hour), breakdown, epoch, matrix, Steps.uniform(20, mean_ms))


sick = example


def healthy() -> Verdict:
    """The same price with 90 ms of compute."""
    return example(None, device=90.0, input=10.0)
