"""From two runs, or several of each, to their comparison."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from tfdoctor import __version__
from tfdoctor.compare import found
from tfdoctor.compare.differences import carried, movers, part_changes, run_change, step_by_parts
from tfdoctor.compare.reports import Widening, mismatches, step_of, widening, without_cost
from tfdoctor.compare.step_times import FEWEST, LONG_STEPS, ComparedSteps, Interval, change
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.comparison import (
    WIDEST,
    ChangeOfStep,
    Direction,
    Mismatch,
    PartChange,
    RegressionGate,
    RunComparison,
    RunSide,
    StepFigure,
    Undecided,
)
from tfdoctor.diagnosis.step import untraced_beside
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.record import Record


class Sides(Record):
    """The reports of the runs before and after the change; the first of each is shown in detail."""

    before: Sequence[Diagnosis]
    after: Sequence[Diagnosis]

    @classmethod
    def of(cls, before: Sequence[Diagnosis], after: Sequence[Diagnosis]) -> Self:
        """Put the run whose step is in the middle first: it stands for its side.

        A report leaves the profiler's cost out where it is noticeable. If some do, and others have that cost, none
        does here: a step with that cost cannot be compared with one without.
        """
        if not all(map(without_cost, (*before, *after))):
            before, after = (
                [replace(report, steps=replace(report.steps, untraced_ms=None)) for report in side]
                for side in (before, after)
            )
        return cls(*map(_middle_first, (before, after)))

    @property
    def mismatches(self) -> tuple[Mismatch, ...]:
        """In which respects any of the runs is not like the first one before."""
        first, *others = (*self.before, *self.after)
        every = [one for other in others for one in mismatches(first, other)]
        return tuple({one.what: one for one in reversed(every)}.values())[::-1]


def _middle_first(reports: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    in_order = sorted(reports, key=lambda report: step_of(report) or np.inf)
    middle = in_order[(len(in_order) - 1) // 2]
    return (middle, *(report for report in reports if report is not middle))


def compare(sides: Sides, *, in_ms: bool = True, most_regression: float | None = None) -> RunComparison:
    """Compare the runs; without ``in_ms`` by shares of the step alone, as runs on unlike machines."""
    missing = _why_missing(sides) if in_ms else "the runs are not compared in milliseconds"
    widen = widening(sides.before, sides.after)
    before, after = sides.before[0], sides.after[0]
    parts = part_changes(before, after, widen, in_ms=in_ms)
    step = None if missing else _step(sides, widen, parts)
    least = step.least if step else 0.0
    gate = None
    if most_regression is not None:
        failed = step is not None and step.low > most_regression
        unclear = step is not None and not failed and step.high > most_regression
        gate = RegressionGate(most=most_regression, failed=failed, unclear=unclear)
    first, last = _mean_ms(before), _mean_ms(after)
    long_steps = step is not None and step.figure is StepFigure.STRETCHES
    if step and step.figure is StepFigure.TYPICAL and first and last:  # do the means differ by clearly more?
        long_steps = Interval(step.change, step.low, step.high).outside(last / first - 1) > LONG_STEPS
    return RunComparison(
        version=__version__,
        before=_side(sides.before),
        after=_side(sides.after),
        step=step,
        missing=missing,
        in_ms=in_ms,
        mismatches=sides.mismatches,
        wider=widen.why if step else (),
        parts=parts,
        movers=movers(before, after, least, in_ms=in_ms),
        findings=found.changes(before, after, least),
        gate=gate,
        long_steps=long_steps,
        run=run_change(before, after) if in_ms else None,
    )


def _side(reports: Sequence[Diagnosis]) -> RunSide:
    """Return a side; the parts of the run that stands for it are scaled to the step of all.

    The step outside of the traces is told where it is known of all runs, and not about as long as the compared one.
    """
    first = reports[0]
    own = step_of(first)
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


def _why_missing(sides: Sides) -> str:
    """Return why the steps cannot be compared, as a clause; "" where they can."""
    for at, report in enumerate((*sides.before, *sides.after)):
        which = "before" if at < len(sides.before) else "after"
        count = len(report.steps.rows)
        if not step_of(report) or not count:
            why = report.steps.missing or "no step was found"
            return f"the step {which} the change is unknown: {why}"
        if count < FEWEST:
            return (
                f"the run {which} the change has {counted(count, 'traced step')}, and fewer than {FEWEST} show no "
                "difference: record with --steps 60"
            )
    return ""


def _step(sides: Sides, widen: Widening, parts: Sequence[PartChange]) -> ChangeOfStep:
    """Return the change of the step.

    Where parts of it changed and others do not make up for it, their interval counts too: what is sure of the parts
    is sure of the whole.
    """
    runs = [[ComparedSteps.of(report) for report in side] for side in (sides.before, sides.after)]
    figure, logs = change(*runs)
    ratios = replace(logs, low=logs.low - widen.below, high=logs.high + widen.above).ratios()
    by_parts = carried(parts) if figure is not StepFigure.STRETCHES else 0.0
    if by_parts and len(runs[0]) == len(runs[1]) == 1:
        ratios = ratios.within(step_by_parts(sides.before[0], sides.after[0], widen))
    least = float(np.sqrt((1 + ratios.high) / (1 + ratios.low))) - 1
    of_all, doubt = figure is StepFigure.STRETCHES, None
    if not ratios.excludes_zero:
        wide = Undecided.WIDE if least > WIDEST else None
        doubt = Undecided.PART if by_parts else Undecided.LONG_STEPS if of_all else wide
    if doubt and logs.ratios().excludes_zero:
        doubt = Undecided.CONDITIONS
    sign = Direction.SLOWER if ratios.low > 0 else Direction.FASTER
    shown = sign if ratios.excludes_zero else Direction.NONE
    first, last = (side[0].by_stretches() if of_all else side[0] for side in runs)
    return ChangeOfStep(
        change=ratios.middle,
        low=ratios.low,
        high=ratios.high,
        least=least,
        direction=Direction.UNKNOWN if doubt else shown,
        figure=figure,
        doubt=doubt,
        before_ms=first.step_ms,
        after_ms=last.step_ms,
    )


def _mean_ms(report: Diagnosis) -> float | None:
    rows = report.steps.rows
    return float(np.mean([row.total_ms for row in rows])) if rows else None
