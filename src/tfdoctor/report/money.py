"""What the run costs, which is no change to make: it stands beside the changes, in one line."""

from collections.abc import Iterable

from tfdoctor import text
from tfdoctor.diagnosis import Result
from tfdoctor.units import Unit
from tfdoctor.verdict import Finding, Healthy, Measure


def is_about_money(result: Result) -> bool:
    """Return whether a result tells what the run costs, and promises no saving of time."""
    if result.saving is not None or not isinstance(result.outcome, Finding | Healthy):
        return False
    measures = (item for item in result.outcome.evidence if isinstance(item, Measure))
    return any(measure.value.unit is Unit.US_DOLLARS for measure in measures)


def said(results: Iterable[Result]) -> str:
    """Return it as a sentence; "" where no price was given."""
    about = (result.outcome for result in results if is_about_money(result))
    summaries = (each.summary for each in about if isinstance(each, Finding | Healthy))
    return next(map(text.sentence, summaries), "")
