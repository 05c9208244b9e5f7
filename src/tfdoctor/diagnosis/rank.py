"""The order of results in a report."""

from collections.abc import Callable

from tfdoctor.diagnosis import Result
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Errored, Finding, Healthy, NotApplicable, Remark, RunFailure


class ResultRank(Record):
    """Orders results by outcome, then severity, then time.

    A finding by which the run fails comes first, whatever the others save. ``time_ms`` is the time that a result is
    about, of the step or of the run: the largest first.
    """

    time_ms: Callable[[Result], float]

    def __call__(self, result: Result) -> tuple[int, int, int, float, str]:
        """Return the key that results are sorted by."""
        kinds = (Finding, Remark, Healthy, NotApplicable, Errored)
        order, severity = kinds.index(type(result.outcome)), result.severity or 0
        failure = result.outcome.failure if isinstance(result.outcome, Finding) else RunFailure.NONE
        time_ms = self.time_ms(result)
        return (order, -failure, -severity, -time_ms, result.rule.name)
