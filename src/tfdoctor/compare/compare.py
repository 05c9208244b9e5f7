"""From two runs, or several of each, to their comparison."""

# ruff: noqa: F403, F405 - one import of what a comparison is made of
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tfdoctor import __version__
from tfdoctor.compare.differences import carried, changes, movers, part_changes, run_change, step_by_parts
from tfdoctor.compare.reports import Widening, mismatches, step_of, widening
from tfdoctor.compare.step_times import FEWEST, LONG_STEPS, ComparedSteps, Interval, change
from tfdoctor.diagnosis import Diagnosis, untraced_beside
from tfdoctor.diagnosis.comparison import *
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.record import common

Reports = Sequence[Diagnosis]


def compare(
    before: Reports, after: Reports, *, in_ms: bool | None = True, most_regression: float | None = None
) -> RunComparison:
    """Compare the runs before a change with those after it; of each side, that in the middle is shown in detail.

    Without ``in_ms`` shares of the step alone are compared, as of runs on unlike machines; None: where they are
    unlike.
    """

    def without_cost(report: Diagnosis) -> bool:  # of the profiler: untraced steps were timed
        steps, outside_ms = report.steps, report.conditions.untraced_ms
        alike = outside_ms is not None and untraced_beside(steps.step_ms, outside_ms) is None
        return steps.untraced_ms is not None or alike

    # A report leaves the profiler's cost out where it is noticeable. If some do, and others have that cost, none
    # does here: a step with that cost cannot be compared with one without.
    if not all(map(without_cost, (*before, *after))):
        before, after = (
            [replace(report, steps=replace(report.steps, untraced_ms=None)) for report in side]
            for side in (before, after)
        )
    before, after = map(_middle_first, (before, after))
    unlike = mismatches(before[0], (*before[1:], *after))
    in_ms = not unlike if in_ms is None else in_ms
    missing = _why_missing(before, after) if in_ms else "the runs are not compared in milliseconds"
    widen, first, last = widening(before, after), before[0], after[0]
    parts = part_changes(first, last, widen, in_ms=in_ms)
    step = None if missing else _step(before, after, widen, parts)
    least, gate, long_steps = 0.0, None, False
    means = _mean_ms(first), _mean_ms(last)
    if step:
        least, long_steps = step.least, step.figure is StepFigure.STRETCHES
        if step.figure is StepFigure.TYPICAL and means[0] and means[1]:  # do the means differ by clearly more?
            long_steps = Interval(step.change, step.low, step.high).outside(means[1] / means[0] - 1) > LONG_STEPS
    if most_regression is not None:
        failed = step is not None and step.low > most_regression
        unclear = step is not None and not failed and step.high > most_regression
        gate = RegressionGate(most=most_regression, failed=failed, unclear=unclear)
    return RunComparison(
        version=__version__,
        before=_side(before),
        after=_side(after),
        step=step,
        missing=missing,
        in_ms=in_ms,
        mismatches=unlike,
        wider=widen.why if step else (),
        parts=parts,
        movers=movers(first, last, least, in_ms=in_ms),
        findings=changes(first, last, least),
        gate=gate,
        long_steps=long_steps,
        run=run_change(first, last) if in_ms else None,
    )


def _middle_first(reports: Reports) -> Reports:
    in_order = sorted(reports, key=lambda report: step_of(report) or np.inf)
    middle = in_order[(len(in_order) - 1) // 2]
    return [middle, *(report for report in reports if report is not middle)]


def _side(reports: Reports) -> RunSide:
    """Return a side; the parts of the run that stands for it are scaled to the step of all.

    The step outside of the traces is told where it is known of all runs, and not about as long as the compared one.
    """
    first, own = reports[0], step_of(reports[0])
    step_ms = _geometric_mean([step for step in map(step_of, reports) if step])
    untraced = [report.conditions.untraced_ms or 0.0 for report in reports]
    scale = step_ms / own if step_ms and own else 1.0
    return RunSide(
        title=first.subject.title,
        recordings=len(reports),
        steps=sum(len(report.steps.rows) for report in reports),
        step_ms=step_ms,
        untraced_ms=untraced_beside(step_ms, _geometric_mean(untraced) if all(untraced) else None),
        mean_ms=_mean_ms(first),
        parts_ms={part: ms * scale for part, ms in first.steps.shown_breakdown_ms.items()},
        tfdoctor=first.version,
    )


def _geometric_mean(values: Sequence[float]) -> float | None:
    return float(np.exp(np.mean(np.log(values)))) if values else None


def _mean_ms(report: Diagnosis) -> float | None:
    rows = report.steps.rows
    return float(np.mean([row.total_ms for row in rows])) if rows else None


def _why_missing(before: Reports, after: Reports) -> str:
    """Return why the steps cannot be compared, as a clause; "" where they can."""
    for which, report in [*(("before", one) for one in before), *(("after", one) for one in after)]:
        count = len(report.steps.rows)
        if not step_of(report) or not count:
            return f"the step {which} the change is unknown: {report.steps.missing or 'no step was found'}"
        if count < FEWEST:
            return (
                f"the run {which} the change has {counted(count, 'traced step')}, and fewer than {FEWEST} show no "
                "difference: record with --steps 60"
            )
    return ""


def _step(before: Reports, after: Reports, widen: Widening, parts: Sequence[PartChange]) -> ChangeOfStep:
    """Return the change of the step.

    Where parts of it changed and others do not make up for it, their interval counts too: what is sure of the parts
    is sure of the whole.
    """
    runs = [[ComparedSteps.of(report) for report in side] for side in (before, after)]
    figure, logs = change(*runs)
    of_all = figure is StepFigure.STRETCHES
    ratios = replace(logs, low=logs.low - widen.below, high=logs.high + widen.above).ratios()
    by_parts = 0.0 if of_all else carried(parts)
    if by_parts and len(before) == len(after) == 1:
        ratios = ratios.within(step_by_parts(before[0], after[0], widen))
    least = float(np.sqrt((1 + ratios.high) / (1 + ratios.low))) - 1
    direction, doubt = Direction.SLOWER if ratios.low > 0 else Direction.FASTER, None
    if not ratios.excludes_zero:
        wide = Undecided.WIDE if least > WIDEST else None
        doubt = Undecided.PART if by_parts else Undecided.LONG_STEPS if of_all else wide
        direction = Direction.UNKNOWN if doubt else Direction.NONE
    if doubt and logs.ratios().excludes_zero:
        doubt = Undecided.CONDITIONS
    first, last = (side[0].by_stretches() if of_all else side[0] for side in runs)
    return common(
        ChangeOfStep,
        ratios,
        change=ratios.middle,
        least=least,
        direction=direction,
        figure=figure,
        doubt=doubt,
        before_ms=first.step_ms,
        after_ms=last.step_ms,
    )
