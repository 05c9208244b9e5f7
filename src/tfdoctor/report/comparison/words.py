"""The sentences of a comparison, for every rendering."""

from collections.abc import Iterator

from tfdoctor.diagnosis.comparison import (
    WIDEST,
    AmountKind,
    ChangeOfRun,
    ChangeOfStep,
    Direction,
    FindingChange,
    FindingState,
    Mismatch,
    PartChange,
    RegressionGate,
    RunComparison,
    RunSide,
    StepFigure,
    Undecided,
)
from tfdoctor.report.run.words import PHASE_NOUNS
from tfdoctor.report.trial_words import number
from tfdoctor.report.words import PART_LABELS
from tfdoctor.terms.humanize import counted, duration, milliseconds, percent
from tfdoctor.terms.text import name

# Share of the step from which a part is named in the headline, and of its former time below which it is gone.
LARGE, GONE = 0.05, 0.05
SMALL = 0.1  # Ends of an interval are given with a decimal where both are nearer to zero


_SHARES = "The shares of the step are compared, not its times."
_SHARES_OF_UNLIKE = "The shares of the step are compared, because the times of runs that are not alike cannot be."


VARYING = 1.0  # Least relative difference that would show, from which on its figure says nothing
# Share of the run before the change from which the headline says that the run changed: each is measured once.
RUN_CHANGED = 0.1


def headline(comparison: RunComparison) -> str:
    """Return what became of the run, where that is much, and the verdict about the step."""
    step = comparison.step
    if step is None or comparison.before.step_ms is None:
        return _without_step(comparison)
    run = comparison.run
    of_run = _whole_run(run) if run and _is_shorter_or_longer(run) else ""
    return f"{of_run} {_of_step(comparison, step, comparison.before.step_ms)}".strip()


def _is_shorter_or_longer(run: ChangeOfRun) -> bool:
    """Return whether runs of as many epochs and steps took clearly different times."""
    as_long = not run.ended_early and all(first == last for first, last in (run.epochs, run.steps))
    return as_long and abs(run.after_ms - run.before_ms) > RUN_CHANGED * run.before_ms


def _whole_run(run: ChangeOfRun) -> str:
    """Return the time of both runs, and the phase that most of the difference is in."""
    whole_ms = run.after_ms - run.before_ms
    most = max(run.phases, key=lambda one: abs(one.after_ms - one.before_ms), default=None)
    part = ""
    if most and (most.after_ms - most.before_ms) / (whole_ms or 1.0) > 1 / 2:
        times = f"{duration(most.before_ms)} → {duration(most.after_ms)}"
        part = f", mostly because of {PHASE_NOUNS[most.phase]} ({times})"
    return f"The whole run took {duration(run.after_ms)} instead of {duration(run.before_ms)}{part}."


def _of_step(comparison: RunComparison, step: ChangeOfStep, before: float) -> str:
    """Return the verdict about the step in one sentence."""
    if step.direction is Direction.NONE:
        return _no_difference(comparison, _ends(-step.high, -step.low))
    if step.doubt is not None:
        ends = _ends(-step.high, -step.low)
        return f"Unknown whether the step changed ({ends}): {_UNDECIDED[step.doubt]}."
    sign = -1 if step.direction is Direction.FASTER else 1
    between = _ends(*sorted((sign * step.low, sign * step.high)))
    figure = f"{percent(abs(step.change))}, {between}"
    if step.figure is StepFigure.STRETCHES:
        by, part = milliseconds(abs(step.change) * step.before_ms), ""
    else:
        by, part = milliseconds(abs(step.change) * before), _changed_part(comparison)
    return f"{by} {step.direction} per step ({figure}){f', {part}' if part else ''}."


def _no_difference(comparison: RunComparison, between: str) -> str:
    """Return that the whole step did not change, beside the parts that did."""
    changed = [_became(part, in_ms=comparison.in_ms) for part in comparison.parts if part.changed]
    if not changed:
        return f"No difference that these steps can show ({between})."
    parts = "a part" if len(changed) == 1 else "parts"
    return f"The whole step shows no difference ({between}), but {parts} of it changed: {', '.join(changed)}."


def _became(part: PartChange, *, in_ms: bool) -> str:
    first, last = (amount(value, in_ms=in_ms) for value in (part.before, part.after))
    return f"{PART_LABELS[part.part]} {first} → {last}"


_UNDECIDED = {
    Undecided.WIDE: (
        f"the 95 % interval is wider than ±{percent(WIDEST)}; record more steps (--steps 60), or several runs"
    ),
    Undecided.CONDITIONS: "other programs, or other clocks, may account for the difference",
    Undecided.PART: "a part of it changed, but the other parts vary more than that",
    Undecided.LONG_STEPS: "all steps together differ, but these steps do not show it for certain",
}


def _without_step(comparison: RunComparison) -> str:
    if not comparison.in_ms:
        return _SHARES_OF_UNLIKE if comparison.mismatches else _SHARES
    steps = f"The steps cannot be compared: {name(comparison.missing, 200)}."
    run = comparison.run
    if run is None:
        return steps
    return f"{_whole_run(run)} {steps if any(run.steps) else ''}".strip()


def _ends(low: float, high: float) -> str:
    digits = 1 if max(abs(low), abs(high)) < SMALL else 0
    return f"{number(low, digits)} to {number(high, digits)} %"


def _changed_part(comparison: RunComparison) -> str:
    """Return what became of the part that changed most, where it is much of the step; "" where it is not."""
    step_ms = comparison.before.step_ms or 0.0
    slower = comparison.step is not None and comparison.step.change > 0
    changed = [part for part in comparison.parts if part.changed and (part.after > part.before) == slower]
    most = max(changed, key=lambda part: abs(part.after - part.before), default=None)
    if most is None or abs(most.after - most.before) < LARGE * step_ms:
        return ""
    if most.after < GONE * most.before:
        return f"{PART_LABELS[most.part]} gone"
    return _became(most, in_ms=comparison.in_ms)


def amount(value: float | None, *, in_ms: bool) -> str:
    """Return a time, or a share of the step; "" where it is unknown."""
    if value is None:
        return ""
    return milliseconds(value) if in_ms else percent(value)


def sides(comparison: RunComparison) -> tuple[str, str]:
    """Return one sentence for each side."""
    return _side("Before", comparison.before), _side("After", comparison.after)


def _side(which: str, side: RunSide) -> str:
    runs = f" of {counted(side.recordings, 'recording')}" if side.recordings > 1 else ""
    step = f"step {milliseconds(side.step_ms)}" if side.step_ms else "step unknown"
    if side.untraced_ms:
        step = f"{step} while it was traced ({milliseconds(side.untraced_ms)} without tracing)"
    return f"{which}: {name(side.title)}, {step}, {counted(side.steps, 'traced step')}{runs}."


def mismatch(one: Mismatch) -> str:
    """Return one respect in which the runs differ."""
    return f"{one.what}: {name(one.before)} → {name(one.after)}"


def notes(comparison: RunComparison) -> tuple[str, ...]:
    """Return what the figure rests on: the interval, what widens it, and how the runs differ."""
    differ = [f"The runs differ in {mismatch(one)}." for one in comparison.mismatches]
    gate = [gate_sentence(comparison.gate, comparison.step)] if comparison.gate else []
    of_run = _about_run(comparison.run) if comparison.run else ()
    return (*gate, *_about_interval(comparison), *comparison.wider, *of_run, *differ)


def _about_run(run: ChangeOfRun) -> Iterator[str]:
    """Yield what the times of the whole runs rest on."""
    yield (
        f"The whole run, without what the profiler took of it, took {duration(run.before_ms)} before and "
        f"{duration(run.after_ms)} after the change. Each phase was measured once, so its difference may be chance."
    )
    if run.ended_early:
        yield "A run was ended after its traced steps, as asked (--stop-after), so most of it is what comes once."
    for what, (first, last) in {"epochs": run.epochs, "training steps": run.steps}.items():
        if first != last:
            yield (
                f"The runs have {first:,} and {last:,} {what}, so phases that recur differ for this reason as well."
            )
            return


def _about_interval(comparison: RunComparison) -> Iterator[str]:
    step = comparison.step
    if step is None:
        return
    faster = step.least / (1 + step.least)
    unsigned = step.direction in (Direction.NONE, Direction.UNKNOWN)
    signs = ", positive is faster" if unsigned else ""
    shows = f"a difference shows if a run is at least {percent(step.least)} slower or {percent(faster)} faster"
    if step.least > VARYING and unsigned:
        shows = "only a run of another magnitude would show a difference: trace more steps on an idle machine"
    known = unsigned or step.least <= VARYING
    yield f"The interval is one of 95 %{signs}.{f' With such steps, {shows}.' if known else ''}"
    yield from _about_long_steps(comparison, step)
    if comparison.before.recordings == comparison.after.recordings == 1:
        yield (
            "With one recording of each, runs of the same program are taken to differ as much as stretches of the "
            "traced steps do. Several recordings of each show how much they differ."
        )


def _about_long_steps(comparison: RunComparison, step: ChangeOfStep) -> Iterator[str]:
    """Yield what long steps have to do with the verdict."""
    if step.figure is StepFigure.STRETCHES:
        yield (
            "The change is that of all steps, by the means of stretches. The sides and parts are those of the "
            "typical step, because some steps are longer than others."
        )
    if comparison.long_steps:
        first, last = map(milliseconds, (comparison.before.mean_ms, comparison.after.mean_ms))
        means = f"The mean of all traced steps is {first} → {last}, because of long steps."
        counts = step.figure is StepFigure.STRETCHES and step.doubt is None
        yield means if counts else f"{means} {_FEW_LONG}"


def gate_sentence(gate: RegressionGate, step: ChangeOfStep | None) -> str:
    """Return whether a regression is larger than allowed."""
    allowed = f"a regression of {percent(gate.most)} is allowed"
    if step is None:
        return f"Regression gate: not checked; {allowed}."
    if gate.failed:
        return f"Regression gate: failed. The step is at least {percent(step.low)} slower; {allowed}."
    if gate.unclear and step.doubt is not None:
        return f"Regression gate: undecided (exit code 4). {_NOT_SHOWN}; {allowed}. {_NARROW}"
    if gate.unclear:
        return (
            f"Regression gate: undecided (exit code 4). The step may be up to {percent(step.high)} slower; "
            f"{allowed}. {_NARROW}"
        )
    if step.high <= 0:
        return f"Regression gate: passed. The step is not slower; {allowed}."
    return f"Regression gate: passed. The step is at most {percent(step.high)} slower; {allowed}."


_FEW_LONG = "So few may be chance: record more with --steps 60."
_NOT_SHOWN = "It is unknown whether the step became slower"
_NARROW = "Several recordings of each run narrow the interval."


AMOUNTS = {AmountKind.SAVING: "saves", AmountKind.COST: "takes"}


def finding_times(change: FindingChange) -> tuple[str, str]:
    """Return what a finding saves or takes before and after; "" where it has no time."""
    return (
        _finding_time(change.before_kind, change.before_ms, change.before_run_ms),
        _finding_time(change.after_kind, change.after_ms, change.after_run_ms),
    )


def _finding_time(kind: AmountKind | None, ms: float | None, run_ms: float | None) -> str:
    if kind and ms is not None:
        return f"{AMOUNTS[kind]} {milliseconds(ms)}"
    return f"saves {duration(run_ms)} of the run" if run_ms is not None else ""


# The states of findings as shown.
STATES = {
    FindingState.NEW: "new",
    FindingState.WORSE: "worse",
    FindingState.SAME: "same",
    FindingState.BETTER: "better",
    FindingState.GONE: "no longer found",
    FindingState.UNCHECKED_BEFORE: "not checked before",
    FindingState.UNCHECKED_AFTER: "not checked after",
}
