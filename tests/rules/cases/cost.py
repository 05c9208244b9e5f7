"""The cases of cost: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.savings.price import Epoch, Price
from tfdoctor.rules.scale.cost import check


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
