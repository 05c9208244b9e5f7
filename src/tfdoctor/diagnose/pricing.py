"""The value of all savings of a report together, where the user gave a price."""

from collections.abc import Iterable
from dataclasses import replace

from tfdoctor.diagnosis import Result, Together
from tfdoctor.facts.savings.price import Price
from tfdoctor.terms.units import usd
from tfdoctor.terms.verdict import Bound, Concern, Finding, Healthy, Measure


def priced(results: Iterable[Result], together: Together | None, price: Price | None) -> tuple[Result, ...]:
    """Add to the results about money how much of it all changes combined would save.

    A rule cannot do so itself: savings are computed after all rules have run.
    """
    if together is None or price is None:
        return tuple(results)
    most = ", at most" if together.bound is Bound.AT_MOST else ""
    saved = Measure(
        f"saving per 1,000 steps with all changes{most}", usd(1000 * price.of_ms(together.per_step.value))
    )
    return tuple(
        replace(result, outcome=replace(said, evidence=(*said.evidence, saved)))
        if isinstance(said := result.outcome, Finding | Healthy) and said.concern is Concern.MONEY
        else result
        for result in results
    )
