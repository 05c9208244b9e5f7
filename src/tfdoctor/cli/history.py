"""``tfdoctor history``: the runs of programs over their commits."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import typer

from tfdoctor.capture.user_folder import user
from tfdoctor.cli.commands import HistoryOptions
from tfdoctor.cli.options import FOUND, UNDECIDED, book
from tfdoctor.cli.outcome import tell, untried
from tfdoctor.cli.streams import say
from tfdoctor.cli.values import files_beside
from tfdoctor.compare.baseline import keep
from tfdoctor.fleet.places import found
from tfdoctor.history.runs import ANOTHER, NAME, ReadRun, accepted, named, of_program, read_all, read_kept
from tfdoctor.history.series import FEWEST, Demand
from tfdoctor.history.series import history as of_runs
from tfdoctor.report import history as rendering
from tfdoctor.rulebook.book import Rulebook
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.progress_line import line

Pairs = list[tuple[str, str]]


def history(given: HistoryOptions) -> int:
    """Show the runs of programs over their commits, and return the exit code."""
    wanted = files_beside(given.formats, show=given.show)
    if given.accept and not given.why.strip():
        raise typer.BadParameter("--accept needs a reason: add --why TEXT")
    if not given.accept and (given.why or given.by):
        raise typer.BadParameter("--why and --by tell of an accepted change: add --accept WHAT@COMMIT")
    accepts = _pairs(given.accept, str.rpartition, "@", "WHAT@COMMIT, such as step-ms@3f2c1a9")
    names = _pairs(given.name_baseline, str.partition, "=", "NAME=RUN, such as release-1=report.json")
    demand, chosen = _demand(given), given.rules.settings(*given.where)
    file = given.history or chosen.history or Path(NAME)
    known, applied = read_kept(file, to_write=bool(accepts or names)), book(chosen)
    (runs, unread), titles = _read(given.where, applied), {rule.name: rule.doc.title for rule in applied.known}
    runs = of_program(runs, given.program) if given.program else runs
    for name, place in names:
        ours, _ = _read([place], applied)
        if len(ours) > 1:
            raise InputError(f"{place} has {len(ours)} runs: name one of them for {name!r}.")
        known = known.with_entry(named(name, ours[0]))
    made = of_runs(runs, known, demand, titles, unread)
    if accepts:
        by = given.by.strip() or user(Path())
        if not by:
            raise typer.BadParameter("git knows no user.name: add --by NAME")
        for what, commit in accepts:
            known = known.with_entry(accepted(what, commit, made.series, by=by, why=given.why.strip()))
        made = of_runs(runs, known, demand, titles, unread)
    if accepts or names:
        keep(known, file, ANOTHER)
        typer.echo(f"wrote {file}", err=True)
    tell(made, rendering, wanted, given.out, show=given.show)
    return FOUND if made.failed else UNDECIDED if made.undecided else 0


def _pairs(texts: list[str] | None, split: Callable[[str, str], tuple[str, str, str]], at: str, form: str) -> Pairs:
    """Return both sides of texts of this form."""
    pairs = []
    for text in texts or ():
        one, _, other = split(text, at)
        if not one or not other:
            raise typer.BadParameter(f"{text!r} is not {form}")
        pairs.append((one, other))
    return pairs


def _demand(given: HistoryOptions) -> Demand:
    if given.last < FEWEST:
        raise typer.BadParameter(f"--last {given.last} decides nothing: choose at least {FEWEST}")
    severity = given.fail_on.severity if given.fail_on else None
    return Demand(last=given.last, limit=given.max_regression, severity=severity)


def _read(where: Sequence[str], applied: Rulebook) -> tuple[list[ReadRun], Pairs]:
    """Return the runs at these places, and the places that cannot be read, with why.

    Raises:
        InputError: there is nothing, or nothing of it can be read.
    """
    with line("looking for runs …", sys.stderr):
        places, empty = found(where)
    for place in empty:
        say(f"note: no run at {place}")
    runs, unread = [], []
    with line(f"reading {len(places):,} runs …", sys.stderr):
        for place, read in read_all(places, partial(untried, rules=applied), applied.known):
            if isinstance(read, InputError):
                unread.append((place, str(read)))
            else:
                runs.append(ReadRun.of(place, read))
    if not runs:
        why, others = unread[0][1], len(unread) - 1
        raise InputError(f"{why} None of {others + 1} runs can be read." if others else why)
    return runs, unread
