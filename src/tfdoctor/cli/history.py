"""``tfdoctor history``: the runs of programs over their commits."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdoctor.cli.messages import draw, say
from tfdoctor.cli.options import (
    FailOn,
    FilesBeside,
    FilesFolder,
    Show,
    at_least,
    comma_separated,
    known_formats,
    parse_own,
    parse_percent,
)
from tfdoctor.cli.outcome import FOUND, UNDECIDED, tell_files, untried
from tfdoctor.cli.rule_selection import RuleOptions, book
from tfdoctor.terms.errors import InputError

if TYPE_CHECKING:
    from tfdoctor.diagnosis import Diagnosis
    from tfdoctor.diagnosis.history_report import History
    from tfdoctor.history.kept import KeptHistory
    from tfdoctor.history.runs import ReadRun
    from tfdoctor.history.series import Demand
    from tfdoctor.recording import Recording
    from tfdoctor.rulebook.book import Rulebook
    from tfdoctor.rulebook.config import Config

# Runs before the newest commit that it is compared with: more of them narrow the interval by less than a tenth.
LAST = 20


@dataclass(frozen=True, slots=True)
class HistoryGates:
    """What the newest run must keep to."""

    max_regression: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Exit with 3 if the step, the run or the peak memory of the newest commit is above the median of "
            "the last runs by more than this, such as 5%, at the lower end of the interval.",
        ),
    ] = None
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            help="Exit with 3 on a finding of this severity or above that the newest run has and none of the last "
            "runs had."
        ),
    ] = None
    last: Annotated[
        int, typer.Option(parser=at_least(1), metavar="N", help="Runs that the newest commit is compared with.")
    ] = LAST

    def demand(self) -> "Demand":
        """Return them as the history takes them.

        Raises:
            typer.BadParameter: the share is no percentage, or so few runs decide nothing.
        """
        from tfdoctor.history.gate import FEWEST  # noqa: PLC0415 - keeps --help fast
        from tfdoctor.history.series import Demand  # noqa: PLC0415 - same
        from tfdoctor.terms.verdict import Severity  # noqa: PLC0415 - same

        if self.last < FEWEST:
            raise typer.BadParameter(f"--last {self.last} decides nothing: choose at least {FEWEST}")
        counts = self.fail_on not in (None, FailOn.NEVER)
        return Demand(
            last=self.last,
            limit=parse_percent(self.max_regression, "--max-regression"),
            severity=Severity[self.fail_on.name] if self.fail_on and counts else None,
        )


@dataclass(frozen=True, slots=True)
class KeptOptions:
    """The file with names of baselines and accepted changes, and what to add to it."""

    history: Annotated[
        Path | None,
        typer.Option(
            parser=parse_own,
            metavar="FILE",
            help="File of named baselines and accepted changes, to be committed [default: `history` of the "
            "settings, else tfdoctor-history.json].",
        ),
    ] = None
    name_baseline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=RUN",
            help="Write the figures of a run under a name, such as release-1=report.json; can be repeated.",
        ),
    ] = None
    accept: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT@COMMIT",
            help="Accept a change: step-ms, run-s, memory-peak-gb or a rule, at the first commit that has it, such "
            "as step-ms@3f2c1a9; needs --why; can be repeated.",
        ),
    ] = None
    why: Annotated[str, typer.Option(metavar="TEXT", help="Why the change is accepted.")] = ""
    by: Annotated[str, typer.Option(metavar="NAME", help="Who accepts it [default: git's user.name].")] = ""

    def check(self) -> None:
        """Check that what is given belongs together.

        Raises:
            typer.BadParameter: it does not.
        """
        if self.accept and not self.why.strip():
            raise typer.BadParameter("--accept needs a reason: add --why TEXT")
        if not self.accept and (self.why or self.by):
            raise typer.BadParameter("--why and --by tell of an accepted change: add --accept WHAT@COMMIT")
        for text in self.accept or ():
            what, _, commit = text.rpartition("@")
            if not what or not commit:
                raise typer.BadParameter(f"{text!r} is not WHAT@COMMIT, such as step-ms@3f2c1a9")
        for text in self.name_baseline or ():
            name, _, run = text.partition("=")
            if not name or not run:
                raise typer.BadParameter(f"{text!r} is not NAME=RUN, such as release-1=report.json")

    def file(self, config: "Config") -> Path:
        """Return the file, by the command line or the settings."""
        from tfdoctor.history.kept import NAME  # noqa: PLC0415 - keeps --help fast

        return self.history or config.history or Path(NAME)


def history(  # noqa: PLR0913 - its arguments are the command's options
    *,
    where: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Recordings, report.json files, folders or URLs above them, or patterns of these in quotes.",
        ),
    ],
    program: Annotated[
        str, typer.Option(metavar="NAME", help="Show the runs of this program only, such as train.py.")
    ] = "",
    gates: HistoryGates,
    kept: KeptOptions,
    formats: FilesBeside = "",
    out: FilesFolder = None,
    rules: RuleOptions,
    show: Show = False,
) -> None:
    """Follow the step, the run, the peak memory and the findings of programs over their commits."""
    from tfdoctor.history.kept import of_program, read  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.history.series import history as of_runs  # noqa: PLC0415 - same
    from tfdoctor.report.history import FORMATS  # noqa: PLC0415 - same

    wanted = known_formats([*comma_separated(formats), *(["html"] if show else [])], [*FORMATS])
    kept.check()
    demand, chosen = gates.demand(), rules.settings(*where)
    file = kept.file(chosen)
    known, applied = read(file), book(chosen)
    titles = {rule.name: rule.doc.title for rule in applied.known}
    runs, unread = _read(where, applied)
    runs = of_program(runs, program) if program else runs
    known = _with_baselines(known, kept, applied)
    made = of_runs(runs, known, demand, titles, unread)
    if kept.accept:
        known = _with_accepted(known, kept, made)
        made = of_runs(runs, known, demand, titles, unread)
    _keep(known, file, kept)
    _write(made, out or Path(), wanted, show=show)
    raise typer.Exit(FOUND if made.failed else UNDECIDED if made.undecided else 0)


def _read(where: Sequence[str], applied: "Rulebook") -> tuple[list["ReadRun"], list[tuple[str, str]]]:
    """Return the runs at these places, and the places that cannot be read, with why.

    Raises:
        InputError: there is nothing, or nothing of it can be read.
    """
    from tfdoctor.fleet.places import found  # noqa: PLC0415 - an optional dependency of others there
    from tfdoctor.history.runs import ReadRun, read_all  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.terms.progress_line import line  # noqa: PLC0415 - keeps --help fast

    def examine(recording: "Recording", title: str) -> "Diagnosis":
        return untried(recording, title, applied)

    with line("looking for runs …", sys.stderr):
        places, empty = found(where)
    for place in empty:
        say(f"note: no run at {place}")
    runs, unread = [], []
    with line(f"reading {len(places):,} runs …", sys.stderr):
        for place, read in read_all(places, examine, applied.known):
            if isinstance(read, InputError):
                unread.append((place, str(read)))
            else:
                runs.append(ReadRun.of(place, read))
    if not runs:
        raise unread_error(unread)
    return runs, unread


def unread_error(unread: Sequence[tuple[str, str]]) -> InputError:
    """Return the error of the first place, with how many others there are."""
    (_, why), *others = unread
    return InputError(f"{why} None of {len(others) + 1} runs can be read." if others else why)


def _with_baselines(known: "KeptHistory", kept: KeptOptions, applied: "Rulebook") -> "KeptHistory":
    from tfdoctor.history.kept import named  # noqa: PLC0415 - keeps --help fast

    for text in kept.name_baseline or ():
        name, _, place = text.partition("=")
        runs, _ = _read([place], applied)
        if len(runs) > 1:
            raise InputError(f"{place} has {len(runs)} runs: name one of them for {name!r}.")
        known = known.with_baseline(named(name, runs[0]))
    return known


def _with_accepted(known: "KeptHistory", kept: KeptOptions, made: "History") -> "KeptHistory":
    from tfdoctor.history.kept import accepted  # noqa: PLC0415 - keeps --help fast

    by = kept.by.strip() or _user()
    for text in kept.accept or ():
        what, _, commit = text.rpartition("@")
        known = known.with_accepted(accepted(what, commit, made.series, by=by, why=kept.why.strip()))
    return known


def _user() -> str:
    """Return git's name of the user.

    Raises:
        typer.BadParameter: git has none.
    """
    from tfdoctor.capture.revision import user  # noqa: PLC0415 - keeps --help fast

    name = user(Path())
    if not name:
        raise typer.BadParameter("git knows no user.name: add --by NAME")
    return name


def _keep(known: "KeptHistory", file: Path, kept: KeptOptions) -> None:
    from tfdoctor.history.kept import write  # noqa: PLC0415 - keeps --help fast

    if kept.accept or kept.name_baseline:
        write(known, file)
        typer.echo(f"wrote {file}", err=True)


def _write(made: "History", folder: Path, formats: list[str], *, show: bool) -> None:
    from tfdoctor.report.history import terminal, write  # noqa: PLC0415 - brings rich

    written = write(made, folder, formats) if formats else ()
    draw(terminal.render(made).rstrip("\n"))
    tell_files(written, show=show)
