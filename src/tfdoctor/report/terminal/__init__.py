"""The report on a terminal: the verdict, the parts of a step and the most useful changes."""

import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from itertools import groupby
from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tfdoctor.diagnosis import BudgetCheck, Diagnosis, PhaseLine, PhaseRow, ProfileRow
from tfdoctor.diagnosis.entries import Entry
from tfdoctor.report import findings, hosts, sections, sentences, trial_words, trials, words
from tfdoctor.report.page import Page, page
from tfdoctor.report.pictures.palette import PART_COLOURS
from tfdoctor.report.pictures.step_bars import lines
from tfdoctor.report.run import GLYPHS, PHASE_COLOURS, RunSection, cells, where
from tfdoctor.report.tables import Grid
from tfdoctor.report.terminal.table import HELD, HoldingConsole, brief, fitted, natural_width
from tfdoctor.terms.humanize import counted, duration, place
from tfdoctor.terms.text import harmless, name, prose, sentence, shorten

WIDEST = 100  # Lines longer than this are hard to read, however wide the window

NARROWEST = 40
COLORLESS = ("dumb", "unknown")  # Terminals that show escape codes as characters

HOSTS = 8
PROFILE_ROWS = 5
OFF = 8
FIXES = 5  # The rest is in the files
MOST_LETTERS = 400  # Of a sentence: those of our own are shorter, names of others may not be
RUN_LINES = 4
RUN_NOTES = 5
LARGE = 0.1  # Share of the run from which on a line is listed
LONG = 0.01  # Share of the run from which on the time of long steps beyond the usual is told
LEAST_NAME = 24  # Characters of a place and of a name that are kept in the narrowest window
TRIED_COLUMNS = 4  # Of what was tried, the change or part to what was measured and whether it trains the same

_SEVERITY_STYLES = {"critical": "bold red", "warning": "bold yellow", "note": "bold blue"}


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool | None = None) -> str:
    """Return the summary; width and color default to those of the terminal."""
    return capture(_sections, page(diagnosis), width=width, color=color)


def capture(
    draw: Callable[..., Iterable[RenderableType | None]],
    *shown: object,
    width: int | None = None,
    color: bool | None = None,
) -> str:
    """Return what the sections that are drawn of what is shown look like, an empty line below each.

    ``draw`` has the width as its last argument. Width and color default to those of the terminal; nothing but the
    arguments decides how, once these are known.
    """
    columns = shutil.get_terminal_size().columns if width is None else width
    colored = wants_color(sys.stdout) if color is None else color
    console = HoldingConsole(
        force_jupyter=False,
        file=StringIO(),
        width=max(NARROWEST, min(columns, WIDEST)),
        color_system="256" if colored else None,
        force_terminal=colored,
        no_color=not colored,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as captured:
        for section in draw(*shown, console.width):
            if section:
                console.print(Padding(section, (0, 0, 1, 0)))
    lines = "\n".join(line.rstrip() for line in captured.get().splitlines())
    return harmless(f"{lines}\n".replace(HELD, " "), colored=colored)


def wants_color(stream: TextIO) -> bool:
    """Say whether a stream is to get colors.

    ``NO_COLOR`` goes before ``FORCE_COLOR``, and both before what the terminal can show. Either counts if it is set
    and not empty (https://no-color.org, https://force-color.org).
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM", "") not in COLORLESS


def more(left_out: int, where: str) -> Iterator[Text]:
    """Yield the line below a list that says how many of it are left out, and where they are."""
    if left_out > 0:
        yield Text(f"… {left_out:,} more {where}", style="dim")


def grid_table(title: str, grid: Grid, rows: int, width: int, where: str = "in the files") -> RenderableType:
    """Return the first rows of a table under its title, and how many more there are elsewhere."""
    shown = grid.first(rows)
    cells = ([Text(shorten(cell, 160)) for cell in row] for row in shown.rows)
    numbers = (at for at, kind in enumerate(shown.kinds) if kind == "number")
    table = fitted(cells, width, header=shown.columns, numbers=numbers)
    return Group(Text(title, style="bold"), table, *more(shown.omitted, where))


def _sections(shown: Page, width: int) -> Iterator[RenderableType | None]:
    """Yield the sections in order; those that are None or an empty text are not shown."""
    diagnosis, tried = shown.diagnosis, shown.diagnosis.trials
    notes = list(trials.notes(tried)) if tried else []
    yield Text(" ".join(shown.verdict), style="bold")
    yield _run(shown.run, width) if shown.run else None
    step = lines(diagnosis.steps, max(8, width - 42))
    bar = Text("\n").join(Text(figures).append(blocks, style=PART_COLOURS[part]) for part, figures, blocks in step)
    yield _titled(shown.run.step_title, bar) if shown.run and step else bar
    yield Text(" ".join(shown.remarks))
    yield Text("\n".join(f"{label}: {told}" for _, label, told in words.accounts(diagnosis)))
    yield _profile(diagnosis.profile.rows, width) if sections.has_profile(diagnosis) else None
    yield _budgets(diagnosis.budgets) if diagnosis.budgets else None
    if of := diagnosis.hosts:
        rows = hosts.sorted_rows(of)
        brief_rows = ([shorten(cell, 60) for cell in hosts.brief(row)] for row in rows[:HOSTS])
        left_out = more(len(rows) - HOSTS, "in the report")
        yield _titled("Hosts", Text(sentence(of.slowest)), _grid(brief_rows), *left_out)
    if tried and tried.rows:  # the step, the last column, is in the files
        yield _tried("Measured by running the changes", trials.changes_grid(tried), notes, width)
    if tried and tried.parts:
        yield _tried(trials.PARTS_TITLE, trials.parts_grid(tried), () if tried.rows else notes, width)
    yield from _changes(shown)
    told = ("\n".join(shown.order), "\n".join(sections.baseline(diagnosis)))
    energy = sections.energy_brief(diagnosis)
    yield from map(Text, (*told, f"Energy: {energy}" if energy else "", words.cost(diagnosis.results)))
    reasons = " ".join(shorten(reason, MOST_LETTERS) for reason in sentences.trust(diagnosis))
    yield Text.assemble((f"Trust: {name(diagnosis.trust.level)}", "bold"), f". {reasons}")
    yield Text("\n".join(_rest(diagnosis)))


def _changes(shown: Page) -> Iterator[RenderableType]:
    if shown.fixes:
        fixes = ((f"{rank}.", _fix(entry, shown)) for rank, entry in enumerate(shown.fixes[:FIXES], start=1))
        yield _titled("What to change", _grid(fixes, gap=1), *more(len(shown.fixes) - FIXES, "in the report"))
    if large := shown.diagnosis.large:
        told = (words.joined(*sections.large_cells(one), sections.large_form(one), by=" · ") for one in large)
        yield _titled(sections.LARGE, *map(Text, told))


def _budgets(budgets: Sequence[BudgetCheck]) -> RenderableType:
    states = (Text(sections.budget_state(one), style="bold red" if one.state.failed else "") for one in budgets)
    told = (shorten(sections.budget_told(one), MOST_LETTERS) for one in budgets)
    return _titled("Budgets", _grid(zip((one.key for one in budgets), states, told, strict=True)))


def _titled(title: str, *below: RenderableType) -> RenderableType:
    return Group(Text(title, style="bold"), *below)


def _grid(rows: Iterable[Iterable[Text | str]], gap: int = 2) -> RenderableType:
    grid = Table.grid(padding=(0, gap, 0, 0))
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return grid


def _run(shown: RunSection, width: int) -> Text:
    """Return the bar, the times of the phases, the largest lines, and remarks."""
    run, bar = shown.account, Text()
    for phase, stretch in groupby(one.phase for one in cells(run, width)):
        bar.append(GLYPHS[phase] * len(list(stretch)), style=PHASE_COLOURS[phase])
    title = [] if run.whole and run.segments else [Text(shown.title, style="bold")]
    rows = [*title, bar, *_legend(shown, width)]
    large = [(line, row) for row in shown.phases for line in row.lines if line.ms >= LARGE * run.total_ms]
    large.sort(key=lambda pair: -pair[0].ms)
    rows += [Text(_run_line(shown, line, row, width)) for line, row in large[:RUN_LINES]]
    rows += [Text(shown.workers)] if shown.workers else []
    largest = (words.joined(where(one), duration(one.ms), one.calls, by=" · ") for one in shown.worker_lines)
    rows += [Text(f"  {line}") for line in largest]
    long = run.long_steps.beyond_ms if run.long_steps else 0.0
    notes = [*([shown.long] if long >= LONG * run.total_ms else []), *shown.notes][:RUN_NOTES]
    return Text("\n").join([*rows, *(Text(shorten(note, MOST_LETTERS)) for note in notes)])


def _run_line(shown: RunSection, line: PhaseLine, of: PhaseRow, width: int) -> str:
    """Return a line with its figures, which are never cut: of a narrow window the ends of its names stay."""
    figures = f"{duration(line.ms)} ({shown.share(line)}) · {of.phase}"
    room = max(LEAST_NAME, width - len(figures) - len(" ·  · "))
    place = shorten(where(line), max(LEAST_NAME, room - len(line.calls)))
    calls = shorten(line.calls, max(LEAST_NAME, room - len(place)))
    return " · ".join(filter(None, (place, figures, calls)))


def _legend(shown: RunSection, width: int) -> Iterator[Text]:
    """Yield lines of phases with their times; none is broken within a phase."""
    line = Text()
    for row in shown.phases:
        glyph = (GLYPHS[row.phase], PHASE_COLOURS[row.phase])
        entry = Text.assemble(glyph, f" {row.phase} {duration(row.ms)}")
        if line and line.cell_len + len(" · ") + entry.cell_len > width:
            yield line
            line = Text()
        line.append(" · " if line else "").append_text(entry)
    yield line


def _profile(rows: Sequence[ProfileRow], width: int) -> RenderableType:
    """Return the rows that take most: each with its distance from the hardware's rates, where that is known."""

    def cells(row: ProfileRow, before_place: str) -> tuple[Text, ...]:
        what, where, time, part = sections.profile_cells(row)
        place = f"{before_place}{shorten(where, 60)}" if where else ""
        near = Text(sections.reached(row, brief=True), style="dim")
        return Text(shorten(what, 40)).append(place, style="dim"), Text(time), Text(part), near

    shown = [cells(row, " ") for row in rows[:PROFILE_ROWS]]
    title = Text("Profile of a step", style="bold")
    if any(near for *_, near in shown):
        title.append(", compared with the hardware or with this run's fastest", style="not bold")
    if natural_width(shown) > width:
        shown = [cells(row, "\n") for row in rows[:PROFILE_ROWS]]
    return Group(title, fitted(shown, width, numbers=(1, 2)), *more(len(rows) - PROFILE_ROWS, "in the report"))


def _tried(title: str, grid: Grid, notes: Sequence[str], width: int) -> RenderableType:
    """Return the first columns of what was measured, the first one in bold, and notes."""
    styles = ["bold", *[""] * (TRIED_COLUMNS - 1)]
    cells = (
        [Text(shorten(cell, MOST_LETTERS), style) for cell, style in zip(row, styles, strict=False)]
        for row in grid.rows
    )
    table = fitted(cells, width, header=grid.columns[:TRIED_COLUMNS])
    return _titled(title, table, *(Text(shorten(one, MOST_LETTERS)) for one in notes))


def _fix(entry: Entry, shown: Page) -> Text:
    """Return one change: what to do, then where, what it saves and how bad it is, then the user's own lines."""
    result, trial = entry.result, findings.trial(entry, shown.diagnosis.trials)
    (amount, each), takes = findings.saving(entry, shown.diagnosis), words.takes(result.takes)
    after = f"after {findings.after(entry, 60)}" if findings.after(entry) else ""
    saves = words.joined(f"saves {words.joined(amount, each)}", after, by=" ") if amount else ""
    facts = [
        shorten(place(result.place), 60),
        saves or (f"takes {takes}" if takes else after),
        sections.energy_saved(entry.priced.energy, brief=True),
        f"measured: {trial_words.brief(*trial)}" if trial else "",
        shorten(findings.rules(entry), 80),
        findings.known(entry),
    ]
    severity = findings.severity(entry)
    line = Text(shorten(findings.what(result), MOST_LETTERS), style="bold")
    line.append("\n").append(severity, style=_SEVERITY_STYLES.get(severity, ""))
    rest = words.joined(*facts, by=" · ")
    line.append(f"{' · ' if severity and rest else ''}{rest}", style="not bold")
    # An edit that is not the change above it comes with its own words.
    edits = [(at, change) for at, change in enumerate(findings.changes(result)) if change.diff]
    at, edit = edits[0] if edits else (0, None)
    if edit and at:
        line.append(f"\n{shorten(edit.action, MOST_LETTERS)}:", style="not bold")
    styles = {"-": "not bold red", "+": "not bold green"}
    for own in brief(edit.diff if edit else ""):
        line.append(f"\n{own}", style=styles.get(own[:1], "not bold"))
    return line


def _rest(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield how many rules found nothing, were not checked or failed, and what the user set."""
    *counted_only, own_errored = findings.by_outcome(diagnosis).values()
    named = zip(counted_only, ("healthy", "not checked", "failed (a defect of tfdoctor)"), strict=True)
    states = [f"{counted(len(results), 'rule')} {state}" for results, state in named if results]
    if states:
        yield f"{', '.join(states).capitalize()}."
    for result in own_errored:
        yield f"Your own rule {name(result.rule.name)} failed: {shorten(findings.said(result), MOST_LETTERS)}"
    by_reason: dict[str, list[str]] = defaultdict(list)
    for off in diagnosis.settings.off:
        by_reason[prose(off.why)].append(name(off.rule))
    for why, rules in by_reason.items():
        and_more = f" and {len(rules) - OFF} more" if len(rules) > OFF else ""
        yield f"{counted(len(rules), 'rule').capitalize()} {why}: {', '.join(rules[:OFF])}{and_more}."
    for limit in diagnosis.settings.limits:
        yield f"Changed limit: {sections.limit_set(limit)}."
    if own := diagnosis.settings.own:
        yield f"Your own rules: {', '.join(map(name, own))}."
