"""``tfdoctor profile``: run a script and report on it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdoctor.cli.choosing import (
    ConfigFile,
    Ignore,
    OwnRules,
    Select,
    book,
    failing,
    settings,
    untouched,
)
from tfdoctor.cli.command_line import COMMAND
from tfdoctor.cli.durations import parse_seconds
from tfdoctor.cli.options import Fail, Formats, Scrub, UsdPerHour, parse_formats
from tfdoctor.cli.reporting import report_after

if TYPE_CHECKING:
    from tfdoctor.capture import Kind


def profile(  # noqa: PLR0913 - its arguments are the command's options
    ctx: typer.Context,
    *,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT [ARGS]...",
            help="The training script; what follows belongs to it. After `--`, any program that starts "
            "Python: `-- bash run.sh`, `-- mpirun -n 2 python train.py`.",
        ),
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module instead of a script.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to record [default: runs/SCRIPT-TIME]; the workers of a job may share it."
        ),
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="The interpreter to run the script with.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Training steps to trace.")] = 20,
    warmup: Annotated[int, typer.Option(min=0, help="Training steps to let pass first.")] = 10,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="TIME",
            parser=parse_seconds,
            help="Trace so long (2s, 500ms, 1m) instead of a number of steps, for jobs with no visible step.",
        ),
    ] = None,
    stop_after: Annotated[
        bool, typer.Option("--stop-after", help="End the run once the trace is taken.")
    ] = False,
    sample_every: Annotated[
        int, typer.Option(min=0, metavar="MS", help="Sample the machine; 0 turns it off.")
    ] = 200,
    no_report: Annotated[bool, typer.Option("--no-report", help="Record only.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but what went wrong.")
    ] = False,
    formats: Formats = "html,json",
    fail_on: Fail = None,
    config: ConfigFile = None,
    select: Select = None,
    ignore: Ignore = None,
    rules: OwnRules = None,
    usd_per_hour: UsdPerHour = None,
    scrub: Scrub = False,
) -> None:
    """Run a training script as it is, trace some of its steps, and report what slows them.

    The exit code is the script's own.
    """
    from tfdoctor.capture import Plan  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.capture import profile as capture  # noqa: PLC0415 - same

    wanted, chosen = parse_formats(formats), settings(config, select, ignore, rules)
    applied = None if untouched(chosen) else book(chosen)  # a fault in it is told before the run
    kind, script, args = _what(ctx, module, command or [])
    plan = Plan(
        script=script,
        args=args,
        kind=kind,
        out=out,
        python=python,
        steps=steps,
        warmup=warmup,
        seconds=seconds,
        stop_after=stop_after,
        sample_every_ms=sample_every,
        quiet=quiet,
    )
    outcome = capture(plan, stderr=sys.stderr)
    code = outcome.exit_code
    if not no_report:
        title = Path(script).name if kind == "script" else plan.name
        fail = failing(fail_on, chosen)
        found = report_after(
            outcome.recording,
            title,
            wanted,
            fail,
            applied or book(chosen),
            quiet=quiet,
            scrubbed=scrub,
            price=usd_per_hour,
        )
        code = code or found
    raise typer.Exit(code)


def _what(
    ctx: typer.Context, module: str | None, command: list[str]
) -> tuple["Kind", str, tuple[str, ...]]:
    """Return what is to be run: a script, a module or a program, and its arguments."""
    from tfdoctor.capture import Kind  # noqa: PLC0415 - keeps --help fast

    if module is not None:
        return Kind.MODULE, module, tuple(command)
    if not command:
        raise typer.BadParameter("name the script that trains", ctx, param_hint="SCRIPT")
    kind = Kind.COMMAND if ctx.meta.get(COMMAND) else Kind.SCRIPT
    return kind, command[0], tuple(command[1:])
