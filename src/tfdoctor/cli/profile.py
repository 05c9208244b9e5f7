"""``tfdoctor profile``: run a script and report on it."""

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdoctor.cli.amounts import parse_seconds
from tfdoctor.cli.gates import GateOptions
from tfdoctor.cli.messages import say
from tfdoctor.cli.options import Formats, SavingOptions, Scrub, Show, at_least, parse_formats, parse_out
from tfdoctor.cli.outcome import Output, report_after
from tfdoctor.cli.profile_parser import COMMAND
from tfdoctor.cli.rule_selection import RuleOptions, book, untouched
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.terms.errors import InputError, LostRecordingError

if TYPE_CHECKING:
    from tfdoctor.capture import Kind, Plan


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """What to record of a run, and where."""

    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module instead of a script.")
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            parser=parse_out,
            metavar="PATH",
            help="Folder for the recording [default: runs/SCRIPT-TIME]; the workers of a job can share one.",
        ),
    ] = None
    python: Annotated[str | None, typer.Option(help="Python interpreter for the script.")] = None
    steps: Annotated[int, typer.Option(parser=at_least(1), metavar="N", help="Training steps to trace.")] = 20
    warmup: Annotated[
        int, typer.Option(parser=at_least(0), metavar="N", help="Training steps before tracing starts.")
    ] = 10
    seconds: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="TIME",
            parser=parse_seconds,
            help="Trace for this long (2s, 500ms, 1m) instead of --steps, for jobs without visible steps.",
        ),
    ] = None
    stop_after: Annotated[bool, typer.Option("--stop-after", help="End the run after tracing.")] = False
    no_trace: Annotated[
        bool,
        typer.Option(
            "--no-trace",
            help="Record only the account of the whole run, without a trace of its steps: for production, and for "
            "programs that never train.",
        ),
    ] = False
    sample_every: Annotated[
        int,
        typer.Option(
            parser=at_least(0), metavar="MS", help="Period for sampling the machine; 0 turns sampling off."
        ),
    ] = 200

    def plan(self, kind: "Kind", script: str, args: tuple[str, ...], *, quiet: bool) -> "Plan":
        """Return the plan of a recording of a command."""
        from tfdoctor.capture import Plan  # noqa: PLC0415 - keeps --help fast

        return Plan(
            script=script,
            args=args,
            kind=kind,
            out=self.out,
            python=self.python,
            steps=self.steps,
            warmup=self.warmup,
            seconds=self.seconds,
            stop_after=self.stop_after,
            trace=not self.no_trace,
            sample_every_ms=self.sample_every,
            quiet=quiet,
        )


def profile(  # noqa: PLR0913 - its arguments are the command's options
    ctx: typer.Context,
    *,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT [ARGS]...",
            help="Training script and its arguments. After `--`, any program that starts Python: "
            "`-- bash run.sh`, `-- mpirun -n 2 python train.py`.",
        ),
    ] = None,
    recording: RecordingOptions,
    no_report: Annotated[bool, typer.Option("--no-report", help="Record without a report.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    formats: Formats = "html,json",
    demands: GateOptions,
    rules: RuleOptions,
    savings: SavingOptions,
    show: Show = False,
    scrub: Scrub = False,
) -> None:
    """Run an unmodified script, trace some of its training steps, and report what slows them and the run.

    The exit code is that of the script. Where that is 0, it is 3 if a gate fails, and 4 if one is undecided.
    """
    from tfdoctor.capture import profile as capture  # noqa: PLC0415 - keeps --help fast

    wanted, chosen = parse_formats(formats, show=show), rules.settings()
    output = Output(wanted, quiet=quiet, scrubbed=scrub, show=show, err=True)
    applied = None if untouched(chosen) else book(chosen)  # errors in it show before the run
    for name, given in (
        ("--write-baseline", demands.write_baseline),
        ("--baseline", demands.baseline),
        ("--fail-on", demands.fail_on),
        ("--fail-on-roofline", demands.fail_on_roofline),
    ):
        if no_report and given:
            raise typer.BadParameter(f"{name} needs the report: leave --no-report out")
    if recording.no_trace:
        _must_not_trace(ctx)
    gates = demands.gates(chosen)
    if no_report and gates.set:
        say("note: with --no-report, budgets and fail-on are not checked")
    kind, script, args = what(ctx, recording.module, command or [])
    gates.check(Path(script).name)
    plan = recording.plan(kind, script, args, quiet=quiet)
    try:
        outcome = capture(plan, stderr=sys.stderr)
    except LostRecordingError as error:
        say(str(error))
        unchecked = gates.set or demands.write_baseline is not None
        raise typer.Exit(error.script_code or (error.exit_code if unchecked else 0)) from None
    code = outcome.exit_code
    _save(recording.out)
    if not no_report:
        title = outcome.recording.invocation or plan.name
        applied = applied or book(chosen)
        failed = report_after(outcome.recording, title, applied, gates, output, savings)
        code = code or failed
    raise typer.Exit(code)


def _save(out: Path | None) -> None:
    """Upload a recording before the report is made: a scheduler that stops the job may not wait for that."""
    # It is tried again at the end, which then says why it failed.
    with contextlib.suppress(InputError):
        if out:
            UPLOADS.save(out)


# The options that say what to trace.
TRACING = {"steps": "--steps", "warmup": "--warmup", "seconds": "--for", "stop_after": "--stop-after"}


def _must_not_trace(ctx: typer.Context) -> None:
    """Refuse options that say what to trace where nothing is.

    Raises:
        BadParameter: one was given.
    """
    for name, option in TRACING.items():
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"--no-trace traces no steps: leave {option} out")


def what(ctx: typer.Context, module: str | None, command: list[str]) -> tuple["Kind", str, tuple[str, ...]]:
    """Return the kind of command to run (script, module, program), its name and its arguments."""
    from tfdoctor.capture import Kind  # noqa: PLC0415 - keeps --help fast

    if module is not None:
        return Kind.MODULE, module, tuple(command)
    if not command:
        raise typer.BadParameter("name the training script", ctx, param_hint="SCRIPT")
    _must_be_no_report(Path(command[0]), ctx.command_path)
    kind = Kind.COMMAND if ctx.meta.get(COMMAND) else Kind.SCRIPT
    return kind, command[0], tuple(command[1:])


def _must_be_no_report(path: Path, command: str) -> None:
    """Refuse a stored report in place of a program: Python would run JSON as an empty script.

    Raises:
        BadParameter: it is one.
    """
    from tfdoctor.recording.files import MANIFEST  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.stored.files import is_report  # noqa: PLC0415 - same

    if not is_report(path):
        return
    folder = path.parent
    recording = str(folder) if (folder / MANIFEST).is_file() else "RECORDING"
    instead = f"`tfdoctor try {recording}`" if command.endswith(" try") else "the training script"
    raise typer.BadParameter(f"{path} is a report, which holds no program: give {instead}")
