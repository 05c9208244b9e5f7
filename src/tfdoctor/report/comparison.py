"""A comparison of two runs in sentences, bars and tables, and its renderings: files, and that of a terminal."""

# ruff: noqa: F403, F405 - one import of what a comparison is made of
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tfdoctor.diagnosis.comparison import *
from tfdoctor.report.files import contract, plain
from tfdoctor.report.formats.md import filled
from tfdoctor.report.pictures.palette import PART_COLOURS
from tfdoctor.report.pictures.step_bars import StepBar, pieces
from tfdoctor.report.run import PHASE_NOUNS
from tfdoctor.report.tables import Grid, texts
from tfdoctor.report.template import fill
from tfdoctor.report.terminal import grid_table
from tfdoctor.report.trial_words import number
from tfdoctor.report.words import PART_LABELS, joined
from tfdoctor.terms import json_form
from tfdoctor.terms.humanize import counted, duration, milliseconds, percent, place
from tfdoctor.terms.text import name, prose, shorten

STEM = "tfdoctor-diff"  # Of the names of files
FORMATS = ("html", "json", "md")

TERMINAL_ROWS = 8  # Rows of a table on a terminal; the files have the rest
LEAST_BAR = 10

# Share of the step from which a part is named in the headline, and of its former time below which it is gone.
LARGE, GONE = 0.05, 0.05
SMALL = 0.1  # Ends of an interval are given with a decimal where both are nearer to zero
VARYING = 1.0  # Least relative difference that would show, from which on its figure says nothing
# Share of the run before the change from which the headline says that the run changed: each is measured once.
RUN_CHANGED = 0.1

PHASES, FINDINGS = "Phases of the run", "Findings"
# What became of a finding, where that is not its name.
STATES = {
    FindingState.GONE: "no longer found",
    FindingState.UNCHECKED_BEFORE: "not checked before",
    FindingState.UNCHECKED_AFTER: "not checked after",
}
STYLES = {"new": "bold red", "worse": "bold yellow", "better": "bold blue", "no longer found": "bold green"}
KINDS = {"operation": "operation", "stage": "input stage"}
AMOUNTS = {"saving": "saves", "cost": "takes"}
CHANGED = {True: "yes", False: "within noise", None: "unknown: too few steps"}
_UNDECIDED = {
    Undecided.WIDE: (
        f"the 95 % interval is wider than ±{percent(WIDEST)}; record more steps (--steps 60), or several runs"
    ),
    Undecided.CONDITIONS: "other programs, or other clocks, may account for the difference",
    Undecided.PART: "a part of it changed, but the other parts vary more than that",
    Undecided.LONG_STEPS: "all steps together differ, but these steps do not show it for certain",
}


def headline(comparison: RunComparison) -> str:
    """Return what became of the run, where that is much, and the verdict about the step."""
    run, step, before = comparison.run, comparison.step, comparison.before.step_ms
    if step is not None and before is not None:
        as_long = run and not run.ended_early and all(first == last for first, last in (run.epochs, run.steps))
        changed = run and as_long and abs(run.after_ms - run.before_ms) > RUN_CHANGED * run.before_ms
        return f"{_whole_run(run) if run and changed else ''} {_of_step(comparison, step, before)}".strip()
    if not comparison.in_ms:
        alone = ", not its times"
        unlike = ", because the times of runs that are not alike cannot be"
        return f"The shares of the step are compared{unlike if comparison.mismatches else alone}."
    steps = f"The steps cannot be compared: {name(comparison.missing, 200)}."
    if run is None:
        return steps
    return f"{_whole_run(run)} {steps if any(run.steps) else ''}".strip()


def _whole_run(run: ChangeOfRun) -> str:
    whole_ms = run.after_ms - run.before_ms
    most = max(run.phases, key=lambda one: abs(one.after_ms - one.before_ms), default=None)
    part = ""
    if most and (most.after_ms - most.before_ms) / (whole_ms or 1.0) > 1 / 2:
        times = f"{duration(most.before_ms)} → {duration(most.after_ms)}"
        part = f", mostly because of {PHASE_NOUNS[most.phase]} ({times})"
    return f"The whole run took {duration(run.after_ms)} instead of {duration(run.before_ms)}{part}."


def _of_step(comparison: RunComparison, step: ChangeOfStep, before: float) -> str:
    between = _ends(-step.high, -step.low)
    if step.direction is Direction.NONE:
        changed = [_became(part, in_ms=comparison.in_ms) for part in comparison.parts if part.changed]
        if not changed:
            return f"No difference that these steps can show ({between})."
        parts = "a part" if len(changed) == 1 else "parts"
        return f"The whole step shows no difference ({between}), but {parts} of it changed: {', '.join(changed)}."
    if step.doubt is not None:
        return f"Unknown whether the step changed ({between}): {_UNDECIDED[step.doubt]}."
    sign = -1 if step.direction is Direction.FASTER else 1
    of_all = step.figure is StepFigure.STRETCHES
    by = milliseconds(abs(step.change) * (step.before_ms if of_all else before))
    part = "" if of_all else _changed_part(comparison, step)
    figure = f"{percent(abs(step.change))}, {_ends(*sorted((sign * step.low, sign * step.high)))}"
    return f"{by} {step.direction} per step ({figure}){f', {part}' if part else ''}."


def _ends(low: float, high: float) -> str:
    digits = 1 if max(abs(low), abs(high)) < SMALL else 0
    return f"{number(low, digits)} to {number(high, digits)} %"


def _changed_part(comparison: RunComparison, step: ChangeOfStep) -> str:
    """Return what became of the part that changed most, where it is much of the step; "" where it is not."""
    slower = step.change > 0
    changed = [part for part in comparison.parts if part.changed and (part.after > part.before) == slower]
    most = max(changed, key=lambda part: abs(part.after - part.before), default=None)
    if most is None or abs(most.after - most.before) < LARGE * (comparison.before.step_ms or 0.0):
        return ""
    gone = most.after < GONE * most.before
    return f"{PART_LABELS[most.part]} gone" if gone else _became(most, in_ms=comparison.in_ms)


def _became(part: PartChange, *, in_ms: bool) -> str:
    return f"{PART_LABELS[part.part]} {' → '.join(_both(part, in_ms=in_ms))}"


def _both(one: PartChange | Mover, *, in_ms: bool) -> list[str]:
    """Return the time before and after, or the shares of the step."""
    return [
        "none" if time is None else milliseconds(time) if in_ms else percent(time)
        for time in (one.before, one.after)
    ]


def sides(comparison: RunComparison) -> Iterator[str]:
    """Yield one sentence for each side."""
    for which, side in {"Before": comparison.before, "After": comparison.after}.items():
        runs = f" of {counted(side.recordings, 'recording')}" if side.recordings > 1 else ""
        step = f"step {milliseconds(side.step_ms)}" if side.step_ms else "step unknown"
        if side.untraced_ms:
            step = f"{step} while it was traced ({milliseconds(side.untraced_ms)} without tracing)"
        yield f"{which}: {name(side.title)}, {step}, {counted(side.steps, 'traced step')}{runs}."


def mismatch(one: Mismatch) -> str:
    """Return one respect in which the runs differ."""
    return f"{one.what}: {name(one.before)} → {name(one.after)}"


def notes(comparison: RunComparison) -> Iterator[str]:
    """Yield what the figure rests on: the interval, what widens it, and how the runs differ."""
    if comparison.gate:
        yield f"Regression gate: {_gate(comparison.gate, comparison.step)}"
    if comparison.step:
        yield from _about_interval(comparison, comparison.step)
    yield from comparison.wider
    if comparison.run:
        yield from _about_run(comparison.run)
    yield from (f"The runs differ in {mismatch(one)}." for one in comparison.mismatches)


def _about_run(run: ChangeOfRun) -> Iterator[str]:
    yield (
        f"The whole run, without what the profiler took of it, took {duration(run.before_ms)} before and "
        f"{duration(run.after_ms)} after the change. Each phase was measured once, so its difference may be chance."
    )
    if run.ended_early:
        yield "A run was ended after its traced steps, as asked (--stop-after), so most of it is what comes once."
    counts = {"epochs": run.epochs, "training steps": run.steps}
    if differ := [f"{first:,} and {last:,} {what}" for what, (first, last) in counts.items() if first != last]:
        yield f"The runs have {differ[0]}, so phases that recur differ for this reason as well."


def _about_interval(comparison: RunComparison, step: ChangeOfStep) -> Iterator[str]:
    faster = step.least / (1 + step.least)
    unsigned = step.direction in (Direction.NONE, Direction.UNKNOWN)
    signs = ", positive is faster" if unsigned else ""
    shows = f"a difference shows if a run is at least {percent(step.least)} slower or {percent(faster)} faster"
    if step.least > VARYING and unsigned:
        shows = "only a run of another magnitude would show a difference: trace more steps on an idle machine"
    known = unsigned or step.least <= VARYING
    yield f"The interval is one of 95 %{signs}.{f' With such steps, {shows}.' if known else ''}"
    of_all = step.figure is StepFigure.STRETCHES
    if of_all:
        yield (
            "The change is that of all steps, by the means of stretches. The sides and parts are those of the "
            "typical step, because some steps are longer than others."
        )
    if comparison.long_steps:
        first, last = map(milliseconds, (comparison.before.mean_ms, comparison.after.mean_ms))
        few = "" if of_all and step.doubt is None else " So few may be chance: record more with --steps 60."
        yield f"The mean of all traced steps is {first} → {last}, because of long steps.{few}"
    if comparison.before.recordings == comparison.after.recordings == 1:
        yield (
            "With one recording of each, runs of the same program are taken to differ as much as stretches of the "
            "traced steps do. Several recordings of each show how much they differ."
        )


def _gate(gate: RegressionGate, step: ChangeOfStep | None) -> str:
    allowed = f"a regression of {percent(gate.most)} is allowed"
    if step is None:
        return f"not checked; {allowed}."
    if gate.failed:
        return f"failed. The step is at least {percent(step.low)} slower; {allowed}."
    if gate.unclear:
        up_to = f"The step may be up to {percent(step.high)} slower"
        found = up_to if step.doubt is None else "It is unknown whether the step became slower"
        return f"undecided (exit code 4). {found}; {allowed}. Several recordings of each run narrow the interval."
    most = f"at most {percent(step.high)}" if step.high > 0 else "not"
    return f"passed. The step is {most} slower; {allowed}."


def bars(comparison: RunComparison) -> list[StepBar]:
    """Return the bars of both sides on one scale; those of shares have each its own, and no time."""
    sides = {"before": comparison.before, "after": comparison.after}
    sums = {which: sum(side.parts_ms.values()) for which, side in sides.items()}
    found = []
    for which, side in sides.items():
        time, longest = (milliseconds(side.step_ms), max(sums.values())) if comparison.in_ms else ("", sums[which])
        if sums[which] > 0:
            found.append(StepBar(which, time, pieces(side.parts_ms, longest)))
    return found


def tables(comparison: RunComparison) -> dict[str, Grid]:
    """Return the tables that have rows, by their titles; what was saved of the run is positive."""
    run, in_ms = comparison.run, comparison.in_ms
    times = [("whole run", run.before_ms, run.after_ms)] if run else []
    times += [(str(one.phase), one.before_ms, one.after_ms) for one in run.phases] if run else []
    phases = [(label, *map(duration, (first, last, first - last))) for label, first, last in times]
    parts = [(PART_LABELS[one.part], *_both(one, in_ms=in_ms), CHANGED[one.changed]) for one in comparison.parts]
    movers = [(KINDS[one.kind], name(one.name), *_both(one, in_ms=in_ms)) for one in comparison.movers]
    found = []
    for one in comparison.findings:
        if one.shown_by:  # another finding shows it
            continue
        before = _finding_time(one.before_kind, one.before_ms, one.before_run_ms) if in_ms else ""
        after = _finding_time(one.after_kind, one.after_ms, one.after_run_ms) if in_ms else ""
        state = STATES.get(one.state, one.state.value)
        found.append((state, name(one.rule), place(one.at), before, after, prose(one.summary)))
    sides = {"before": "number", "after": "number"}
    grids = {
        PHASES: texts({"phase": "text", **sides, "saved": "number"}, phases),
        "Parts of the step": texts({"part": "text", **sides, "changed": "text"}, parts),
        FINDINGS: texts({"": "text", "rule": "place", "where": "place", **sides, "what": "text"}, found),
        "Changed most": texts({"kind": "text", "name": "text", **sides}, movers),
    }
    return {title: grid for title, grid in grids.items() if grid.rows}


def _finding_time(kind: str | None, ms: float | None, run_ms: float | None) -> str:
    if kind and ms is not None:
        return f"{AMOUNTS[kind]} {milliseconds(ms)}"
    return f"saves {duration(run_ms)} of the run" if run_ms is not None else ""


def render(file_format: str, comparison: RunComparison) -> str:
    """Return the text of a file in one of ``FORMATS``; docs/reference/json-comparison.md describes the JSON."""
    told = {
        "comparison": comparison,
        "headline": headline(comparison),
        "sides": list(sides(comparison)),
        "notes": list(notes(comparison)),
        "tables": tables(comparison),
    }
    if file_format == "md":
        return filled("comparison.md.jinja", **told) + "\n"
    content = plain(comparison)
    if step := comparison.step:  # as `tfdoctor try` states it: positive is faster
        saved = {"share": -step.change, "low": -step.high, "high": -step.low}
        content["step"]["saved"] = {name: json_form.number(share) for name, share in saved.items()}
    written = contract("comparison", content)
    if file_format == "json":
        return written
    return fill("comparison.html.jinja", bars=bars(comparison), contract=written.strip(), **told)


def sections(comparison: RunComparison, width: int) -> Iterator[RenderableType]:
    """Yield what a terminal shows."""
    yield Text(headline(comparison), style="bold")
    yield Text("\n".join(sides(comparison)))
    if both := bars(comparison):
        drawn, room = Table.grid(padding=(0, 2, 0, 0)), max(LEAST_BAR, width - 22)
        for bar in both:
            line = Text()
            for piece in bar.pieces:
                line.append("█" * max(1, round(piece.width * room)), style=PART_COLOURS[piece.part])
            drawn.add_row(Text(bar.label), Text(bar.time, justify="right"), line)
        yield drawn
    for title, grid in tables(comparison).items():
        if title != FINDINGS:
            yield grid_table(title, grid, len(grid.rows) if title == PHASES else TERMINAL_ROWS, width)
            continue
        parts: list[RenderableType] = [Text(FINDINGS, style="bold")]
        # Each in two lines: what became of it, then its sentence.
        for state, rule, where, before, after, what in grid.rows[:TERMINAL_ROWS]:
            times = f"{before or 'none'} → {after or 'none'}" if before or after else ""
            facts = joined(rule, shorten(where, 60), times, by=" · ")
            parts.append(Text.assemble((state, STYLES.get(state, "not bold")), f": {facts}"))
            parts.append(Padding(Text(shorten(what, 160)), (0, 0, 0, 2)))
        yield Group(*parts)
    yield Text("\n".join(notes(comparison)))
