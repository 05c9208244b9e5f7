"""Budgets: what a run may take and must reach, each checked against the 95 % interval of what was measured.

A budget is exceeded only where the whole interval is beyond its limit, so that a gate does not fail by chance. What
is measured once, such as the memory, has no interval.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tfdoctor.compare.reports import taken
from tfdoctor.compare.step_times import FEWEST, STRETCHES, ComparedSteps, bootstrap_error, quartile_spread
from tfdoctor.diagnosis import BudgetCheck, BudgetState, Diagnosis, Measured95, RunAccount, StepRow
from tfdoctor.edits.source import within_repository
from tfdoctor.rulebook.config import Budget
from tfdoctor.stored.report import finished
from tfdoctor.terms.humanize import counted, percent
from tfdoctor.terms.kinds import DeviceKind, Phase
from tfdoctor.terms.record import common
from tfdoctor.terms.student_t import student
from tfdoctor.terms.verdict import Location

MS_PER_S = 1000.0
# Share of the operations' time up to which those of unknown least time are not told: the step's interval is wider.
SMALL_REST = 0.02


def checked(diagnosis: Diagnosis, budget: Budget) -> Diagnosis:
    """Return the diagnosis with the budgets of its device checked."""
    path = f"{within_repository(budget.file.parent)}{budget.file.name}" if budget.file is not None else ""
    lines = budget.lines if path else {}  # other budgets are of the command line
    checks = []
    for limit in budget.of(diagnosis.subject.device):
        measured, most = FIGURES[limit.key](diagnosis), limit.limit
        if limit.device is not None and diagnosis.subject.device is None:
            measured = Measured95(why="the device of the run is unknown, and this budget depends on it")
        first, last = (measured.value if end is None else end for end in (measured.low, measured.high))
        found = BudgetState.UNKNOWN
        if first is not None and last is not None:
            found = state(most.value, first, last, at_least=limit.at_least)
        at = Location(path, lines[limit]) if limit in lines else None
        checks.append(common(BudgetCheck, measured, limit, most, limit=most.value, state=found, at=at))
    return replace(diagnosis, budgets=finished(tuple(checks)))


def state(limit: float, low: float, high: float, *, at_least: bool) -> BudgetState:
    """Return what an interval shows of a limit."""
    if at_least:
        limit, low, high = -limit, -high, -low
    if low > limit:
        return BudgetState.EXCEEDED
    return BudgetState.MET if high <= limit else BudgetState.UNCLEAR


def _step(diagnosis: Diagnosis) -> Measured95:
    """Return the step, ms.

    The interval holds the step outside of the traced window, which has no profiler's cost, and what the step would
    be without the load of other programs.
    """
    steps = diagnosis.steps
    if why := _why_no_step(diagnosis, [row for row in steps.rows if row.steady or not steps.stalled]):
        return Measured95(why=why)
    times = ComparedSteps.of(diagnosis)
    if steps.slow and not steps.stalled:  # slow steps are most of the time: the budget is for all steps
        times = times.by_stretches()
    low, high = times.ends(student(min(times.freedom, STRETCHES - 1)))
    low *= 1 - taken(diagnosis.conditions)
    outside = diagnosis.conditions.untraced_ms or times.step_ms
    return Measured95(times.step_ms, min(low, outside), max(high, outside))


def _why_no_step(diagnosis: Diagnosis, rows: Sequence[StepRow]) -> str:
    """Return why there is no interval of the step, as a clause; "" where there is one."""
    if not diagnosis.steps.shown_ms or not rows:
        return diagnosis.steps.missing or "no training step was found"
    if len(rows) < FEWEST:
        return (
            f"the recording has {counted(len(rows), 'step')} to measure, and an interval needs at least {FEWEST}: "
            "record more with --steps"
        )
    return ""


def _input_wait(diagnosis: Diagnosis) -> Measured95:
    """Return the share of the step that waits for input.

    Where the step is shown without the profiler's cost, an estimate, the interval holds the traced share too.
    """
    rows = [row for row in diagnosis.steps.rows if row.steady]
    parts = diagnosis.steps.shown_breakdown_ms
    why = _why_no_step(diagnosis, rows) or diagnosis.conditions.missing.get("input", "")
    whole = sum(parts.values())
    if why or not whole:
        return Measured95(why=why or "the parts of the step are unknown")
    share = parts.get("input", 0.0) / whole
    waits = np.array([(row.parts_ms.get("input", 0.0), row.total_ms) for row in rows])
    error = bootstrap_error(waits, lambda drawn: drawn[:, :, 0].sum(axis=1) / drawn[:, :, 1].sum(axis=1))
    freedom = ComparedSteps(waits[:, 1], 1.0).freedom
    half = student(freedom) * math.hypot(error, quartile_spread(waits[:, 0] / waits[:, 1]))
    load = taken(diagnosis.conditions)
    ends = (share - half, share + half, float(waits[:, 0].sum() / waits[:, 1].sum()))
    low, high = max(0.0, min(ends)), min(1.0, max(ends))

    def less(share: float) -> float:  # if other programs slowed this part of the step alone
        return share * (1 - load) / (1 - share * load)

    return Measured95(share, less(low), 1 - less(1 - high))  # they slowed the input alone, or all but the input


def _examples(diagnosis: Diagnosis) -> Measured95:
    step, size = _step(diagnosis), diagnosis.conditions.batch_size
    if step.value is None or step.low is None or step.high is None:
        return step
    if not size:
        return _recorded(diagnosis, "batch_size")
    per_ms = size * MS_PER_S
    return Measured95(per_ms / step.value, per_ms / step.high, per_ms / step.low)


def _roofline(diagnosis: Diagnosis) -> Measured95:
    """Return the share of the step that its operations would need at the peak rates of the hardware.

    Operations whose least time is unknown need between none and all of the time that they take.
    """
    found, step = diagnosis.conditions, _step(diagnosis)
    if step.value is None or step.low is None or step.high is None:
        return step
    if found.least_ms is None:
        return _recorded(diagnosis, "least_ms")
    least, most = found.least_ms, found.least_ms + found.open_ms
    ends = least / step.high, min(1.0, most / step.low)
    if found.open_ms <= SMALL_REST * most:
        return Measured95(min(1.0, least / step.value), *ends)
    unknown = f"the least time is unknown of operations that take {percent(found.open_ms / step.value)} of the step"
    why = found.missing.get("open_ms", "")
    return Measured95(None, *ends, f"{unknown} ({why})" if why else unknown)


def _recorded(diagnosis: Diagnosis, name: str) -> Measured95:
    value = getattr(diagnosis.conditions, name)
    why = diagnosis.conditions.missing.get(name) or "the recording does not contain it"
    return Measured95(why=why) if value is None else Measured95(float(value))


def _of_run(
    figure: Callable[[RunAccount], float | None], missing: str = "", *, whole: bool = True
) -> Callable[[Diagnosis], Measured95]:
    """Return what measures a run; ``missing`` is why the figure may be unknown of one that is known whole."""

    def measure(diagnosis: Diagnosis) -> Measured95:
        run = diagnosis.run
        value = figure(run) if run and (run.whole or not whole) else None
        if value is not None:
            return Measured95(float(value))
        unknown = (run.missing if run else "") or "the run outside of the traced steps was not recorded"
        return Measured95(why=missing if run and run.whole else unknown)

    return measure


# What each budget is about, in the unit of its limit.
FIGURES: Mapping[str, Callable[[Diagnosis], Measured95]] = {
    "step-ms": _step,
    "input-wait": _input_wait,
    "examples-per-second": _examples,
    "matrix-unit": lambda diagnosis: _recorded(diagnosis, "matrix_unit"),
    "roofline": _roofline,
    # Of the accelerator that uses most, or of the host where it computes.
    "memory-gb": lambda diagnosis: _recorded(
        diagnosis, "host_bytes" if diagnosis.subject.device is DeviceKind.CPU else "device_bytes"
    ),
    "run-s": _of_run(
        lambda run: run.total_ms - run.of(Phase.PROFILER) if run.finished else None,
        "the end of the run was not recorded",
    ),
    "run-start-s": _of_run(lambda run: run.of(Phase.START, Phase.IMPORTS)),
    "run-preparation-s": _of_run(lambda run: run.of(Phase.PREPARING)),
    "epoch-boundary-s": _of_run(
        lambda run: run.of(Phase.BOUNDARIES) / run.epochs if run.epochs else None, "the run has no epochs"
    ),
    "memory-peak-gb": _of_run(lambda run: run.peak_bytes, "the memory of the run was not recorded", whole=False),
}
