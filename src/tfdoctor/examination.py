"""From a recording to all that its report shows: the commands and the Python interface show the same."""

from typing import Any

from tfdoctor.compare.baseline import Baseline, compared
from tfdoctor.compare.budgets import checked
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.recording import Recording
from tfdoctor.rulebook.book import Rulebook
from tfdoctor.rulebook.config import Budget
from tfdoctor.trial import stored


def examined(
    recording: Recording,
    title: str,
    rules: Rulebook,
    budget: Budget,
    baseline: tuple[Baseline, str] | None = None,
    **asked: Any,  # noqa: ANN401 - as `diagnose` declares it
) -> Diagnosis:
    """Diagnose a recording, then check budgets and baseline, and add what the last trial measured.

    ``baseline`` has the known findings and the name of their file; what else is ``asked`` is for `diagnose`, such
    as the price of the machines.

    Raises:
        InputError: the trace or the last trial is damaged.
    """
    diagnosis = diagnose(recording, rules.rules, title, settings=rules.settings, **asked)
    diagnosis = checked(diagnosis, budget)
    if baseline is not None:
        diagnosis = compared(diagnosis, *baseline)
    return stored.with_last(diagnosis, recording)
