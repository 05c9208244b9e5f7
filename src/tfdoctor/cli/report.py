"""``tfdoctor report``: report on a recording or a trace, or write a stored report in other formats.

With ``--patch``, the changes that tfdoctor can apply by itself are written too, as one diff.
"""

import sys
from contextlib import nullcontext
from pathlib import Path

import typer

from tfdoctor.cli.commands import ReportOptions
from tfdoctor.cli.gates import Gates, gates
from tfdoctor.cli.options import book
from tfdoctor.cli.streams import say
from tfdoctor.cli.values import must_be_files, parse_formats, parse_link
from tfdoctor.compare.baseline import program_of, program_of_report
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.recording import Recording
from tfdoctor.remote.fetching import is_copy
from tfdoctor.rulebook.config import Config
from tfdoctor.stored.files import NAMES, open_report, report_at
from tfdoctor.terms import text
from tfdoctor.terms.errors import OutputError
from tfdoctor.terms.replacement import content_to_replace, replace_file, writing
from tfdoctor.terms.verdict import Finding
from tfdoctor.trace.xprof import Asked

PATCHES = (b"--- ", b"diff --git ")  # Start of a file that may be overwritten
ANOTHER = "choose another file for the patch"


Read = tuple[Diagnosis, Recording | None, Gates, Path, str]  # with the folder of its reports, and their prefix


def report(given: ReportOptions) -> int:
    """Write the reports of a recording or a stored report, and return the exit code."""
    formats, chosen = parse_formats(given.formats, show=given.show), given.rules.settings(given.path)
    must_be_files(formats, given.out)
    if given.patch is not None:  # what could not be written in the end
        check_target(given.patch)
    link, stored = parse_link(given.link, formats), report_at(given.path)
    diagnosis, recording, demands, folder, prefix = (
        _again(stored, given, chosen) if stored else _examined(given, chosen, formats)
    )
    from tfdoctor.cli import outcome  # noqa: PLC0415 - takes as long as xprof does, which is asked before

    kept = [name for name in formats if folder / f"{prefix}report.{name}" != stored]
    if len(kept) < len(formats):
        say(f"{stored} is the report that is read, and stays as it is: --out names another folder")
    output = outcome.Output(kept, link, scrubbed=given.scrub, show=given.show, err=given.patch == "-")
    shown = output.safe(diagnosis, recording)
    output.write(shown, folder, prefix)
    if given.patch is not None:  # of the user's own lines, also where the reports have none of them
        write_patch(shown, diagnosis.patch, given.patch)
    return demands.end(shown)


def _examined(given: ReportOptions, chosen: Config, formats: list[str]) -> Read:
    recording = Recording.open(given.path)
    # xprof is asked about the trace of one host; of several, later about one that is not known yet.
    alone = len(recording.traces) == 1 and len(recording.workers) <= 1
    with Asked(recording.traces[0]) if alone else nullcontext() as asked:
        from tfdoctor.cli import outcome  # noqa: PLC0415 - same

        applied, demands = book(chosen), gates(given.demands, chosen).of(program_of(recording))
        read, title = outcome.noted(recording, quiet=given.scrub), recording.title(given.path)
        diagnosis = outcome.diagnose(
            read, title, applied, demands, given.savings, formats=formats, asked=asked, says=True
        )
    folder = given.out or (None if recording.root is None or is_copy(recording.root) else recording.root)
    # In the current folder a report is one file among others.
    return diagnosis, recording, demands, folder or Path(), "" if folder else "tfdoctor-"


def _again(path: Path, given: ReportOptions, chosen: Config) -> Read:
    """Return a stored report; budgets are those of the settings, if any."""
    of_rules = {"select": given.rules.select, "ignore": given.rules.ignore}
    for field, value in {**of_rules, "scrub": given.scrub, **vars(given.savings)}.items():
        if value or isinstance(value, float):  # a price of 0 is one
            name, why = f"--{field.replace('_', '-')}", "a stored report is not examined again"
            why = "a stored report does not say which of its words are names" if field == "scrub" else why
            raise typer.BadParameter(f"{name} needs the recording: {why}; run `tfdoctor report RECORDING {name}`")
    diagnosis = open_report(path, book(chosen).known)
    demands = gates(given.demands, chosen).of(program_of_report(diagnosis))
    prefix = "" if given.out or path.name in NAMES else f"{path.name.partition('.')[0]}-"
    return demands.applied(diagnosis), None, demands, given.out or path.parent, prefix


def write_patch(diagnosis: Diagnosis, patch: bytes, target: str) -> None:
    """Write the patch of a diagnosis to a file, or to stdout for "-"; list the changes that it lacks, with reasons.

    A patch without changes is not written: a file that exists stays as it is, and a message says so.

    Raises:
        OutputError: the file cannot be written, or has content other than a patch; a patch on stdout would command
            the terminal or the CI runner that shows it.
    """
    for result in diagnosis.results:
        remedies = result.outcome.remedies if isinstance(result.outcome, Finding) else ()
        for remedy, edit in zip(remedies, result.edits, strict=False):
            if edit.missing:
                say(f"not in the patch: {text.prose(f'{result.rule.name}, {remedy.action!r}: {edit.missing}')}")
    if not patch:
        not_written("no change can be applied automatically", target)
    elif target == "-":
        shown = patch.decode(errors="replace")
        if text.harmless(shown) != shown:  # a stored report brings the patch of whoever wrote it
            raise OutputError(
                "The patch has characters that command a terminal or a CI runner: write it to a file with --patch "
                "FILE."
            )
        sys.stdout.flush()
        sys.stdout.buffer.write(patch)
        sys.stdout.buffer.flush()
    else:
        write_file(target, patch)


def not_written(why: str, target: str) -> None:
    """Say why there is no patch to write, and that a file of its name stays as it is."""
    kept = target != "-" and Path(target).exists()
    say(f"no patch was written: {why}{f'; {target} stays as it is' if kept else ''}")


def check_target(target: str) -> None:
    """Check that a file, or stdout for "-", may be written as a patch.

    Raises:
        OutputError: it has no name, has content other than a patch, or cannot be written.
    """
    if not target:
        raise OutputError("--patch needs a file name, or - for standard output.")
    content = b"" if target == "-" else content_to_replace(Path(target), ANOTHER)
    if content and not content.startswith(PATCHES):
        raise OutputError(f"{target} exists and is not a patch: {ANOTHER}.")


def write_file(target: str, patch: bytes, folder: str = "") -> None:
    """Write a patch to a file that is absent, or a patch; say the folder to apply it in, the run's by default.

    Raises:
        OutputError: it cannot be written.
    """
    check_target(target)
    with writing(target, ANOTHER):
        replace_file(Path(target), patch, named=True)
    typer.echo(f"wrote {target}: apply it with `git apply` in {folder or 'the folder of the run'}", err=True)
