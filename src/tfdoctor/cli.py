"""The command line: parse, call, print; no logic.

Heavy imports stay inside the commands, so that ``--help`` answers at once.
"""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdoctor import __version__
from tfdoctor.errors import TfdoctorError
from tfdoctor.report import Format

if TYPE_CHECKING:
    from tfdoctor.diagnosis import Diagnosis
    from tfdoctor.recording import Recording

FOUND = 3
"""Exit code when ``--fail-on`` is reached and nothing else went wrong."""


class FailOn(StrEnum):
    """From which severity on a finding makes the command fail."""

    NOTE = "note"
    WARNING = "warning"
    CRITICAL = "critical"


app = typer.Typer(
    name="tfdoctor",
    help="Say what slows a TensorFlow training run, on which line, and what changing it saves.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)

Formats = Annotated[
    str,
    typer.Option(
        "--format", metavar="LIST", help="What to write: html, json, md, separated by commas."
    ),
]
Fail = Annotated[
    FailOn | None,
    typer.Option(
        help="Exit with 3 when a finding of this severity or above is there (doubts about the recording apart)."
    ),
]


def main() -> None:
    """Run the command line; a fault the user can mend is one sentence and an exit code."""
    try:
        app(standalone_mode=True)
    except TfdoctorError as error:
        typer.echo(f"tfdoctor: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:  # a full disk behind the standard output, say
        typer.echo(f"tfdoctor: {error.filename or 'output'}: {error.strerror}.", err=True)
        sys.exit(TfdoctorError.exit_code)


def _version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"tfdoctor {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take the options that belong to no command."""


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})
def profile(  # noqa: PLR0913 - its arguments are the command's options
    *,
    script: Annotated[str, typer.Argument(help="The training script; what follows belongs to it.")],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGS]...", help="The script's arguments.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to record [default: runs/SCRIPT-TIME].")
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="The interpreter to run the script with.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Training steps to trace.")] = 20,
    warmup: Annotated[int, typer.Option(min=0, help="Training steps to let pass first.")] = 10,
    stop_after: Annotated[
        bool, typer.Option("--stop-after", help="End the run once the trace is taken.")
    ] = False,
    sample_every: Annotated[
        int, typer.Option(min=0, metavar="MS", help="Sample the machine; 0 turns it off.")
    ] = 200,
    no_report: Annotated[bool, typer.Option("--no-report", help="Record only.")] = False,
    formats: Formats = "html,json",
    fail_on: Fail = None,
) -> None:
    """Run a training script as it is, trace some of its steps, and report what slows them.

    The exit code is the script's own.
    """
    from tfdoctor.capture import Plan  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.capture import profile as capture  # noqa: PLC0415 - same

    wanted = _formats(formats)
    plan = Plan(script, tuple(args or ()), out, python, steps, warmup, stop_after, sample_every)
    outcome = capture(plan, stderr=sys.stderr)
    code = outcome.exit_code
    if not no_report:
        found = _report_after(outcome.recording, Path(script).name, wanted, fail_on)
        code = code or found
    raise typer.Exit(code)


@app.command()
def report(
    *,
    path: Annotated[
        Path,
        typer.Argument(help="A recording, a TensorBoard logdir, a run folder or an *.xplane.pb."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write to [default: the recording, else the current one]."),
    ] = None,
    formats: Formats = "html,json",
    fail_on: Fail = None,
) -> None:
    """Report what slows a run that was recorded, by tfdoctor or by any TensorFlow profiler."""
    from tfdoctor.recording import Recording  # noqa: PLC0415 - keeps --help fast

    wanted = _formats(formats)
    recording = Recording.open(path)
    for note in recording.notes:
        typer.echo(f"tfdoctor: note: {note}", err=True)
    diagnosis = _diagnose(recording, path.resolve().name)
    folder, prefix = out or recording.root or Path(), "" if recording.root else "tfdoctor-"
    _write(diagnosis, folder, wanted, prefix)
    raise typer.Exit(exit_code(diagnosis, fail_on))


def _formats(text: str) -> list[Format]:
    names = [name.strip() for name in text.split(",") if name.strip()] or [text]
    unknown = [name for name in names if name not in set(Format)]
    if unknown:
        known = ", ".join(Format)
        raise typer.BadParameter(f"{unknown[0]!r} is none of {known}", param_hint="--format")
    return [Format(name) for name in dict.fromkeys(names)]


def _report_after(
    recording: "Recording", title: str, formats: list[Format], fail_on: FailOn | None
) -> int:
    """Report on a run that has ended; a fault here must not hide how the script itself ended."""
    try:
        diagnosis = _diagnose(recording, title)
        _write(diagnosis, recording.root or Path(), formats, err=True)
    except TfdoctorError as error:
        typer.echo(f"tfdoctor: {error}", err=True)
        return error.exit_code
    return exit_code(diagnosis, fail_on)


def _diagnose(recording: "Recording", title: str) -> "Diagnosis":
    from tfdoctor.diagnose import diagnose  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.rules import all_rules  # noqa: PLC0415 - same

    return diagnose(recording, all_rules(), title)


def _write(
    diagnosis: "Diagnosis",
    folder: Path,
    formats: list[Format],
    prefix: str = "",
    *,
    err: bool = False,
) -> None:
    from tfdoctor.report import terminal  # noqa: PLC0415 - brings rich
    from tfdoctor.report.files import write  # noqa: PLC0415 - same

    written = write(diagnosis, folder, formats, prefix)
    stream = sys.stderr if err else sys.stdout
    typer.echo(terminal.render(diagnosis, color=stream.isatty()), file=stream)
    for path in written:
        typer.echo(f"wrote {path}", file=stream)


def exit_code(diagnosis: "Diagnosis", fail_on: FailOn | None) -> int:
    """Return 3 when a finding about the run is of this severity or above, else 0."""
    if fail_on is None:
        return 0
    from tfdoctor.rule import Topic  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.verdict import Severity  # noqa: PLC0415 - same

    limit = Severity[fail_on.name]
    reached = any(
        result.severity is not None and result.severity >= limit
        for result in diagnosis.results
        if result.rule.topic is not Topic.RECORDING  # a busy machine is no fault of the run
    )
    return FOUND if reached else 0
