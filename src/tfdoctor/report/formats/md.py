"""The report as Markdown: one comment on a pull request, or a CI job's summary."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report.findings import ChangeEntry, Fault, Note
from tfdoctor.report.gates import BudgetSection
from tfdoctor.report.hosts import Section
from tfdoctor.report.page import Page, RuleOff, page
from tfdoctor.report.run.section import RunLineText, RunPhaseText, RunSection
from tfdoctor.report.step_bars import blocks
from tfdoctor.report.tables import Grid, MeasureRow
from tfdoctor.report.trials import TrialSection

LIMIT = 64_000
"""Bytes: GitHub refuses comments of more than 65,536 characters."""

ROWS = 10
"""Rows of a table that a comment shows."""

BAR = 30
"""Characters of the longest possible bar: what fits beside its figures in a comment on a phone."""

_NOT_IN_MARKERS = re.compile(r"[^A-Za-z0-9_.]+")
"""A title could end the comment that the marker is."""

_RESERVE = 400
"""Bytes kept for the line that says what was left out, and for closing what is open."""

_MARKUP = re.compile(r"([\\`*_\[\]|~$])")
_REFERENCE = re.compile(r"[@#!$%&~](?=\w)|:(?=\w|//)|(?<=www)\.")
_LIST_OR_HEADING = re.compile(r"^(\d*)([-+#=.)])(?=\s|$|[-=#>])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ZERO_WIDTH = "\u200b"
"""Keeps a host from turning @names, #numbers, :emoji: and addresses in a name into links."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A part of the comment that opens on a click."""

    title: str
    blocks: Sequence[str]
    apart: bool = True  # with an empty line between blocks; the items of a list have none


def render(diagnosis: Diagnosis) -> str:
    """Return the report, most important parts first, short enough for one comment."""
    shown = page(diagnosis)
    head = "\n\n".join(filter(None, _head(shown)))
    room = LIMIT - _RESERVE - len(head.encode())
    folds: list[str] = []
    for fold in _details(shown):
        written = _fold(fold, room)
        room -= len(written.encode()) + 2
        folds.append(written)
    return "\n\n".join(filter(None, [head, *folds])) + "\n"


def _head(shown: Page) -> list[str]:
    level = f"Trust: **{escaped(shown.trust_level)}**."
    return [
        f"## tfdoctor: {escaped(shown.verdict[0])} {marker(shown.title)}",
        _about(shown),
        _run(shown.run),
        f"{escaped(shown.run.step_title)}:" if shown.run and shown.segments else "",
        _bar(shown),
        "\n".join(f"- {escaped(f'{line.label}: {line.text}')}" for line in shown.accounts),
        *_budgets(shown.budgets),
        *_hosts(shown.hosts),
        f"### What to change on {escaped(shown.hosts.shown)}"
        if shown.hosts and shown.fixes
        else "",
        *_trials(shown.trials),
        _fixes(shown.fixes),
        "\n".join(f"- {escaped(sentence)}" for sentence in shown.order[:ROWS]),
        escaped(" ".join(shown.baseline)),
        escaped(shown.money),
        " ".join([level, *map(escaped, shown.trust[:6])]),
    ]


def marker(title: str) -> str:
    """Return a comment that no reader sees, by which a bot finds its own comment on a change to update it."""
    return f"<!-- tfdoctor-report {_NOT_IN_MARKERS.sub('-', title)} -->"


def _about(shown: Page) -> str:
    """Return the rest of the verdict, what was run, and where the whole report is."""
    rest = " ".join(shown.verdict[1:])
    link = f"[Whole report]({shown.link})." if shown.link else ""
    return " ".join(
        filter(None, (rest and f"**{escaped(rest)}**", f"Run: {code(shown.title)}.", link))
    )


def _run(run: RunSection | None) -> str:
    """Return the account of the run as a table, then remarks."""
    if run is None:
        return ""
    heading = ["| phase | time | share | lines |", "|:--|--:|--:|:--|"]
    rows = [
        f"| {escaped(p.label)} | {escaped(p.time)} | {escaped(p.share)} | {_run_lines(p)} |"
        for p in run.phases
    ]
    long = "; ".join(map(_run_line, run.long_lines[:ROWS]))
    notes = [" ".join(filter(None, (escaped(run.long), long))), *map(escaped, run.notes[:ROWS])]
    remarks = "\n".join(f"- {note}" for note in notes if note)
    return "\n".join(heading + rows) + (f"\n\n{remarks}" if remarks else "")


def _run_lines(phase: RunPhaseText) -> str:
    more = [f"{len(phase.rest):,} more in the HTML and JSON reports"] if phase.rest else []
    return "<br>".join([*map(_run_line, phase.first), *more])


def _run_line(line: RunLineText) -> str:
    place = _code_cell(line.where) if line.placed else escaped(line.where)
    calls = f", {_code_cell(line.calls)}" if line.calls else ""
    return f"{place} {escaped(line.time)}{calls}"


def _bar(shown: Page) -> str:
    """Return the parts of the step as a picture of text."""
    widths = [
        max((len(cell) for cell in column), default=0)
        for column in zip(*_cells(shown), strict=True)
    ]
    lines = [
        f"{label:<{widths[0]}}  {time:>{widths[1]}}  {share:>{widths[2]}}  {blocks(part.fraction, BAR)}"
        for (label, time, share), part in zip(_cells(shown), shown.segments, strict=True)
    ]
    return fenced("\n".join(lines), "").strip()


def _cells(shown: Page) -> list[tuple[str, str, str]]:
    return [(part.label, part.time, part.share) for part in shown.segments]


def _budgets(budgets: BudgetSection | None) -> list[str]:
    return ["### Budgets", table(budgets.grid)] if budgets else []


def _hosts(hosts: Section | None) -> list[str]:
    if hosts is None:
        return []
    tables = [table(grid.first(ROWS)) if grid.rows else "" for grid in (hosts.grid, hosts.faults)]
    return ["### Hosts", escaped(" ".join((hosts.slowest, *hosts.notes))), *tables]


def _trials(trials: TrialSection | None) -> list[str]:
    if trials is None:
        return []
    notes = "\n".join(f"- {escaped(note)}" for note in trials.notes[:ROWS])
    return ["### Measured by running the changes", table(trials.grid.first(ROWS)), notes]


def _fixes(faults: Sequence[Fault]) -> str:
    if not faults:
        return ""
    rows = [
        f"| {at} | {escaped(fault.what)} | {_code_cell(fault.where)} | {escaped(_saves(fault))} "
        f"| {_judged(fault)} | {_code_cell(fault.rule)}{_with(fault)} |"
        for at, fault in enumerate(faults[: 2 * ROWS], start=1)
    ]
    heading = ["| | change | where | saves | severity | rule |", "|--:|:--|:--|:--|:--|:--|"]
    return "\n".join(heading + rows) + _more(len(faults) - len(rows), "change")


def _judged(fault: Fault) -> str:
    return ", ".join(filter(None, (fault.severity, fault.known)))


def _with(fault: Fault) -> str:
    """Return the rules that show the same fault."""
    return escaped(fault.rules.removeprefix(fault.rule))


def _saves(fault: Fault) -> str:
    after = f"after {', '.join(fault.after)}" if fault.after else ""
    unknown = f"unknown (takes {fault.takes})" if fault.takes else ""
    return " ".join(filter(None, (fault.saved or unknown, after)))


def _measured(fault: Fault) -> str:
    return f"Measured: {escaped(fault.trial.told)}." if fault.trial else ""


def _details(shown: Page) -> Iterator[Fold]:
    yield from _results(shown)
    yield from _settings(shown)
    unrecorded = [f"- {escaped(reason)}" for reason in shown.unrecorded]
    yield Fold("Not recorded", unrecorded, apart=False)
    yield Fold("Second opinion: xprof", [escaped(" ".join(shown.opinion))] if shown.opinion else [])
    about = [f"- {escaped(label)}: {escaped(value)}" for label, value in shown.subject]
    yield Fold("The run", about, apart=False)
    if (device := shown.device_time) and device.lines:
        yield Fold(device.title, [_lines(device.lines)])
    yield Fold("Numbers used by the step model", [_lines(shown.model)] if shown.model else [])


def _results(shown: Page) -> Iterator[Fold]:
    """Yield the findings, then what the other rules said, by outcome."""
    groups = (
        ("Findings", [_fault(fault) for fault in shown.faults]),
        ("Healthy", [_note(note) for note in shown.healthy]),
        ("Not checked", [_note(note) for note in shown.unchecked]),
        ("Failed: defects of tfdoctor", [_note(note) for note in shown.errored]),
        ("Failed: your own rules", [_note(note) for note in shown.own_errored]),
        ("Switched off", [_off(off) for off in shown.settings.off]),
    )
    yield from (Fold(f"{title} ({len(blocks)})", blocks) for title, blocks in groups)


def _settings(shown: Page) -> Iterator[Fold]:
    limits = [f"- {escaped(limit)}" for limit in shown.settings.limits]
    yield Fold("Changed limits", limits, apart=False)
    yield Fold("Your own rules", [f"- {code(rule)}" for rule in shown.settings.own], apart=False)


def _fold(fold: Fold, room: int) -> str:
    """Return as many blocks as there is room for, folded under the title; "" where none fits."""
    start = f"<details><summary>{fold.title}</summary>\n"
    kept, used = [], len(start) + _RESERVE
    for block in fold.blocks:
        used += len(block.encode()) + 2
        if used > room:
            break
        kept.append(block + ("\n" if fold.apart else ""))
    if not kept:
        return ""
    left_out = _more(len(fold.blocks) - len(kept), "entry", "entries").lstrip()
    body = "\n".join(kept).rstrip()
    return "\n\n".join(filter(None, [start.rstrip(), body, left_out, "</details>"]))


def _fault(fault: Fault) -> str:
    head = " ".join(
        filter(None, (code(fault.rule), fault.severity and f"({fault.severity})", fault.known))
    )
    saves = f"Saves {escaped(_saves(fault))}. " if fault.saves else ""
    parts = [
        f"#### {head}",
        *(f"{escaped(related.summary)} ({code(related.rule)})" for related in fault.symptoms),
        escaped(fault.summary),
        _lines(fault.lines),
        *(table(grid.first(ROWS)) for grid in fault.grids),
        *map(_change, fault.changes),
        f"{saves}{escaped(fault.how)}",
        _measured(fault),
    ]
    return "\n\n".join(filter(None, parts))


def _change(change: ChangeEntry) -> str:
    where = f" at {code(change.where)}" if change.where else ""
    where += f" (the edit begins at {code(change.begins)})" if change.begins else ""
    shown = fenced(change.diff, "diff") if change.diff else fenced(change.code)
    return f"**Change:** {escaped(change.action)}{where}{shown}"


def _note(note: Note) -> str:
    trace = fenced(note.traceback[-2000:]) if note.traceback else ""
    parts = [f"{code(note.rule)}: {escaped(note.text)}{trace}", _lines(note.lines)]
    return "\n\n".join(filter(None, [*parts, *(table(grid.first(ROWS)) for grid in note.grids)]))


def _off(off: RuleOff) -> str:
    return f"{code(off.rule)}: {escaped(f'{off.title} ({off.why}).')}"


def _lines(lines: Sequence[MeasureRow]) -> str:
    return "\n".join(
        f"- {escaped(line.label)}: {escaped(line.value)}"
        + (f" (limit {escaped(line.limit)})" if line.limit else "")
        for line in lines
    )


_MARKS = {"number": "--:", "text": ":--", "place": ":--"}


def table(grid: Grid) -> str:
    """Return a table with its heading, and how many rows were left out."""
    heading = [
        " | ".join(map(escaped, grid.columns)),
        " | ".join(_MARKS[kind] for kind in grid.kinds),
    ]
    rows = (" | ".join(map(_cell, row, grid.kinds)) for row in grid.rows)
    return "\n".join(f"| {row} |" for row in (*heading, *rows)) + _more(grid.omitted, "row")


def _cell(text: str, kind: str) -> str:
    return _code_cell(text) if kind == "place" else escaped(text)


def _more(left_out: int, singular: str, plural: str = "") -> str:
    if left_out <= 0:
        return ""
    noun = singular if left_out == 1 else plural or f"{singular}s"
    return f"\n\n… {left_out:,} more {noun} in the HTML and JSON reports."


def escaped(text: str) -> str:
    """Return text that stays text: no markup, no mention, no reference, no address."""
    parted = _REFERENCE.sub(lambda sign: sign.group() + _ZERO_WIDTH, text)
    marked = _LIST_OR_HEADING.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", parted))
    return marked.translate(_ENTITIES)


def code(text: str) -> str:
    """Return a span of code, its fence longer than any run of backticks in it."""
    if not text:
        return ""
    fence = _fence(text, 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _code_cell(text: str) -> str:
    """Return a span of code for a table, where a bar would end the cell even inside code."""
    return code(text).replace("|", r"\|")


def fenced(text: str, language: str = "python") -> str:
    """Return a block of code on its own lines, or nothing."""
    if not text:
        return ""
    fence = _fence(text, 3)
    return f"\n\n{fence}{language}\n{text}\n{fence}"


def _fence(text: str, least: int) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(least, longest + 1)
