"""``tfdoctor report``: report on a recording or a trace, or write a stored report in other formats."""

from contextlib import nullcontext
from pathlib import Path

import typer

from tfdoctor.cli.commands import ReportOptions
from tfdoctor.cli.gates import exit_code, gates
from tfdoctor.cli.options import book
from tfdoctor.cli.patching import check_target, write_patch
from tfdoctor.cli.streams import say
from tfdoctor.cli.values import must_be_files, parse_formats, parse_link
from tfdoctor.compare.baseline import program_of, program_of_report
from tfdoctor.recording import Recording
from tfdoctor.remote.fetching import is_copy
from tfdoctor.rulebook.config import Config
from tfdoctor.stored.files import NAMES, open_report, report_at
from tfdoctor.trace.xprof import Asked


def report(given: ReportOptions) -> int:
    """Write the reports of a recording or a stored report, and return the exit code."""
    wanted, chosen = parse_formats(given.formats, show=given.show), given.rules.settings(given.path)
    must_be_files(wanted, given.out)
    link = parse_link(given.link, wanted)
    if stored := report_at(given.path):
        return _again(stored, given, chosen, wanted, link)
    recording = Recording.open(given.path)
    # xprof is asked about the trace of one host; of several, later about one that is not known yet.
    alone = len(recording.traces) == 1 and len(recording.workers) <= 1
    with Asked(recording.traces[0]) if alone else nullcontext() as asked:
        from tfdoctor.cli import outcome  # noqa: PLC0415 - takes as long as xprof does

        applied, demands = book(chosen), gates(given.demands, chosen)
        demands.check(program_of(recording))
        if given.patch and given.patch != "-":
            check_target(Path(given.patch))
        read, title = outcome.noted(recording, quiet=given.scrub), recording.title(given.path)
        diagnosis = outcome.diagnose(
            read, title, applied, demands, given.savings, formats=wanted, asked=asked, says=True
        )
    patch = diagnosis.patch  # of the user's own lines, also where the reports have none of them
    diagnosis = outcome.without_names(diagnosis, recording) if given.scrub else diagnosis
    folder = given.out or (None if recording.root is None or is_copy(recording.root) else recording.root)
    prefix = "" if folder else "tfdoctor-"  # there a report is one file among others
    output = outcome.Output(wanted, link, scrubbed=given.scrub, show=given.show, err=given.patch == "-")
    outcome.write(diagnosis, folder or Path(), output, prefix)
    if given.patch is not None:
        write_patch(diagnosis, patch, given.patch)
    demands.write(diagnosis, program_of(recording))
    return exit_code(diagnosis, demands.fail_on)


def _again(path: Path, given: ReportOptions, chosen: Config, wanted: list[str], link: str) -> int:
    """Write a stored report in these formats; budgets are those of the settings, if any."""
    from tfdoctor.cli import outcome  # noqa: PLC0415 - as above

    _must_need_no_recording(given)
    diagnosis = open_report(path, book(chosen).known)
    program, demands = program_of_report(diagnosis), gates(given.demands, chosen)
    demands.check(program)
    if given.patch and given.patch != "-":
        check_target(Path(given.patch))
    diagnosis = demands.applied(diagnosis)
    prefix = "" if given.out or path.name in NAMES else f"{path.name.partition('.')[0]}-"
    folder = given.out or path.parent
    kept = [name for name in wanted if folder / f"{prefix}report.{name}" != path]
    if len(kept) < len(wanted):
        say(f"{path} is the report that is read, and stays as it is: --out names another folder")
    output = outcome.Output(kept, link, show=given.show, err=given.patch == "-")
    outcome.write(diagnosis, folder, output, prefix)
    if given.patch is not None:
        write_patch(diagnosis, diagnosis.patch, given.patch)
    demands.write(diagnosis, program)
    return exit_code(diagnosis, demands.fail_on)


def _must_need_no_recording(given: ReportOptions) -> None:
    """Refuse options that only a recording can be examined by."""
    rules, savings, why = given.rules, given.savings, "a stored report is not examined again"
    for name, value in {
        "--select": rules.select,
        "--ignore": rules.ignore,
        "--scrub": given.scrub,
        "--usd-per-hour": savings.usd_per_hour,
        "--usd-per-kwh": savings.usd_per_kwh,
        "--gco2-per-kwh": savings.gco2_per_kwh,
        "--for-epochs": savings.for_epochs,
    }.items():
        if value or isinstance(value, float):  # a price of 0 is one
            why = "a stored report does not say which of its words are names" if name == "--scrub" else why
            raise typer.BadParameter(f"{name} needs the recording: {why}; run `tfdoctor report RECORDING {name}`")
