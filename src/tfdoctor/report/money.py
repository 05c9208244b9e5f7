"""The cost of the run: one line of its own, since it is no change to make."""

from collections.abc import Iterable

from tfdoctor.diagnosis.results import Result
from tfdoctor.terms import text
from tfdoctor.terms.verdict import Concern, Finding, Healthy


def is_about_money(result: Result) -> bool:
    """Return whether a result says what the run costs."""
    outcome = result.outcome
    return isinstance(outcome, Finding | Healthy) and outcome.concern is Concern.MONEY


def cost(results: Iterable[Result]) -> str:
    """Return what the run costs, as a sentence; "" where no price was given."""
    outcomes = (result.outcome for result in results if is_about_money(result))
    summaries = (outcome.summary for outcome in outcomes if isinstance(outcome, Finding | Healthy))
    return next(map(text.sentence, summaries), "")
