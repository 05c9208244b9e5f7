"""``tfdoctor report``: report on a recording or a trace."""

from pathlib import Path
from typing import Annotated

import typer

from tfdoctor.cli.gates import GateOptions
from tfdoctor.cli.options import (
    Formats,
    Link,
    SavingOptions,
    Scrub,
    Show,
    must_be_files,
    parse_formats,
    parse_link,
    parse_out,
    parse_path,
)
from tfdoctor.cli.outcome import Output, ask_xprof, diagnose, exit_code, noted, without_names, write
from tfdoctor.cli.patching import check_target, write_patch
from tfdoctor.cli.rule_selection import RuleOptions, book
from tfdoctor.cli.stored_report import must_need_no_recording, report_again


def report(  # noqa: PLR0913 - its arguments are the command's options
    *,
    path: Annotated[
        Path,
        typer.Argument(
            parser=parse_path,
            metavar="PATH",
            help="A recording, a folder above several (the newest is shown), a TensorBoard log directory, a run "
            "folder, an *.xplane.pb file, or a report.json, or a folder with only that, to write in other formats: "
            "without --select, --ignore, --scrub, --usd-per-hour, --usd-per-kwh, --gco2-per-kwh and --for-epochs, "
            "which need the recording.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            parser=parse_out,
            metavar="PATH",
            help="Folder for the reports [default: the recording; otherwise the current folder, as "
            "tfdoctor-report.html and so on].",
        ),
    ] = None,
    formats: Formats = "html,json",
    demands: GateOptions,
    rules: RuleOptions,
    savings: SavingOptions,
    patch: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Also write the changes that can be applied automatically as a diff for git apply; - is stdout.",
        ),
    ] = None,
    link: Link = "",
    show: Show = False,
    scrub: Scrub = False,
) -> None:
    """Report what slows a run recorded by tfdoctor or by any TensorFlow profiler."""
    from tfdoctor.recording import Recording  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.remote.fetching import is_copy  # noqa: PLC0415 - same
    from tfdoctor.stored.files import report_at  # noqa: PLC0415 - same

    wanted, chosen = parse_formats(formats, show=show), rules.settings(path)
    must_be_files(wanted, out)
    output = Output(wanted, parse_link(link, wanted), scrubbed=scrub, show=show, err=patch == "-")
    if stored := report_at(path):
        needing: dict[str, object] = {
            "--select": rules.select,
            "--ignore": rules.ignore,
            "--scrub": scrub,
            "--usd-per-hour": savings.usd_per_hour,
            "--usd-per-kwh": savings.usd_per_kwh,
            "--gco2-per-kwh": savings.gco2_per_kwh,
            "--for-epochs": savings.for_epochs,
        }
        must_need_no_recording(needing)
        again = report_again(stored, chosen, output, demands, out=out, patch=patch)
        raise typer.Exit(again)
    recording = Recording.open(path)
    with ask_xprof(recording) as asked:
        # The imports from here on take as long as xprof does.
        from tfdoctor.compare.baseline import program_of  # noqa: PLC0415 - same

        applied = book(chosen)
        gates = demands.gates(chosen)
        gates.check(program_of(recording))
        if patch and patch != "-":
            check_target(Path(patch))
        diagnosis = diagnose(
            noted(recording, quiet=scrub),
            recording.title(path),
            applied,
            gates,
            savings,
            formats=wanted,
            asked=asked,
            says=True,
        )
    patched = diagnosis.patch  # of the user's own lines, also where the reports have none of them
    diagnosis = without_names(diagnosis, recording) if scrub else diagnosis

    folder = out or (None if recording.root is None or is_copy(recording.root) else recording.root)
    prefix = "" if folder else "tfdoctor-"  # there a report is one file among others
    write(diagnosis, folder or Path(), output, prefix)
    if patch is not None:
        write_patch(diagnosis, patched, patch)
    gates.write(diagnosis, program_of(recording))
    raise typer.Exit(exit_code(diagnosis, gates.fail_on))
