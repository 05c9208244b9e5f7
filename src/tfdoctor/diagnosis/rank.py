"""The order of results in a report, and the severity of findings whose change was tried.

What was measured counts, where it is less than the promise.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.trials import Difference
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Errored, Finding, Healthy, NotApplicable, Remark, RunFailure, Severity


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


def rated_by_trial(results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the results with these severities, in the order that follows from them."""
    rated = tuple(map(_rated, results))
    if rated == tuple(results):
        return rated
    place = {result.rule.name: number for number, result in enumerate(rated)}
    return tuple(sorted(rated, key=ResultRank(lambda result: -place[result.rule.name])))


def is_lowered(result: Result) -> bool:
    """Whether the promise alone would have made a finding more severe than what was measured."""
    by_trial = _severities(result)
    return by_trial is not None and by_trial[0] > by_trial[1]


def _rated(result: Result) -> Result:
    by_trial = _severities(result)
    if result.severity is None or by_trial is None:
        return result
    return replace(result, severity=min(result.severity, by_trial[1]))


def _severities(result: Result) -> tuple[Severity, Severity] | None:
    """Return the severity by the promise of a finding, and that by as much of it as was measured.

    None where a trial does not show that the change saves clearly less: the interval reaches the promise, or is too
    wide to tell; and where the rule states the severity itself.
    """
    measured = result.measured
    stated = isinstance(result.outcome, Finding) and result.outcome.severity is not None
    if measured is None or result.severity is None or stated:
        return None
    promise = result.run if measured.of_run else result.saving
    promised = max(promise.share, 0.0) if promise else 0.0
    tells = measured.difference is not Difference.UNKNOWN
    if not promised or not (measured.dropped or (tells and measured.high < promised)):
        return None
    follows = result.run.rated_share if result.run else promised
    return Severity.of(follows), Severity.of(follows * max(0.0, measured.share) / promised)
