"""The report as Markdown: one comment on a pull request, or a CI job's summary."""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.work import PhaseLine
from tfdoctor.report.findings import Fault, Note
from tfdoctor.report.page import BarSegment, Page, page
from tfdoctor.report.run.section import RunSection, where
from tfdoctor.report.step_bars import blocks
from tfdoctor.report.tables import Grid, MeasureRow, profile_grid
from tfdoctor.report.trials import PARTS_TITLE
from tfdoctor.terms.humanize import duration
from tfdoctor.terms.record import Record

LIMIT = 64_000  # Bytes: GitHub refuses comments of more than 65,536 characters
ROWS = 10  # Rows of a table that a comment shows
BAR = 30  # Characters of the longest possible bar: what fits beside its figures in a comment on a phone
_NOT_IN_MARKERS = re.compile(r"[^A-Za-z0-9_.]+")  # A title could end the comment that the marker is
_RESERVE = 400  # Bytes kept for the line that says what was left out, and for closing what is open

_MARKUP = re.compile(r"([\\`*_\[\]|~$])")
_ESCAPE = re.compile(r"\\([\\`*_\[\]~$])")  # What `_MARKUP` needs, apart from the bars between cells
_REFERENCE = re.compile(r"[@#!$%&~](?=\w)|:(?=\w|//)|(?<=www)\.")
_LIST_OR_HEADING = re.compile(r"^(\d*)([-+#=.)])(?=\s|$|[-=#>])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ZERO_WIDTH = "\u200b"  # Keeps a host from turning @names, #numbers, :emoji: and addresses in a name into links


def as_it_is(markdown: str) -> str:
    """Return Markdown for who reads it as it is, such as a language model: without what a host needs."""
    return _ESCAPE.sub(r"\1", unescape(markdown.replace(_ZERO_WIDTH, "")))


class Fold(Record):
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


def _head(shown: Page) -> Iterator[str]:
    """Yield what is always shown: the verdict, what the time goes to, what to change, and how far to trust it."""
    yield f"## tfdoctor: {escaped(shown.verdict[0])} {marker(shown.title)}"
    rest = " ".join(shown.verdict[1:])
    link = f"[Whole report]({shown.link})." if shown.link else ""
    about = (rest and f"**{escaped(rest)}**", f"Run: {code(shown.title)}.", link)
    yield " ".join(filter(None, about))
    if shown.run:
        yield _run(shown.run)
    if shown.segments:
        yield f"{escaped(shown.run.step_title)}:" if shown.run else ""
        yield _bar(shown.segments)
    yield from _judged(shown)
    yield "\n".join(_items(shown.order[:ROWS]))
    yield escaped(" ".join(shown.baseline))
    yield escaped(f"Energy: {shown.energy.brief}." if shown.energy else "")
    yield escaped(shown.money)
    yield escaped(" ".join(shown.remarks))
    yield "\n".join(_items(f"{line.label}: {line.text}" for line in shown.accounts))
    yield " ".join([f"Trust: **{escaped(shown.trust_level)}**.", *map(escaped, shown.trust[:6])])
    yield from _measured(shown)


def _items(sentences: Iterable[str]) -> list[str]:
    return [f"- {escaped(sentence)}" for sentence in sentences]


def _judged(shown: Page) -> Iterator[str]:
    """Yield the budgets, the hosts and the changes as tables below their headings."""
    if shown.budgets:
        yield "### Budgets"
        yield table(shown.budgets.grid)
    if hosts := shown.hosts:
        yield "### Hosts"
        yield escaped(" ".join((hosts.slowest, *hosts.notes)))
        yield from (table(grid.first(ROWS)) for grid in (hosts.grid, hosts.faults) if grid.rows)
    if shown.fixes:
        on = f" on {escaped(shown.hosts.shown)}" if shown.hosts else ""
        yield f"### What to change{on}"
        yield _fixes(shown.fixes)


def _measured(shown: Page) -> Iterator[str]:
    """Yield the trials as tables below their headings."""
    if trials := shown.trials:
        if trials.lines:
            yield "### Measured by running the changes"
            yield table(trials.grid.first(ROWS))
        if trials.parts:
            yield f"### {PARTS_TITLE}"
            yield table(trials.parts.first(ROWS))
        yield "\n".join(_items(trials.notes[:ROWS]))


def marker(title: str) -> str:
    """Return a comment that no reader sees, by which a bot finds its own comment on a change to update it."""
    return f"<!-- tfdoctor-report {_NOT_IN_MARKERS.sub('-', title)} -->"


def _run(run: RunSection) -> str:
    """Return the account of the run as a table, then remarks."""
    rows = ["| phase | time | share | lines |", "|:--|--:|--:|:--|"]
    for row in (one for one in run.phases if not run.is_short(one)):
        rest = len(row.lines) - run.AT_ONCE
        more = [f"{rest:,} more in the HTML and JSON reports"] if rest > 0 else []
        lines = "<br>".join([*map(_run_line, row.lines[: run.AT_ONCE]), *more])
        cells = " | ".join(map(escaped, (row.phase, duration(row.ms), run.share(row))))
        rows.append(f"| {cells} | {lines} |")
    long = "; ".join(map(_run_line, run.long_lines[:ROWS]))
    longest = " ".join(filter(None, (escaped(run.long), long)))
    notes = [escaped(run.short), longest, *map(escaped, run.notes[:ROWS])]
    remarks = "\n".join(f"- {note}" for note in notes if note)
    return "\n".join(rows) + (f"\n\n{remarks}" if remarks else "")


def _run_line(line: PhaseLine) -> str:
    place = (_code_cell if line.at else escaped)(where(line))
    calls = f", {_code_cell(line.calls)}" if line.calls else ""
    return f"{place} {escaped(duration(line.ms))}{calls}"


def _bar(segments: Sequence[BarSegment]) -> str:
    """Return the parts of the step as a picture of text."""
    cells = [(part.label, part.time, part.share) for part in segments]
    names, times, shares = (max(map(len, column)) for column in zip(*cells, strict=True))
    lines = [
        f"{part.label:<{names}}  {part.time:>{times}}  {part.share:>{shares}}  {blocks(part.fraction, BAR)}"
        for part in segments
    ]
    return fenced("\n".join(lines), "").strip()


def _fixes(faults: Sequence[Fault]) -> str:
    rows = ["| | change | where | saves | severity | rule |", "|--:|:--|:--|:--|:--|:--|"]
    for rank, fault in enumerate(faults[: 2 * ROWS], start=1):
        judged = ", ".join(filter(None, (fault.severity, fault.known)))
        others = escaped(fault.rules.removeprefix(fault.rule))
        rows.append(
            f"| {rank} | {escaped(fault.what)} | {_code_cell(fault.where)} | {escaped(_saves(fault))} "
            f"| {judged} | {_code_cell(fault.rule)}{others} |"
        )
    return "\n".join(rows) + _more(len(faults) - 2 * ROWS, "change")


def _saves(fault: Fault) -> str:
    after = f"after {', '.join(fault.after)}" if fault.after else ""
    unknown = f"unknown (takes {fault.takes})" if fault.takes else ""
    return " ".join(filter(None, (fault.saving.whole or unknown, after)))


def _details(shown: Page) -> Iterator[Fold]:
    """Yield the folded parts: the profile, results, settings, and what else was recorded."""
    if profile := shown.profile:
        rows = table(profile_grid(profile.lines[:ROWS]))
        yield Fold("Profile of a step", [escaped(profile.caption), rows, escaped(profile.rest)])
    yield from _results(shown)
    settings, about = shown.settings, shown.about
    yield Fold("Changed limits", _items(settings.limits), apart=False)
    yield Fold("Your own rules", [f"- {code(rule)}" for rule in settings.own], apart=False)
    yield Fold("Not recorded", _items(about.unrecorded), apart=False)
    yield Fold("Second opinion: xprof", [escaped(" ".join(about.opinion))] if about.opinion else [])
    subject = [f"- {escaped(label)}: {escaped(value)}" for label, value in about.subject]
    yield Fold("The run", subject, apart=False)
    if shown.energy:
        yield Fold("Energy", [table(shown.energy.grid), *_items(shown.energy.notes)])
    if (device := about.device_time) and device.lines:
        yield Fold(device.title, [_lines(device.lines)])
    yield Fold("Numbers used by the step model", [_lines(about.model)] if about.model else [])


def _results(shown: Page) -> Iterator[Fold]:
    """Yield the findings, then what the other rules said, by outcome."""
    results = shown.results
    off = [f"{code(one.rule)}: {escaped(f'{one.title} ({one.why}).')}" for one in shown.settings.off]
    groups = {
        "Findings": list(map(_fault, results.faults)),
        "Healthy": list(map(_note, results.healthy)),
        "Not checked": list(map(_note, results.unchecked)),
        "Failed: defects of tfdoctor": list(map(_note, results.errored)),
        "Failed: your own rules": list(map(_note, results.own_errored)),
        "Switched off": off,
    }
    for title, entries in groups.items():
        yield Fold(f"{title} ({len(entries)})", entries)


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
    severity = fault.severity and f"({fault.severity})"
    saves = f"Saves {escaped(_saves(fault))}. " if fault.saving.amount else ""
    changes: list[str] = []
    for change in fault.changes:
        where = f" at {code(change.where)}" if change.where else ""
        where += f" (the edit begins at {code(change.begins)})" if change.begins else ""
        shown = fenced(change.diff, "diff") if change.diff else fenced(change.code)
        changes.append(f"**Change:** {escaped(change.action)}{where}{shown}")
    parts = [
        f"#### {' '.join(filter(None, (code(fault.rule), severity, fault.known)))}",
        *(f"{escaped(related.summary)} ({code(related.rule)})" for related in fault.symptoms),
        escaped(fault.summary),
        _lines(fault.lines),
        *(table(grid.first(ROWS)) for grid in fault.grids),
        *changes,
        f"{saves}{escaped(fault.how)}",
        f"Measured: {escaped(fault.trial.told)}." if fault.trial else "",
    ]
    return "\n\n".join(filter(None, parts))


def _note(note: Note) -> str:
    trace = fenced(note.traceback[-2000:]) if note.traceback else ""
    parts = [f"{code(note.rule)}: {escaped(note.text)}{trace}", _lines(note.lines)]
    return "\n\n".join(filter(None, [*parts, *(table(grid.first(ROWS)) for grid in note.grids)]))


def _lines(lines: Sequence[MeasureRow]) -> str:
    return "\n".join(
        f"- {escaped(line.label)}: {escaped(line.value)}"
        + (f" (limit {escaped(line.limit)})" if line.limit else "")
        for line in lines
    )


_MARKS = {"number": "--:", "text": ":--", "place": ":--"}


def table(grid: Grid) -> str:
    """Return a table with its heading, and how many rows were left out."""
    rows = [" | ".join(map(escaped, grid.columns)), " | ".join(_MARKS[kind] for kind in grid.kinds)]
    for row in grid.rows:
        cells = zip(row, grid.kinds, strict=True)
        written = [_code_cell(text) if kind == "place" else escaped(text) for text, kind in cells]
        rows.append(" | ".join(written))
    return "\n".join(f"| {row} |" for row in rows) + _more(grid.omitted, "row")


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
