"""``tfdoctor profile``: run a script and report on it; ``tfdoctor attach``: the same of running jobs."""

import contextlib
import sys
from pathlib import Path

import typer

from tfdoctor.capture import Kind, Plan
from tfdoctor.capture import profile as capture
from tfdoctor.cli.commands import AttachOptions, ProfileOptions
from tfdoctor.cli.gates import exit_code, gates
from tfdoctor.cli.options import GateOptions, SavingOptions, book
from tfdoctor.cli.profile_parser import COMMAND
from tfdoctor.cli.streams import say
from tfdoctor.cli.values import parse_formats
from tfdoctor.recording.files import MANIFEST
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.rulebook.config import Config
from tfdoctor.stored.files import is_report
from tfdoctor.terms.errors import InputError, LostRecordingError
from tfdoctor.terms.progress_line import line

# The options that say what to trace.
TRACING = {"steps": "--steps", "warmup": "--warmup", "seconds": "--for", "stop_after": "--stop-after"}


def profile(given: ProfileOptions) -> int:
    """Run a script and report on it; return its exit code, or that of the report."""
    recording, demanded = given.recording, given.demands
    wanted, chosen = parse_formats(given.formats, show=given.show), given.rules.settings()
    applied = None if chosen == Config() else book(chosen)  # errors in it show before the run
    for name in ("write_baseline", "baseline", "fail_on", "fail_on_roofline"):
        if given.no_report and getattr(demanded, name):
            raise typer.BadParameter(f"--{name.replace('_', '-')} needs the report: leave --no-report out")
    for name, option in TRACING.items() if recording.no_trace else ():
        source = given.ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"--no-trace traces no steps: leave {option} out")
    demands = gates(demanded, chosen)
    if given.no_report and demands.set:
        say("note: with --no-report, budgets and fail-on are not checked")
    kind, script, args = what(given.ctx, recording.module, given.command or [])
    demands.check(Path(script).name)
    plan = Plan(
        script=script,
        args=args,
        kind=kind,
        out=recording.out,
        python=recording.python,
        steps=recording.steps,
        warmup=recording.warmup,
        seconds=recording.seconds,
        stop_after=recording.stop_after,
        trace=not recording.no_trace,
        sample_every_ms=recording.sample_every,
        quiet=given.quiet,
    )
    try:
        ended = capture(plan, stderr=sys.stderr)
    except LostRecordingError as error:
        say(str(error))
        unchecked = demands.set or demanded.write_baseline is not None
        return error.script_code or (error.exit_code if unchecked else 0)
    if recording.out:
        # Before the report is made: a scheduler that stops the job may not wait for that. It is tried again at the
        # end, which then says why it failed.
        with contextlib.suppress(InputError):
            UPLOADS.save(recording.out)
    if given.no_report:
        return ended.exit_code
    from tfdoctor.cli import outcome  # noqa: PLC0415 - the script does not wait for it

    title, applied = ended.recording.invocation or plan.name, applied or book(chosen)
    output = outcome.Output(wanted, quiet=given.quiet, scrubbed=given.scrub, show=given.show, err=True)
    failed = outcome.report_after(ended.recording, title, applied, demands, output, given.savings)
    return ended.exit_code or failed


def what(ctx: typer.Context, module: str | None, command: list[str]) -> tuple[Kind, str, tuple[str, ...]]:
    """Return the kind of command to run (script, module, program), its name and its arguments."""
    if module is not None:
        return Kind.MODULE, module, tuple(command)
    if not command:
        raise typer.BadParameter("name the training script", ctx, param_hint="SCRIPT")
    path = Path(command[0])
    if is_report(path):  # Python would run JSON as an empty script
        recording = str(path.parent) if (path.parent / MANIFEST).is_file() else "RECORDING"
        tries = ctx.command_path.endswith(" try")
        instead = f"`tfdoctor try {recording}`" if tries else "the training script"
        raise typer.BadParameter(f"{path} is a report, which holds no program: give {instead}")
    kind = Kind.COMMAND if ctx.meta.get(COMMAND) else Kind.SCRIPT
    return kind, command[0], tuple(command[1:])


def attach(given: AttachOptions) -> int:
    """Trace running jobs and report on them; return the exit code."""
    from tfdoctor.capture.attach import attach as trace  # noqa: PLC0415 - `profile` has no need of it
    from tfdoctor.cli import outcome  # noqa: PLC0415 - as above

    wanted, chosen = parse_formats(given.formats), given.rules.settings()
    applied = book(chosen)  # errors in it show before anything is traced
    demands = gates(GateOptions(fail_on=given.fail_on, baseline=given.baseline), chosen)
    recording = trace(given.addresses, given.seconds, given.out, stderr=sys.stderr)
    if given.no_report:
        return 0
    with line("reading the trace …", sys.stderr):
        diagnosis = outcome.diagnose(recording, given.addresses, applied, demands, SavingOptions(), formats=wanted)
    diagnosis = outcome.without_names(diagnosis, recording) if given.scrub else diagnosis
    outcome.write(diagnosis, recording.root or Path(), outcome.Output(wanted, scrubbed=given.scrub))
    return exit_code(diagnosis, demands.fail_on)
