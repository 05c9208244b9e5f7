"""The report on a terminal: the verdict, the parts of a step and the most useful changes."""

import os
import shutil
import sys
from collections.abc import Callable
from io import StringIO
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report.accounts import AccountLine
from tfdoctor.report.findings import Fault
from tfdoctor.report.gates import BudgetSection
from tfdoctor.report.hosts import Section
from tfdoctor.report.page import BarSegment, Page, UserSettings, page
from tfdoctor.report.palette import PART_COLOURS
from tfdoctor.report.run import terminal as run_terminal
from tfdoctor.report.step_bars import blocks
from tfdoctor.report.terminal_diff import brief
from tfdoctor.report.trials import TrialSection
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.text import shorten

WIDEST = 100
"""Lines longer than this are hard to read, however wide the window."""

NARROWEST = 40
COLORLESS = ("dumb", "unknown")
"""Terminals that show escape codes as characters."""

HOSTS = 8
OFF = 8
FIXES = 5
"""The rest is in the files."""

TRIAL_WIDTHS = (4, 7, 6)
"""Shares of the width beside the change: promised, measured, trains the same?"""

CHANGE_WIDTHS = (0.25, 0.3)
"""Shares of the width for the change, more than the first only where a word needs it; a longer word is broken."""

_SEVERITY_STYLES = {"critical": "bold red", "warning": "bold yellow", "note": "bold blue"}


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool | None = None) -> str:
    """Return the summary; width and color default to those of the terminal."""
    return capture(lambda columns: _page(page(diagnosis), columns), width=width, color=color)


def capture(
    draw: Callable[[int], RenderableType], *, width: int | None = None, color: bool | None = None
) -> str:
    """Return what a page of a certain width looks like on a terminal."""
    columns = shutil.get_terminal_size().columns if width is None else width
    colored = wants_color(sys.stdout) if color is None else color
    console = _console(max(NARROWEST, min(columns, WIDEST)), colored=colored)
    with console.capture() as captured:
        console.print(draw(console.width))
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


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


def _console(width: int, *, colored: bool) -> Console:
    """Return a console that depends on nothing but its arguments."""
    return Console(
        force_jupyter=False,
        file=StringIO(),
        width=width,
        color_system="256" if colored else None,
        force_terminal=colored,
        no_color=not colored,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )


def _page(shown: Page, width: int) -> RenderableType:
    sections = [
        Text(" ".join(shown.verdict), style="bold"),
        run_terminal.drawn(shown.run, width) if shown.run else None,
        _step(shown, width),
        _accounts(shown.accounts),
        _budgets(shown.budgets),
        _hosts(shown.hosts),
        _trials(shown.trials, width),
        _fixes(shown.fixes),
        _order(shown.order),
        Text("\n".join(shown.baseline)) if shown.baseline else None,
        Text(shown.money) if shown.money else None,
        _trust(shown),
        _rest(shown),
    ]
    return Group(*(Padding(section, (0, 0, 1, 0)) for section in sections if section is not None))


def _step(shown: Page, width: int) -> RenderableType | None:
    """Return the bar of the step, below a title where there is a bar of the run too."""
    bar = _bar(shown.segments, width)
    if bar is None or shown.run is None:
        return bar
    return Group(Text(shown.run.step_title, style="bold"), bar)


def _bar(segments: tuple[BarSegment, ...], width: int) -> RenderableType | None:
    if not segments:
        return None
    grid = Table.grid(padding=(0, 2, 0, 0))
    room = max(8, width - 42)
    for segment in segments:
        bar = Text(blocks(segment.fraction, room), style=PART_COLOURS[segment.part])
        time = Text(segment.time, justify="right")
        grid.add_row(Text(segment.label), time, Text(segment.share, justify="right"), bar)
    return grid


def _accounts(lines: tuple[AccountLine, ...]) -> RenderableType | None:
    return Text("\n".join(f"{line.label}: {line.text}" for line in lines)) if lines else None


def _budgets(budgets: BudgetSection | None) -> RenderableType | None:
    if budgets is None:
        return None
    grid = Table.grid(padding=(0, 2, 0, 0))
    for line in budgets.lines:
        state = Text(line.state, style="bold red" if line.failed else "")
        grid.add_row(Text(line.key), state, Text(shorten(line.told, 240)))
    return Group(Text("Budgets", style="bold"), grid)


def _hosts(hosts: Section | None) -> RenderableType | None:
    if hosts is None:
        return None
    grid = Table.grid(padding=(0, 2, 0, 0))
    for host in hosts.briefs[:HOSTS]:
        grid.add_row(*(Text(shorten(cell, 60)) for cell in host))
    left_out = len(hosts.briefs) - HOSTS
    more = [Text(f"… {left_out:,} more in the report", style="dim")] if left_out > 0 else []
    return Group(Text("Hosts", style="bold"), Text(hosts.slowest), grid, *more)


def _trials(trials: TrialSection | None, width: int) -> RenderableType | None:
    """Return what was measured as a table, without the step, which the reports have."""
    if trials is None:
        return None
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, width=width)
    rows = [[shorten(cell, 240) for cell in line.cells] for line in trials.lines]
    change, *others = (Text(column, style="dim") for column in trials.grid.columns)
    longest = max((len(word) for what, *_ in rows for word in what.split()), default=0)
    least, most = (int(share * width) for share in CHANGE_WIDTHS)
    grid.add_column(change, width=min(max(longest, least), most), overflow="fold")
    for column, share in zip(others, TRIAL_WIDTHS, strict=False):
        grid.add_column(column, ratio=share, overflow="fold")
    for what, *cells in rows:
        grid.add_row(Text(what, style="bold"), *map(Text, cells[: len(TRIAL_WIDTHS)]))
    notes = [Text(shorten(sentence, 240)) for sentence in trials.notes]
    return Group(Text("Measured by running the changes", style="bold"), grid, *notes)


def _fixes(faults: tuple[Fault, ...]) -> RenderableType | None:
    if not faults:
        return None
    grid = Table.grid(padding=(0, 1, 0, 0))
    for rank, fault in enumerate(faults[:FIXES], start=1):
        grid.add_row(Text(f"{rank}."), _fix(fault))
    left_out = len(faults) - FIXES
    more = [Text(f"… {left_out:,} more in the report", style="dim")] if left_out > 0 else []
    return Group(Text("What to change", style="bold"), grid, *more)


def _order(sentences: tuple[str, ...]) -> RenderableType | None:
    return Text("\n".join(sentences)) if sentences else None


def _fix(fault: Fault) -> Text:
    """Return one change on two lines: what to do, then where, what it saves and how bad it is."""
    after = f" after {', '.join(shorten(rule, 60) for rule in fault.after)}" if fault.after else ""
    takes = f"takes {fault.takes}" if fault.takes else ""
    saves = f"saves {fault.saved}{after}" if fault.saves else takes or after.strip()
    measured = f"measured: {fault.trial.measured}" if fault.trial else ""
    facts = [shorten(fault.where, 60), saves, measured, shorten(fault.rules, 80), fault.known]
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


def _trust(shown: Page) -> Text:
    text = Text("Trust: ", style="bold")
    text.append(shown.trust_level)
    text.append(f". {' '.join(shorten(reason, 240) for reason in shown.trust)}", style="not bold")
    return text


def _rest(shown: Page) -> Text:
    """Return how many rules found nothing, were not checked or failed, and what the user set."""
    counts = (
        (shown.healthy, "healthy"),
        (shown.unchecked, "not checked"),
        (shown.errored, "failed (a defect of tfdoctor)"),
    )
    states = [f"{counted(len(notes), 'rule')} {state}" for notes, state in counts if notes]
    other = [f"{', '.join(states).capitalize()}."] if states else []
    failed = [
        f"Your own rule {note.rule} failed: {shorten(note.text, 240)}" for note in shown.own_errored
    ]
    return Text("\n".join([*other, *failed, *_settings(shown.settings)]))


def _settings(settings: UserSettings) -> list[str]:
    """Return the rules switched off, by reason, the limits changed and the user's own rules."""
    by_reason: dict[str, list[str]] = {}
    for off in settings.off:
        by_reason.setdefault(off.why, []).append(off.rule)
    switched_off = [_switched_off(why, rules) for why, rules in by_reason.items()]
    limits = [f"Changed limit: {limit}." for limit in settings.limits]
    own = [f"Your own rules: {', '.join(settings.own)}."] if settings.own else []
    return [*switched_off, *limits, *own]


def _switched_off(why: str, rules: list[str]) -> str:
    more = f" and {len(rules) - OFF} more" if len(rules) > OFF else ""
    return f"{counted(len(rules), 'rule').capitalize()} {why}: {', '.join(rules[:OFF])}{more}."
