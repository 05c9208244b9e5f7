"""``tfdoctor diff``: compare two runs of a program."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdoctor.cli.messages import draw
from tfdoctor.cli.options import (
    FilesBeside,
    FilesFolder,
    Show,
    comma_separated,
    known_formats,
    parse_path,
    parse_percent,
)
from tfdoctor.cli.outcome import FOUND, UNDECIDED, noted, tell_files, untried
from tfdoctor.cli.rule_selection import RuleOptions, book
from tfdoctor.terms.errors import InputError

if TYPE_CHECKING:
    from tfdoctor.compare.compare import Sides
    from tfdoctor.diagnosis import Diagnosis
    from tfdoctor.diagnosis.comparison import RegressionGate, RunComparison
    from tfdoctor.recording import Recording
    from tfdoctor.rulebook.book import Rulebook


def diff(  # noqa: PLR0913 - its arguments are the command's options
    *,
    before: Annotated[
        Path,
        typer.Argument(
            parser=parse_path,
            metavar="BEFORE",
            help="The run before the change: a recording, a trace or its report.json.",
        ),
    ],
    after: Annotated[Path, typer.Argument(parser=parse_path, metavar="AFTER", help="The run after the change.")],
    also_before: Annotated[
        list[Path] | None,
        typer.Option(
            "--before", parser=parse_path, metavar="PATH", help="A further run before the change; can be repeated."
        ),
    ] = None,
    also_after: Annotated[
        list[Path] | None,
        typer.Option(
            "--after", parser=parse_path, metavar="PATH", help="A further run after the change; can be repeated."
        ),
    ] = None,
    max_regression: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Exit with 3 if the step is slower by more than this, such as 5%, at the lower end of the "
            "interval, and with 4 if the interval contains it.",
        ),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Compare the times of runs that are not alike in machine or program.")
    ] = False,
    shares: Annotated[
        bool, typer.Option("--shares", help="Compare shares of the step only, as for unlike machines.")
    ] = False,
    formats: FilesBeside = "",
    out: FilesFolder = None,
    rules: RuleOptions,
    show: Show = False,
) -> None:
    """Compare two runs of a program: the step, its parts, its operations and its findings."""
    from tfdoctor.compare.compare import compare  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.report.comparison import FORMATS  # noqa: PLC0415 - same
    from tfdoctor.report.comparison.words import mismatch  # noqa: PLC0415 - same

    wanted = known_formats([*comma_separated(formats), *(["html"] if show else [])], FORMATS)
    most = parse_percent(max_regression, "--max-regression")
    if most is not None and shares:
        raise typer.BadParameter("--max-regression needs times: leave --shares out")
    if shares and anyway:
        raise typer.BadParameter("--shares and --anyway exclude each other: leave one out")
    read = (before, after, *(also_before or ()), *(also_after or ()))
    applied = book(rules.settings(*read))
    sides = _loaded([before, *(also_before or ())], [after, *(also_after or ())], applied)
    if sides.mismatches and not (anyway or shares):
        differ = "; ".join(map(mismatch, sides.mismatches))
        raise InputError(
            f"the runs are not the same program on the same machine ({differ}): --shares compares the shares of "
            "the step, --anyway the times too."
        )
    comparison = compare(sides, in_ms=not shares, most_regression=most)
    if most is not None and comparison.step is None:  # a gate must not pass unseen
        raise InputError(f"--max-regression cannot be checked: {comparison.missing}.")
    _write(comparison, out or Path(), wanted, show=show)
    raise typer.Exit(_exit_code(comparison.gate))


def _exit_code(gate: "RegressionGate | None") -> int:
    if gate is None:
        return 0
    return FOUND if gate.failed else UNDECIDED if gate.unclear else 0


def _loaded(before: Sequence[Path], after: Sequence[Path], applied: "Rulebook") -> "Sides":
    from tfdoctor.compare.compare import Sides  # noqa: PLC0415 - same
    from tfdoctor.compare.reports import load, must_differ  # noqa: PLC0415 - same
    from tfdoctor.terms.progress_line import late_line  # noqa: PLC0415 - keeps --help fast

    must_differ([*before, *after])

    def examine(recording: "Recording", title: str) -> "Diagnosis":
        return untried(noted(recording), title, applied)

    def one(path: Path) -> "Diagnosis":
        with late_line(f"reading {path} …", sys.stderr):
            return load(path, examine, applied.rules)

    return Sides.of([one(path) for path in before], [one(path) for path in after])


def _write(comparison: "RunComparison", folder: Path, formats: list[str], *, show: bool) -> None:
    from tfdoctor.report.comparison import terminal, write  # noqa: PLC0415 - brings rich

    written = write(comparison, folder, formats) if formats else ()
    draw(terminal.render(comparison).rstrip("\n"))
    tell_files(written, show=show)
