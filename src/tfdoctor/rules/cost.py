"""Most of what the training costs is paid for a device that does not work.

## What it checks

With `--usd-per-hour`: what a step costs, an epoch where its number of steps is known, and how much of that is
paid for time in which the device does not compute: it waits for input, for copies, for the host, for other
devices or between two steps. Where the FLOPs of the products are known it says how many of them a dollar buys.
What all findings of the report would save together is given in dollars too.

## Why it matters

Milliseconds are hard to weigh against an afternoon of work; dollars are not.

## How to fix

Follow the other findings, from the first. If the device still idles, a smaller or cheaper one may train as
fast.

## Holds for

Any run whose steps are known, and much alike. The price is yours: of all machines of the job together, an hour,
in US dollars.

## Sources

- [Optimize TensorFlow performance using the Profiler](https://www.tensorflow.org/guide/profiler)
- [Analyze tf.data performance with the TF Profiler](https://www.tensorflow.org/guide/data_performance_analysis)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.facts.operations.matrix_unit import MatrixUnit
from tfdoctor.facts.price import Epoch, Price
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.time.breakdown import UNKNOWN, Breakdown
from tfdoctor.humanize import dollars, milliseconds, percent
from tfdoctor.rule import Topic, limit
from tfdoctor.units import flops_per_dollar, ratio, usd
from tfdoctor.verdict import (
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

SECONDS_OF_AN_HOUR = 3600
"""An hour, in seconds."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    idle: float = limit(
        0.5,
        "of the step without computing: most of the money goes elsewhere, which is what the rule says",
        most=1.0,
    )
    mean: float = limit(
        1.25,
        "times the usual step, which the mean of all traced steps may be: beyond it a few long steps decide "
        "what the run costs, and a window does not tell how often they come",
        least=1.0,
    )


LIMITS = Limits()


def check(
    price: Price,
    breakdown: Breakdown,
    epoch: Epoch | None,
    matrix: MatrixUnit | None,
    steps: Steps,
    limits: Limits = LIMITS,
) -> Verdict:
    """Turn the step's parts into money."""
    step = breakdown.step_ms
    if steps.mean_ms > limits.mean * step:
        return NotApplicable(
            reason=f"a usual step takes {milliseconds(step)}, but the mean of those traced is "
            f"{milliseconds(steps.mean_ms)}: how often the long ones come decides what the run costs"
        )
    if breakdown[UNKNOWN] > limits.idle * step:
        return NotApplicable(reason="what most of the step goes to is not known")
    idle = 1.0 - (breakdown[Stage.DEVICE] + breakdown[UNKNOWN]) / step
    evidence = tuple(_evidence(price, step, idle, epoch, matrix, limits))
    said = f"A thousand steps cost {dollars(1000 * price.of_ms(step))}"
    if idle <= limits.idle:
        return Healthy(
            summary=f"{said}, of which {percent(1 - idle)} pay for computing",
            evidence=evidence,
            concern=Concern.MONEY,
        )
    return Finding(
        summary=f"{said}, of which {percent(idle)} pay for a device that does not compute",
        evidence=evidence,
        remedies=(
            Remedy("Once the other findings are followed, weigh a smaller or cheaper machine"),
        ),
        severity=Severity.NOTE,
        concern=Concern.MONEY,
    )


def _evidence(
    price: Price,
    step: float,
    idle: float,
    epoch: Epoch | None,
    matrix: MatrixUnit | None,
    limits: Limits,
) -> Iterator[Measure]:
    yield Measure("of it without computing", ratio(idle), ratio(limits.idle))
    yield Measure("an hour", usd(price.usd_per_hour))
    yield Measure("a step", usd(price.of_ms(step)))
    if epoch:
        yield Measure(f"an epoch of {epoch.steps} steps", usd(price.of_ms(step * epoch.steps)))
    if matrix and matrix.matrix_rate:
        rate = matrix.matrix_rate * matrix.matrix_ms / step
        bought = rate * SECONDS_OF_AN_HOUR / price.usd_per_hour
        yield Measure("matmuls and convolutions that a dollar buys", flops_per_dollar(bought))


def sick() -> Verdict:
    """Steps of 100 ms at 3 dollars an hour, of which the device computes for 30."""
    return check(Price(3.0), Breakdown.of(device=30.0, input=70.0), Epoch(1000), None, EVEN)


def healthy() -> Verdict:
    """The same with 90 ms of computing."""
    return check(Price(3.0), Breakdown.of(device=90.0, input=10.0), None, None, EVEN)


EVEN = Steps.uniform(20, 100.0)
