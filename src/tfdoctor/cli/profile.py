"""``tfdoctor profile``: run a script and report on it; ``tfdoctor attach``: the same of running jobs."""

import contextlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfdoctor.capture import Kind, Plan
from tfdoctor.capture import profile as capture
from tfdoctor.cli.commands import AttachOptions, ProfileOptions
from tfdoctor.cli.gates import Gates, gates
from tfdoctor.cli.options import INTERRUPTED, GateOptions, SavingOptions, book
from tfdoctor.cli.profile_parser import COMMAND
from tfdoctor.cli.streams import say
from tfdoctor.cli.values import parse_formats
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.recording import MANIFEST, Recording
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.rulebook.config import Config
from tfdoctor.stored.files import is_report
from tfdoctor.terms.errors import InputError, LostRecordingError, OutputError, TfdoctorError
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.options import TRIAL_MINUTES
from tfdoctor.terms.progress_line import line

if TYPE_CHECKING:
    from tfdoctor.rulebook.book import Rulebook

# The options that say what to trace.
TRACING = {"steps": "--steps", "warmup": "--warmup", "seconds": "--for", "stop_after": "--stop-after"}


def profile(given: ProfileOptions) -> int:
    """Run a script and report on it; return its exit code, or that of the report."""
    demanded, options = given.demands, dict(vars(given.recording))  # by the names that a plan has
    module, no_trace = options.pop("module"), options.pop("no_trace")
    formats, chosen = parse_formats(given.formats, show=given.show), given.rules.settings()
    applied = None if chosen == Config() else book(chosen)  # errors in it show before the run
    for name in ("write_baseline", "baseline", "fail_on", "fail_on_roofline"):
        if given.no_report and getattr(demanded, name):
            raise typer.BadParameter(f"--{name.replace('_', '-')} needs the report: leave --no-report out")
    for name, option in TRACING.items() if no_trace else ():
        source = given.ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"--no-trace traces no steps: leave {option} out")
    demands = gates(demanded, chosen)
    if given.no_report and demands.set:
        say("note: with --no-report, budgets and fail-on are not checked")
    kind, script, args = what(given.ctx, module, given.command or [])
    demands = demands.of(Path(script).name)
    plan = Plan(script, args, kind=kind, trace=not no_trace, quiet=given.quiet, **options)
    try:
        ended = capture(plan, stderr=sys.stderr)
    except LostRecordingError as error:
        say(str(error))
        unchecked = demands.set or demands.target is not None
        return error.script_code or (error.exit_code if unchecked else 0)
    if plan.out:
        # Before the report is made: a scheduler that stops the job may not wait for that. It is tried again at the
        # end, which then says why it failed.
        with contextlib.suppress(InputError):
            UPLOADS.save(plan.out)
    if given.no_report:
        return ended.exit_code
    title = ended.recording.invocation or plan.name
    failed = _report(ended.recording, title, applied or book(chosen), demands, given, formats)
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


def _report(
    recording: Recording, title: str, rules: "Rulebook", gates: Gates, given: ProfileOptions, formats: list[str]
) -> int:
    """Report on a run that has ended; errors here must not hide the exit code of the script."""
    from tfdoctor.cli import outcome  # noqa: PLC0415 - the script does not wait for it

    folder, quiet = recording.root or Path(), given.quiet
    output = outcome.Output(formats, quiet=quiet, scrubbed=given.scrub, show=given.show, err=True)
    try:
        with line("reading the trace …", sys.stderr, quiet=quiet):
            diagnosis = outcome.diagnose(recording, title, rules, gates, given.savings, formats=formats)
        diagnosis = output.safe(diagnosis, recording)
        output.write(diagnosis, folder)
        code = gates.end(diagnosis, quiet=quiet)
    except KeyboardInterrupt:
        say(f"report interrupted: run `tfdoctor report {UPLOADS.shown(folder)}`")
        return INTERRUPTED
    except OutputError as error:  # a full disk, say: the run itself did not fail
        say(str(error))
        return error.exit_code if gates.set or gates.target else 0
    except TfdoctorError as error:
        say(str(error))
        return error.exit_code
    following = next_steps(diagnosis, folder)
    if following and not quiet and not given.scrub:
        typer.echo(following, err=True)
    return code


def next_steps(diagnosis: Diagnosis, folder: Path) -> str:
    """Return how to apply the changes that are edits, and how to measure them; "" where there is none."""
    ready = sum(any(not edit.missing for edit in result.edits) for result in diagnosis.results)
    if not ready:
        return ""
    uploaded, them = UPLOADS.shown(folder), "it" if ready == 1 else "them"
    at = shlex.quote(uploaded)
    # A trial needs a recording on this machine.
    most = f"in at most {TRIAL_MINUTES:g} minutes"
    measures = f", `tfdoctor try {at}` measures {them} {most}" if uploaded == str(folder) else ""
    return (
        f"{counted(ready, 'change').capitalize()} can be applied automatically: `tfdoctor report {at} "
        f"--patch fix.diff` writes {them}{measures}."
    )


def attach(given: AttachOptions) -> int:
    """Trace running jobs and report on them; return the exit code."""
    from tfdoctor.capture.attach import attach as trace  # noqa: PLC0415 - `profile` has no need of it
    from tfdoctor.cli import outcome  # noqa: PLC0415 - as above

    formats, chosen = parse_formats(given.formats), given.rules.settings()
    applied = book(chosen)  # errors in it show before anything is traced
    demands = gates(GateOptions(fail_on=given.fail_on, baseline=given.baseline), chosen)
    recording = trace(given.addresses, given.seconds, given.out, stderr=sys.stderr)
    if given.no_report:
        return 0
    with line("reading the trace …", sys.stderr):
        diagnosis = outcome.diagnose(recording, given.addresses, applied, demands, SavingOptions(), formats=formats)
    output = outcome.Output(formats, scrubbed=given.scrub)
    diagnosis = output.safe(diagnosis, recording)
    output.write(diagnosis, recording.root or Path())
    return demands.end(diagnosis)
