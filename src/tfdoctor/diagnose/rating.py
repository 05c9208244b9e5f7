"""How severe findings are by the steps and the run that they rest on, and the order of the results."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from tfdoctor.diagnose.run_pricing import RunPricing
from tfdoctor.diagnose.savings import too_few_steps
from tfdoctor.diagnosis import Result
from tfdoctor.diagnosis.rank import ResultRank
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.untraced_pace import SlowSteps
from tfdoctor.terms.verdict import Concern, Finding, Severity


def rated(chart: Chart, results: Iterable[Result], run: RunPricing | None = None) -> tuple[Result, ...]:
    """Return the results in order: by the time of the run where it is known whole, else by that of the step.

    Of few steps each finding is a note, in the order of what it would save.
    """
    rank = ResultRank(partial(_time_ms, beyond_ms=_beyond(chart)))
    if too_few_steps(chart):
        by_step = [_note(result) for result in sorted(results, key=rank)]
    else:
        slow = chart.get(SlowSteps)
        by_step = sorted((_bounded(result, slow) for result in results), key=rank)
    return run.priced(by_step) if run else tuple(by_step)


def _note(result: Result) -> Result:
    """Return a finding as a note without a saving of the step; one about the run needs no steps."""
    if not isinstance(result.outcome, Finding):
        return result
    about_run = result.outcome.concern is Concern.RUN
    severity = result.severity if about_run else Severity.NOTE
    return replace(result, severity=severity, saving=None)


def _bounded(result: Result, slow: SlowSteps | None) -> Result:
    """Rate a finding no higher than the steps allow that it rests on.

    One about the typical step is never critical where slow steps take most of the time: its share is that of the
    mean step.
    """
    finding, typical = result.outcome, Concern.TYPICAL_STEP
    about_step = isinstance(finding, Finding) and finding.concern is typical
    if not about_step or result.severity is None:
        return result
    if slow is None or not slow.prevail:
        return result
    amount = result.saving or result.takes
    share = amount.per_step.value / slow.mean_ms if amount else 1.0
    return replace(result, severity=min(result.severity, Severity.of(share), Severity.WARNING))


def _beyond(chart: Chart) -> float:
    """Return what long steps add to the mean training step, in ms."""
    steps = chart.get(Steps)
    if steps is None or not steps.median_ms:
        return 0.0
    whole = sum(step.total_ms * step.calls for step in steps.steps)
    return max(0.0, whole / sum(step.calls for step in steps.steps) - steps.median_ms)


def _time_ms(result: Result, beyond_ms: float) -> float:
    """Return the time of a step that a result is about; of long steps what they add to the mean step."""
    amount = result.saving or result.takes
    if amount:
        return amount.per_step.value
    of_long = isinstance(result.outcome, Finding) and result.outcome.concern is Concern.LONG_STEPS
    return beyond_ms if of_long else 0.0
