"""The report as Markdown: one comment on a pull request, or a CI job's summary."""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.entries import Entry
from tfdoctor.diagnosis.results import Result
from tfdoctor.report import findings, hosts, sections, sentences, words
from tfdoctor.report.page import Page, page
from tfdoctor.report.run.section import RunSection, where
from tfdoctor.report.step_bars import blocks
from tfdoctor.report.tables import Grid, grids, measures
from tfdoctor.report.trials import PARTS_TITLE
from tfdoctor.terms.humanize import duration, place, quantity
from tfdoctor.terms.run_time import PhaseLine
from tfdoctor.terms.text import name, prose, sentence
from tfdoctor.terms.verdict import Measure

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


def render(diagnosis: Diagnosis) -> str:
    """Return the report, most important parts first, short enough for one comment."""
    shown = page(diagnosis)
    head = "\n\n".join(filter(None, _head(shown)))
    room = LIMIT - _RESERVE - len(head.encode())
    folds: list[str] = []
    for title, entries, apart in _details(shown):
        written = _fold(title, entries, room, apart=apart)
        room -= len(written.encode()) + 2
        folds.append(written)
    return "\n\n".join(filter(None, [head, *folds])) + "\n"


def _head(shown: Page) -> Iterator[str]:
    """Yield what is always shown: the verdict, what the time goes to, what to change, and how far to trust it."""
    diagnosis = shown.diagnosis
    yield f"## tfdoctor: {escaped(shown.verdict[0])} {marker(shown.title)}"
    rest = " ".join(shown.verdict[1:])
    link = f"[Whole report]({diagnosis.link})." if diagnosis.link else ""
    yield words.joined(rest and f"**{escaped(rest)}**", f"Run: {code(shown.title)}.", link, by=" ")
    if shown.run:
        yield _run(shown.run)
    if words.parts_of(diagnosis.steps):
        yield f"{escaped(shown.run.step_title)}:" if shown.run else ""
        yield _bar(diagnosis)
    yield from _tables(shown)
    yield "\n".join(_items(shown.order[:ROWS]))
    yield escaped(" ".join(sections.baseline(diagnosis)))
    energy = sections.energy_brief(diagnosis)
    yield escaped(f"Energy: {energy}." if energy else "")
    yield escaped(words.cost(diagnosis.results))
    yield escaped(" ".join(shown.remarks))
    yield "\n".join(_items(f"{label}: {told}" for _, label, told in words.accounts(diagnosis)))
    trust = sentences.trust(diagnosis)[:6]
    yield " ".join([f"Trust: **{escaped(name(diagnosis.trust.level))}**.", *map(escaped, trust)])
    if tried := shown.tried:
        if tried.lines:
            yield f"### Measured by running the changes\n\n{table(tried.grid.first(ROWS))}"
        if tried.parts:
            yield f"### {PARTS_TITLE}\n\n{table(tried.parts.first(ROWS))}"
        yield "\n".join(_items(tried.notes[:ROWS]))


def _tables(shown: Page) -> Iterator[str]:
    """Yield the budgets, the hosts and the changes below their headings."""
    diagnosis = shown.diagnosis
    if diagnosis.budgets:
        yield f"### Budgets\n\n{table(sections.budget_grid(diagnosis.budgets))}"
    if of := diagnosis.hosts:
        yield "### Hosts"
        yield escaped(" ".join((sentence(of.slowest), *hosts.notes(of))))
        tables = (hosts.steps_grid(hosts.sorted_rows(of)), hosts.findings_grid(of))
        yield from (table(grid.first(ROWS)) for grid in tables if grid.rows)
    if shown.fixes:
        yield f"### What to change{f' on {escaped(name(of.shown))}' if of else ''}"
        yield _fixes(shown)


def _items(told: Iterable[str]) -> list[str]:
    return [f"- {escaped(one)}" for one in told]


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


def _bar(diagnosis: Diagnosis) -> str:
    """Return the parts of the step as a picture of text."""
    parts = words.segments(diagnosis.steps)
    cells = [(words.PART_LABELS[part], time, of, blocks(fraction, BAR)) for part, time, of, fraction in parts]
    names, times, shares, _ = (max(map(len, column)) for column in zip(*cells, strict=True))
    lines = [f"{part:<{names}}  {time:>{times}}  {of:>{shares}}  {bar}" for part, time, of, bar in cells]
    return fenced("\n".join(lines), "").strip()


def _fixes(shown: Page) -> str:
    rows = ["| | change | where | saves | severity | rule |", "|--:|:--|:--|:--|:--|:--|"]
    for rank, entry in enumerate(shown.fixes[: 2 * ROWS], start=1):
        rule, where = name(entry.result.rule.name), place(entry.result.place)
        judged = words.joined(findings.severity(entry), findings.known(entry))
        others = escaped(findings.rules(entry).removeprefix(rule))
        rows.append(
            f"| {rank} | {escaped(findings.what(entry.result))} | {_code_cell(where)} "
            f"| {escaped(_saves(entry, shown.diagnosis))} | {judged} | {_code_cell(rule)}{others} |"
        )
    return "\n".join(rows) + _more(len(shown.fixes) - 2 * ROWS, "change")


def _saves(entry: Entry, diagnosis: Diagnosis) -> str:
    after, takes = findings.after(entry), words.takes(entry.result.takes)
    saved = words.joined(*findings.saving(entry, diagnosis)) or (f"unknown (takes {takes})" if takes else "")
    return words.joined(saved, f"after {after}" if after else "", by=" ")


def _details(shown: Page) -> Iterator[tuple[str, Sequence[str], bool]]:
    """Yield the parts that open on a click: title, blocks, and whether an empty line is between these.

    They are the profile, results, settings, and what else was recorded.
    """
    diagnosis = shown.diagnosis
    if sections.has_profile(diagnosis):
        rows = table(sections.profile_grid(diagnosis.profile.rows[:ROWS]))
        caption, rest = sections.profile_caption(diagnosis), sections.profile_rest(diagnosis)
        yield "Profile of a step", [escaped(caption), rows, escaped(rest)], True
    yield f"Findings ({len(shown.entries)})", [_finding(entry, shown) for entry in shown.entries], True
    for title, results in findings.by_outcome(diagnosis).items():
        yield f"{title} ({len(results)})", [_note(result) for result in results], True
    settings, opinion = diagnosis.settings, sections.opinion(diagnosis)
    off = [f"{code(name(one.rule))}: {escaped(f'{name(one.title)} ({prose(one.why)}).')}" for one in settings.off]
    yield f"Switched off ({len(off)})", off, True
    yield "Changed limits", _items(map(sections.limit_set, settings.limits)), False
    yield "Your own rules", [f"- {code(name(rule))}" for rule in settings.own], False
    yield "Not recorded", _items(map(sentence, diagnosis.unrecorded)), False
    yield "Second opinion: xprof", [escaped(" ".join(opinion))] if opinion else [], True
    subject = sections.subject(diagnosis)
    yield "The run", [f"- {escaped(label)}: {escaped(value)}" for label, value in subject], False
    if (energy := diagnosis.energy) and energy.rows:
        notes = _items(sections.energy_notes(energy, diagnosis.subject.device))
        yield "Energy", [table(sections.energy_grid(energy)), *notes], True
    if (device := sections.device_time(diagnosis)) and diagnosis.device_time:
        yield device[0], [_measures(diagnosis.device_time)], True
    yield "Numbers used by the step model", [_measures(diagnosis.model)] if diagnosis.model else [], True


def _fold(title: str, blocks: Sequence[str], room: int, *, apart: bool) -> str:
    """Return as many blocks as there is room for, folded under the title; "" where none fits."""
    start = f"<details><summary>{title}</summary>\n"
    kept, used = [], len(start) + _RESERVE
    for block in blocks:
        used += len(block.encode()) + 2
        if used > room:
            break
        kept.append(block + ("\n" if apart else ""))
    if not kept:
        return ""
    left_out = _more(len(blocks) - len(kept), "entry", "entries").lstrip()
    return words.joined(start.rstrip(), "\n".join(kept).rstrip(), left_out, "</details>", by="\n\n")


def _finding(entry: Entry, shown: Page) -> str:
    result, severity = entry.result, findings.severity(entry)
    saved, trial = findings.saving(entry, shown.diagnosis)[0], findings.trial(entry, shown.tried)
    changes: list[str] = []
    for change in findings.changes(result):
        where = f" at {code(change.where)}" if change.where else ""
        where += f" (the edit begins at {code(change.begins)})" if change.begins else ""
        lines = fenced(change.diff, "diff") if change.diff else fenced(change.code)
        changes.append(f"**Change:** {escaped(change.action)}{where}{lines}")
    about = words.joined(severity and f"({severity})", findings.known(entry), by=" ")
    return words.joined(
        f"#### {words.joined(code(name(result.rule.name)), about, by=' ')}",
        *(f"{escaped(findings.summary(one))} ({code(name(one.rule.name))})" for one in entry.symptoms),
        escaped(findings.summary(result)),
        _measures(measures(result.outcome)),
        *(table(grid.first(ROWS)) for grid in grids(result.outcome)),
        *changes,
        f"{f'Saves {escaped(_saves(entry, shown.diagnosis))}. ' if saved else ''}{escaped(findings.how(entry))}",
        f"Measured: {escaped(trial.told)}." if trial else "",
        by="\n\n",
    )


def _note(result: Result) -> str:
    told, trace = escaped(findings.said(result)), fenced(findings.traceback(result)[-2000:])
    tables = (table(grid.first(ROWS)) for grid in grids(result.outcome))
    rule = code(name(result.rule.name))
    return words.joined(f"{rule}: {told}{trace}", _measures(measures(result.outcome)), *tables, by="\n\n")


def _measures(of: Iterable[Measure]) -> str:
    return "\n".join(
        f"- {escaped(prose(one.label))}: {escaped(quantity(one.value))}"
        + (f" (limit {escaped(quantity(one.limit))})" if one.limit else "")
        for one in of
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
