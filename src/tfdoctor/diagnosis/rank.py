"""The order of results in a report."""

from collections.abc import Callable
from dataclasses import dataclass

from tfdoctor.diagnosis import Result
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.terms.verdict import Errored, Finding, Healthy, NotApplicable, RunFailure, Severity


@dataclass(frozen=True, slots=True)
class ResultRank:
    """Orders results by outcome, then severity, then time.

    A finding by which the run fails comes first, whatever the others save. A note about the recording is no fault
    of the run: it comes after all findings. ``time_ms`` is the time that a result is about, of the step or of the
    run: the largest first.
    """

    time_ms: Callable[[Result], float]

    def __call__(self, result: Result) -> tuple[int, bool, int, int, float, str]:
        """Return the key that results are sorted by."""
        order = {Finding: 0, Healthy: 1, NotApplicable: 2, Errored: 3}[type(result.outcome)]
        severity = result.severity or 0
        aside = result.rule.topic is Topic.RECORDING and severity <= Severity.NOTE
        failure = result.outcome.failure if isinstance(result.outcome, Finding) else RunFailure.NONE
        time_ms = self.time_ms(result)
        return (order, aside, -failure, -severity, -time_ms, result.rule.name)
