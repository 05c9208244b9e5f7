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
    return _saves_less(result) and Severity.of(_follows(result)) > _measured(result)


def _saves_less(result: Result) -> bool:
    """Whether the change was measured to save clearly less than the promise that the severity follows.

    It is not where the interval reaches the promise, where the trial does not tell, or where the rule states the
    severity itself.
    """
    promised, measured = _promised(result), result.measured
    stated = isinstance(result.outcome, Finding) and result.outcome.severity is not None
    if measured is None or not promised or result.severity is None or stated:
        return False
    tells = measured.difference is not Difference.UNKNOWN
    return measured.dropped or (tells and measured.high < promised)


def _promised(result: Result) -> float:
    """Return the share that a trial measures: of the whole run, or of the step; 0 without a promise."""
    of_run = result.measured is not None and result.measured.of_run
    promise = result.run if of_run else result.saving
    return max(promise.share, 0.0) if promise else 0.0


def _rated(result: Result) -> Result:
    """Rate a finding by the share of its promise that was measured; never higher than before."""
    if result.severity is None or not _saves_less(result):
        return result
    return replace(result, severity=min(result.severity, _measured(result)))


def _follows(result: Result) -> float:
    """Return the promised share that the severity follows."""
    return result.run.rated if result.run else _promised(result)


def _measured(result: Result) -> Severity:
    """Return the severity of as much of that share as was measured of the promise."""
    share = max(0.0, result.measured.share) if result.measured else 0.0
    return Severity.of(_follows(result) * share / _promised(result))
