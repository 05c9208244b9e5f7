"""``tfdoctor profile``: run a script and report on it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tfdoctor.cli.options import Fail, Formats, parse_formats
from tfdoctor.cli.reporting import report_after


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

    wanted = parse_formats(formats)
    plan = Plan(script, tuple(args or ()), out, python, steps, warmup, stop_after, sample_every)
    outcome = capture(plan, stderr=sys.stderr)
    code = outcome.exit_code
    if not no_report:
        found = report_after(outcome.recording, Path(script).name, wanted, fail_on)
        code = code or found
    raise typer.Exit(code)
