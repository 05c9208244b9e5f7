"""The report on a terminal: the verdict, the parts of a step and the most useful changes."""

import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report.findings import Fault
from tfdoctor.report.gates import BudgetSection
from tfdoctor.report.hosts import Section
from tfdoctor.report.page import Page, UserSettings, page
from tfdoctor.report.palette import PART_COLOURS
from tfdoctor.report.profile import ProfileLine, ProfileSection
from tfdoctor.report.run import terminal as run_terminal
from tfdoctor.report.step_bars import blocks
from tfdoctor.report.tables import Grid
from tfdoctor.report.terminal_diff import brief
from tfdoctor.report.terminal_table import fitted, natural_width
from tfdoctor.report.terminal_words import HoldingConsole, released
from tfdoctor.report.trials import PARTS_TITLE, TrialSection
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.text import harmless, shorten

WIDEST = 100  # Lines longer than this are hard to read, however wide the window

NARROWEST = 40
COLORLESS = ("dumb", "unknown")  # Terminals that show escape codes as characters

HOSTS = 8
PROFILE_ROWS = 5
OFF = 8
FIXES = 5  # The rest is in the files
TRIAL_COLUMNS = 4  # The change, promised, measured, trains the same? The step is in the files
PART_COLUMNS = 4  # Experiment, line, recorded, measured

_SEVERITY_STYLES = {"critical": "bold red", "warning": "bold yellow", "note": "bold blue"}


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool | None = None) -> str:
    """Return the summary; width and color default to those of the terminal."""
    shown = page(diagnosis)
    return capture(lambda columns: _sections(shown, columns), width=width, color=color)


def capture(
    draw: Callable[[int], Iterable[RenderableType | None]], *, width: int | None = None, color: bool | None = None
) -> str:
    """Return what the sections of a page of a certain width look like on a terminal, an empty line below each.

    Nothing but the arguments decides how, once width and color are known.
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
        for section in draw(console.width):
            if section:
                console.print(Padding(section, (0, 0, 1, 0)))
    lines = "\n".join(line.rstrip() for line in captured.get().splitlines())
    return harmless(f"{released(lines)}\n", colored=colored)


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


def grid_table(title: str, grid: Grid, rows: int, width: int) -> RenderableType:
    """Return the first rows of a table under its title; all of them are in the files."""
    shown = grid.first(rows)
    cells = ([Text(shorten(cell, 160)) for cell in row] for row in shown.rows)
    numbers = (at for at, kind in enumerate(shown.kinds) if kind == "number")
    table = fitted(cells, width, header=shown.columns, numbers=numbers)
    return Group(Text(title, style="bold"), table, *more(shown.omitted, "in the files"))


def _sections(shown: Page, width: int) -> list[RenderableType | None]:
    """Return the sections in order; those that are None or an empty text are not shown."""
    reasons = " ".join(shorten(reason, 240) for reason in shown.trust)
    return [
        Text(" ".join(shown.verdict), style="bold"),
        run_terminal.drawn(shown.run, width) if shown.run else None,
        _step(shown, width) if shown.segments else None,
        Text(" ".join(shown.remarks)),
        Text("\n".join(f"{line.label}: {line.text}" for line in shown.accounts)),
        _profile(shown.profile, width) if shown.profile else None,
        _budgets(shown.budgets) if shown.budgets else None,
        _hosts(shown.hosts) if shown.hosts else None,
        _trials(shown.trials, width) if shown.trials and shown.trials.lines else None,
        _parts(shown.trials, shown.trials.parts, width) if shown.trials and shown.trials.parts else None,
        _fixes(shown.fixes) if shown.fixes else None,
        Text("\n".join(shown.order)),
        Text("\n".join(shown.baseline)),
        Text(f"Energy: {shown.energy.brief}" if shown.energy else ""),
        Text(shown.money),
        Text.assemble((f"Trust: {shown.trust_level}", "bold"), f". {reasons}"),
        Text("\n".join(_rest(shown))),
    ]


def _step(shown: Page, width: int) -> RenderableType:
    """Return the bar of the step, below a title where there is a bar of the run too."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    room = max(8, width - 42)
    for segment in shown.segments:
        bar = Text(blocks(segment.fraction, room), style=PART_COLOURS[segment.part])
        time = Text(segment.time, justify="right")
        grid.add_row(Text(segment.label), time, Text(segment.share, justify="right"), bar)
    return Group(Text(shown.run.step_title, style="bold"), grid) if shown.run else grid


def _profile(profile: ProfileSection, width: int) -> RenderableType:
    """Return the rows that take most: each with its distance from the hardware's rates, where that is known."""
    rows = [_profile_row(line, " ") for line in profile.lines[:PROFILE_ROWS]]
    if natural_width(rows) > width:
        rows = [_profile_row(line, "\n") for line in profile.lines[:PROFILE_ROWS]]
    left_out = more(len(profile.lines) - PROFILE_ROWS, "in the report")
    compared = any(line.brief for line in profile.lines[:PROFILE_ROWS])
    title = Text("Profile of a step", style="bold")
    if compared:
        title.append(", compared with the hardware or with this run's fastest", style="not bold")
    return Group(title, fitted(rows, width, numbers=(1, 2)), *left_out)


def _profile_row(line: ProfileLine, before_place: str) -> tuple[Text, ...]:
    place = f"{before_place}{shorten(line.where, 60)}" if line.where else ""
    what = Text(shorten(line.what, 40)).append(place, style="dim")
    return what, Text(line.time), Text(line.share), Text(line.brief, style="dim")


def _budgets(budgets: BudgetSection) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for line in budgets.lines:
        state = Text(line.state, style="bold red" if line.failed else "")
        grid.add_row(Text(line.key), state, Text(shorten(line.told, 240)))
    return Group(Text("Budgets", style="bold"), grid)


def _hosts(hosts: Section) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for host in hosts.briefs[:HOSTS]:
        grid.add_row(*(Text(shorten(cell, 60)) for cell in host))
    left_out = more(len(hosts.briefs) - HOSTS, "in the report")
    return Group(Text("Hosts", style="bold"), Text(hosts.slowest), grid, *left_out)


def _parts(trials: TrialSection, parts: Grid, width: int) -> RenderableType:
    """Return the program without its parts as a table, with the notes where no other table has them."""
    grid = _named(parts.columns, parts.rows, PART_COLUMNS, width)
    notes = () if trials.lines else trials.notes
    return Group(Text(PARTS_TITLE, style="bold"), grid, *(Text(shorten(one, 240)) for one in notes))


def _named(columns: Sequence[str], rows: Iterable[Sequence[str]], shown: int, width: int) -> RenderableType:
    """Return the first columns of a table, the first one in bold."""
    styles = ["bold", *[""] * (shown - 1)]
    cells = ([Text(shorten(cell, 240), style) for cell, style in zip(row, styles, strict=False)] for row in rows)
    return fitted(cells, width, header=columns[:shown])


def _trials(trials: TrialSection, width: int) -> RenderableType:
    """Return what was measured as a table, without the step, which the reports have."""
    rows = (line.cells for line in trials.lines)
    grid = _named(trials.grid.columns, rows, TRIAL_COLUMNS, width)
    notes = [Text(shorten(sentence, 240)) for sentence in trials.notes]
    return Group(Text("Measured by running the changes", style="bold"), grid, *notes)


def _fixes(faults: tuple[Fault, ...]) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    for rank, fault in enumerate(faults[:FIXES], start=1):
        grid.add_row(Text(f"{rank}."), _fix(fault))
    left_out = more(len(faults) - FIXES, "in the report")
    return Group(Text("What to change", style="bold"), grid, *left_out)


def _fix(fault: Fault) -> Text:
    """Return one change on two lines: what to do, then where, what it saves and how bad it is."""
    after = f" after {', '.join(shorten(rule, 60) for rule in fault.after)}" if fault.after else ""
    takes = f"takes {fault.takes}" if fault.takes else ""
    saves = f"saves {fault.saving.whole}{after}" if fault.saving.amount else takes or after.strip()
    measured = f"measured: {fault.trial.brief}" if fault.trial else ""
    facts = [shorten(fault.where, 60), saves, fault.energy, measured, shorten(fault.rules, 80), fault.known]
    line = Text(shorten(fault.what, 240), style="bold")
    line.append("\n")
    line.append(fault.severity, style=_SEVERITY_STYLES.get(fault.severity, ""))
    rest = " · ".join(filter(None, facts))
    line.append(f"{' · ' if fault.severity and rest else ''}{rest}", style="not bold")
    return line.append(_own_lines(fault))


def _own_lines(fault: Fault) -> Text:
    """Return the user's own lines before and after the first change that is an edit of them.

    An edit that is not the change above it comes with its own words.
    """
    edits = [change for change in fault.changes if change.diff]
    styles = {"-": "not bold red", "+": "not bold green"}
    lines = Text()
    if edits and edits[0] is not fault.changes[0]:
        lines.append(f"\n{shorten(edits[0].action, 240)}:", style="not bold")
    for line in brief(edits[0].diff if edits else ""):
        lines.append(f"\n{line}", style=styles.get(line[:1], "not bold"))
    return lines


def _rest(shown: Page) -> Iterator[str]:
    """Yield how many rules found nothing, were not checked or failed, and what the user set."""
    counts = (
        (shown.results.healthy, "healthy"),
        (shown.results.unchecked, "not checked"),
        (shown.results.errored, "failed (a defect of tfdoctor)"),
    )
    states = [f"{counted(len(notes), 'rule')} {state}" for notes, state in counts if notes]
    if states:
        yield f"{', '.join(states).capitalize()}."
    for note in shown.results.own_errored:
        yield f"Your own rule {note.rule} failed: {shorten(note.text, 240)}"
    yield from _settings(shown.settings)


def _settings(settings: UserSettings) -> Iterator[str]:
    """Yield the rules switched off, by reason, the limits changed and the user's own rules."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for off in settings.off:
        by_reason[off.why].append(off.rule)
    for why, rules in by_reason.items():
        and_more = f" and {len(rules) - OFF} more" if len(rules) > OFF else ""
        names = ", ".join(rules[:OFF])
        yield f"{counted(len(rules), 'rule').capitalize()} {why}: {names}{and_more}."
    for limit in settings.limits:
        yield f"Changed limit: {limit}."
    if settings.own:
        yield f"Your own rules: {', '.join(settings.own)}."
