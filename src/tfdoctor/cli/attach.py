"""``tfdoctor attach``: trace running jobs and report on them."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tfdoctor.cli.amounts import parse_seconds
from tfdoctor.cli.gates import Gates, KnownFindings
from tfdoctor.cli.options import Fail, Formats, Scrub, parse_formats, parse_out
from tfdoctor.cli.outcome import Output, diagnose, exit_code, without_names, write
from tfdoctor.cli.rule_selection import RuleOptions, book


def attach(  # noqa: PLR0913 - its arguments are the command's options
    *,
    addresses: Annotated[
        str,
        typer.Argument(
            metavar="HOST:PORT[,HOST:PORT]...",
            help="Addresses of the profiler servers of the job's workers, each started with "
            "tf.profiler.experimental.server.start(PORT).",
        ),
    ],
    seconds: Annotated[
        float,
        typer.Option("--for", metavar="TIME", parser=parse_seconds, help="Trace for this long: 2s, 500ms, 1m."),
    ] = "2s",  # type: ignore[assignment] # typer parses the default as it does the argument
    out: Annotated[
        Path | None,
        typer.Option(
            parser=parse_out, metavar="PATH", help="Folder for the recording [default: runs/attach-TIME]."
        ),
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Record without a report.")] = False,
    formats: Formats = "html,json",
    fail_on: Fail = None,
    baseline: KnownFindings = None,
    rules: RuleOptions,
    scrub: Scrub = False,
) -> None:
    """Trace running jobs, all at the same time, and report what slows them.

    Workers that cannot be reached are listed; the others are still traced. TensorFlow's profiler can crash
    workers that exchange gradients: save a checkpoint first.
    """
    from tfdoctor.capture.attach import attach as capture  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.terms.progress_line import line  # noqa: PLC0415 - same

    output, chosen = Output(parse_formats(formats), scrubbed=scrub), rules.settings()
    applied = book(chosen)  # errors in it show before anything is traced
    gates = Gates.of(chosen, fail_on, baseline)
    recording = capture(addresses, seconds, out, stderr=sys.stderr)
    if no_report:
        return
    with line("reading the trace …", sys.stderr):
        diagnosis = diagnose(recording, addresses, applied, gates, formats=output.formats)
    diagnosis = without_names(diagnosis, recording) if scrub else diagnosis
    write(diagnosis, recording.root or Path(), output)
    raise typer.Exit(exit_code(diagnosis, gates.fail_on))
