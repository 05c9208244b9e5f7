"""The order of results in a report, and what a trial changes: severities, and upper bounds that it exceeded.

What was measured counts, where it is less than the promise.
"""

from collections.abc import Sequence
from dataclasses import replace

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import OUTCOMES, Result
from tfdoctor.diagnosis.savings import RunSaving, RunTogether, Saving, Together
from tfdoctor.diagnosis.trials import Difference, Trial, is_broken
from tfdoctor.terms.verdict import Bound, Severity


def rank(result: Result, time_ms: float) -> tuple[int, int, int, float, str]:
    """Return the key that results are sorted by: their outcome, then severity, then the time that they are about.

    A finding by which the run fails comes first, whatever the others save.
    """
    order = tuple(OUTCOMES.values()).index(type(result.outcome))
    failure = result.finding.failure if result.finding else 0
    return (order, -failure, -(result.severity or 0), -time_ms, result.rule.name)


def rated_by_trial(results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the results with these severities, in the order that follows from them."""
    rated = list(results)
    for at, result in enumerate(rated):
        if result.severity is not None and (by_trial := _severities(result)):
            rated[at] = replace(result, severity=min(result.severity, by_trial[1]))
    if rated == list(results):
        return tuple(results)
    order = sorted(enumerate(rated), key=lambda placed: rank(placed[1], -placed[0]))
    return tuple(result for _, result in order)


def is_lowered(result: Result) -> bool:
    """Whether the promise alone would have made a finding more severe than what was measured."""
    by_trial = _severities(result)
    return by_trial is not None and by_trial[0] > by_trial[1]


def _severities(result: Result) -> tuple[Severity, Severity] | None:
    """Return the severity by the promise of a finding, and that by as much of it as was measured.

    None where a trial does not show that the change saves clearly less: the interval reaches the promise, or is too
    wide to tell; and where the rule states the severity itself.
    """
    measured = result.measured
    stated = result.finding is not None and result.finding.severity is not None
    if measured is None or result.severity is None or stated:
        return None
    promise = result.run if measured.of_run else result.saving
    promised = max(promise.share, 0.0) if promise else 0.0
    tells = measured.difference is not Difference.UNKNOWN
    if not promised or not (measured.dropped or (tells and measured.high < promised)):
        return None
    follows = result.run.rated_share if result.run else promised
    return Severity.of(follows), Severity.of(follows * max(0.0, measured.share) / promised)


def with_measured_bounds(diagnosis: Diagnosis) -> Diagnosis:
    """Return a diagnosis whose sums are upper bounds only where no trial of their changes exceeded them."""
    rows = [row for row in diagnosis.trials.rows if row.measured] if diagnosis.trials else []
    together, of_run = diagnosis.together, diagnosis.run_together
    of_steps = (row for row in rows if row.examples == 1 and row.measured and not row.measured.of_run)
    whole_runs = (row for row in rows if row.measured and row.measured.of_run)
    in_step = together is not None and any(exceeds(row, together) for row in of_steps)
    # The saving of the run by the same changes is that of the step, times the steps.
    same = bool(together and of_run and set(together.rules) == set(of_run.rules))
    in_run = of_run is not None and ((in_step and same) or any(exceeds(row, of_run) for row in whole_runs))
    return replace(
        diagnosis,
        together=replace(together, bound=Bound.EXPECTED) if together and in_step else together,
        run_together=replace(of_run, bound=Bound.EXPECTED) if of_run and in_run else of_run,
    )


def exceeds(row: Trial, predicted: Saving | RunSaving | Together | RunTogether) -> bool:
    """Return whether a change saves more than was predicted at most of it, or of all changes that it is part of."""
    if isinstance(predicted, Together | RunTogether) and not (row.rules and set(row.rules) <= set(predicted.rules)):
        return False
    found = row.measured
    if found is None or found.difference is not Difference.SAVES or is_broken(row.training):
        return False
    return predicted.bound is Bound.AT_MOST and found.share > predicted.share
