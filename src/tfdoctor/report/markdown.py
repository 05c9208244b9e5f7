"""The report as Markdown: one comment on a pull request, or a CI job's summary."""

import re
from collections.abc import Iterable, Sequence

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report.hosts import Section
from tfdoctor.report.page import ChangeEntry, Fault, Note, Page, page
from tfdoctor.report.tables import Grid, MeasureRow

LIMIT = 64_000
"""Bytes: GitHub refuses comments of more than 65,536 characters."""

ROWS = 10
"""Rows of a table that a comment shows."""

_RESERVE = 400
"""Bytes kept for the line that says what was left out, and for closing what is open."""

_MARKUP = re.compile(r"([\\`*_\[\]|~$])")
_REFERENCE = re.compile(r"[@#!$%&~](?=\w)|:(?=\w|//)|(?<=www)\.")
_LIST_OR_HEADING = re.compile(r"^(\d*)([-+#>=.)])(?=\s|$|[-=#>])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ZERO_WIDTH = "\u200b"
"""Keeps a host from turning @names, #numbers, :emoji: and addresses in a name into links."""


def render(diagnosis: Diagnosis) -> str:
    """Return the whole report, what matters most first, within one comment."""
    shown = page(diagnosis)
    head = "\n\n".join(filter(None, _head(shown)))
    room = LIMIT - _RESERVE - len(head.encode())
    folds: list[str] = []
    for title, blocks in _details(shown):
        fold = _fold(title, blocks, room)
        room -= len(fold.encode()) + 2
        folds.append(fold)
    return "\n\n".join(filter(None, [head, *folds])) + "\n"


def _head(shown: Page) -> list[str]:
    level = f"Trust in these figures: **{escaped(shown.trust_level)}**."
    return [
        f"## tfdoctor: {escaped(shown.title)}",
        f"**{escaped(' '.join(shown.verdict))}**",
        _bar(shown),
        *_hosts(shown.hosts),
        f"### What to change on {escaped(shown.hosts.shown)}"
        if shown.hosts and shown.fixes
        else "",
        _fixes(shown.fixes),
        "\n".join(f"- {escaped(sentence)}" for sentence in shown.order[:ROWS]),
        escaped(shown.money),
        " ".join([level, *map(escaped, shown.trust[:6])]),
    ]


def _bar(shown: Page) -> str:
    if not shown.segments:
        return ""
    rows = [(part.label, part.time, part.share) for part in shown.segments]
    return _table(
        Grid(("part of a step", "time", "share"), ("text", "number", "number"), tuple(rows))
    )


def _hosts(hosts: Section | None) -> list[str]:
    if hosts is None:
        return []
    tables = [_table(grid.first(ROWS)) if grid.rows else "" for grid in (hosts.grid, hosts.faults)]
    return ["### Hosts", escaped(" ".join(hosts.said)), *tables]


def _fixes(faults: Sequence[Fault]) -> str:
    if not faults:
        return ""
    rows = [
        f"| {at} | {escaped(fault.what)} | {_code_cell(fault.where)} | {escaped(_saves(fault))} "
        f"| {fault.severity} | {_code_cell(fault.rule)} |"
        for at, fault in enumerate(faults[: 2 * ROWS], start=1)
    ]
    heading = ["| | change | where | saves | severity | rule |", "|--:|:--|:--|:--|:--|:--|"]
    return "\n".join(heading + rows) + _more(len(faults) - len(rows), "change")


def _saves(fault: Fault) -> str:
    after = f"after {', '.join(fault.after)}" if fault.after else ""
    return " ".join(filter(None, (fault.saves, after)))


def _details(shown: Page) -> Iterable[tuple[str, list[str]]]:
    groups = {
        "What was found": [_fault(fault) for fault in shown.faults],
        "What was healthy": [_note(note) for note in shown.healthy],
        "What could not be checked": [_note(note) for note in shown.unchecked],
        "What failed in tfdoctor itself": [_note(note) for note in shown.errored],
        "What failed in rules of your own": [_note(note) for note in shown.own_errored],
    }
    yield from ((f"{title} ({len(blocks)})", blocks) for title, blocks in groups.items())
    yield f"What was switched off ({len(shown.off)})", [_note(note) for note in shown.off]
    yield "Limits that were set", [f"- {escaped(limit)}" for limit in shown.limits]
    yield "Rules of your own", [f"- {code(rule)}" for rule in shown.own]
    yield "What could not be recorded", [f"- {escaped(reason)}" for reason in shown.unrecorded]
    yield "What xprof says", [escaped(" ".join(shown.opinion))] if shown.opinion else []
    about = [f"- {escaped(label)}: {escaped(value)}" for label, value in shown.subject]
    yield "What was examined", about
    yield shown.device_time_title, [_lines(shown.device_time)] if shown.device_time else []
    yield "How this was computed", [_lines(shown.model)] if shown.model else []


def _fold(title: str, blocks: list[str], room: int) -> str:
    """Return blocks folded under a title, as many as there is room for."""
    start = f"<details><summary>{title}</summary>\n"
    kept, used = [], len(start) + _RESERVE
    for block in blocks:
        used += len(block.encode()) + 2
        if used > room:
            break
        kept.append(block + ("" if block.startswith("- ") else "\n"))
    if not kept:
        return ""
    left_out = _more(len(blocks) - len(kept), "entry", "entries").lstrip()
    body = "\n".join(kept).rstrip()
    return "\n\n".join(filter(None, [start.rstrip(), body, left_out, "</details>"]))


def _fault(fault: Fault) -> str:
    head = " ".join(filter(None, (code(fault.rule), fault.severity and f"({fault.severity})")))
    saves = f"Saves {escaped(_saves(fault))}. " if fault.saves else ""
    parts = [
        f"#### {head}",
        escaped(fault.summary),
        _lines(fault.lines),
        *(_table(grid.first(ROWS)) for grid in fault.grids),
        *map(_change, fault.changes),
        f"{saves}{escaped(fault.how)}",
    ]
    return "\n\n".join(filter(None, parts))


def _change(change: ChangeEntry) -> str:
    where = f" at {code(change.where)}" if change.where else ""
    shown = fenced(change.diff, "diff") if change.diff else fenced(change.code)
    return f"**Change:** {escaped(change.action)}{where}{shown}"


def _note(note: Note) -> str:
    trace = fenced(note.traceback[-2000:]) if note.traceback else ""
    parts = [f"{code(note.rule)}: {escaped(note.text)}{trace}", _lines(note.lines)]
    return "\n\n".join(filter(None, [*parts, *(_table(grid.first(ROWS)) for grid in note.grids)]))


def _lines(lines: Sequence[MeasureRow]) -> str:
    return "\n".join(
        f"- {escaped(line.label)}: {escaped(line.value)}"
        + (f" (limit {escaped(line.limit)})" if line.limit else "")
        for line in lines
    )


def _table(grid: Grid) -> str:
    marks = {"number": "--:", "text": ":--", "place": ":--"}
    places = [kind == "place" for kind in grid.kinds]
    rows = [
        " | ".join(
            _code_cell(cell) if place else escaped(cell)
            for cell, place in zip(row, places, strict=True)
        )
        for row in grid.rows
    ]
    heading = [
        " | ".join(map(escaped, grid.columns)),
        " | ".join(marks[kind] for kind in grid.kinds),
    ]
    return "\n".join(f"| {row} |" for row in heading + rows) + _more(grid.omitted, "row")


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
