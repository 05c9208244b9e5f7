"""``tfdoctor history``: the runs of programs over their commits."""

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import typer

from tfdoctor.capture.revision import user
from tfdoctor.cli.commands import HistoryGates, HistoryOptions, KeptOptions
from tfdoctor.cli.options import FOUND, UNDECIDED, book
from tfdoctor.cli.outcome import tell_files, untried
from tfdoctor.cli.streams import draw, say
from tfdoctor.cli.values import files_beside, parse_percent
from tfdoctor.fleet.places import found
from tfdoctor.history.runs import NAME, ReadRun, accepted, named, of_program, read_all, read_kept
from tfdoctor.history.series import FEWEST, Demand
from tfdoctor.history.series import history as of_runs
from tfdoctor.report.history import terminal, write
from tfdoctor.rulebook.book import Rulebook
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.progress_line import line


def history(given: HistoryOptions) -> int:
    """Show the runs of programs over their commits, and return the exit code."""
    keep, wanted = given.kept, files_beside(given.formats, show=given.show)
    accepts, names = [*_accepts(keep)], [*_names(keep)]
    demand, chosen = _demand(given.gates), given.rules.settings(*given.where)
    file = keep.history or chosen.history or Path(NAME)
    known, applied = read_kept(file), book(chosen)
    titles = {rule.name: rule.doc.title for rule in applied.known}
    runs, unread = _read(given.where, applied)
    runs = of_program(runs, given.program) if given.program else runs
    for name, place in names:
        ours, _ = _read([place], applied)
        if len(ours) > 1:
            raise InputError(f"{place} has {len(ours)} runs: name one of them for {name!r}.")
        known = known.with_entry(named(name, ours[0]))
    made = of_runs(runs, known, demand, titles, unread)
    if accepts:
        by = keep.by.strip() or user(Path())
        if not by:
            raise typer.BadParameter("git knows no user.name: add --by NAME")
        for what, commit in accepts:
            known = known.with_entry(accepted(what, commit, made.series, by=by, why=keep.why.strip()))
        made = of_runs(runs, known, demand, titles, unread)
    if accepts or names:
        known.write(file)
        typer.echo(f"wrote {file}", err=True)
    written = write(made, given.out or Path(), wanted) if wanted else ()
    draw(terminal(made).rstrip("\n"))
    tell_files(written, show=given.show)
    return FOUND if made.failed else UNDECIDED if made.undecided else 0


def _accepts(keep: KeptOptions) -> Iterator[tuple[str, str]]:
    """Yield the changes that are accepted: what, and the first commit that has it."""
    if keep.accept and not keep.why.strip():
        raise typer.BadParameter("--accept needs a reason: add --why TEXT")
    if not keep.accept and (keep.why or keep.by):
        raise typer.BadParameter("--why and --by tell of an accepted change: add --accept WHAT@COMMIT")
    for text in keep.accept or ():
        what, _, commit = text.rpartition("@")
        if not what or not commit:
            raise typer.BadParameter(f"{text!r} is not WHAT@COMMIT, such as step-ms@3f2c1a9")
        yield what, commit


def _names(keep: KeptOptions) -> Iterator[tuple[str, str]]:
    """Yield the runs that get a name: the name, and where the run is."""
    for text in keep.name_baseline or ():
        name, _, run = text.partition("=")
        if not name or not run:
            raise typer.BadParameter(f"{text!r} is not NAME=RUN, such as release-1=report.json")
        yield name, run


def _demand(gates: HistoryGates) -> Demand:
    if gates.last < FEWEST:
        raise typer.BadParameter(f"--last {gates.last} decides nothing: choose at least {FEWEST}")
    limit = parse_percent(gates.max_regression, "--max-regression")
    return Demand(last=gates.last, limit=limit, severity=gates.fail_on.severity if gates.fail_on else None)


def _read(where: Sequence[str], applied: Rulebook) -> tuple[list[ReadRun], list[tuple[str, str]]]:
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
