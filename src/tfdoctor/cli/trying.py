"""``tfdoctor try``: measure what the advised changes save, by running them."""

import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import typer

from tfdoctor.capture import Plan, profile
from tfdoctor.capture.signals import outlive
from tfdoctor.cli import outcome
from tfdoctor.cli.commands import TryOptions
from tfdoctor.cli.gates import exit_code, gates
from tfdoctor.cli.options import GateOptions, book
from tfdoctor.cli.profile import what
from tfdoctor.cli.profile_parser import RECORDING
from tfdoctor.cli.report import check_target, not_written, write_file
from tfdoctor.cli.streams import say
from tfdoctor.cli.values import comma_separated, parse_formats
from tfdoctor.compare.baseline import program_of
from tfdoctor.recording import Recording
from tfdoctor.report.trials import no_savings
from tfdoctor.rulebook.book import Rulebook
from tfdoctor.terms.errors import CaptureError, InputError, OutputError
from tfdoctor.terms.record import common
from tfdoctor.terms.replacement import writing
from tfdoctor.trial import layer, of_recording, stored
from tfdoctor.trial.diffs import kept_diff

UNASKED = (
    "Nothing was run, because the writes of the runs cannot be thrown away{} and there is no terminal to ask at: "
    "give --yes to run the program nevertheless."
)


def try_(given: TryOptions) -> int:
    """Run the program with the changes and without, report what each saves, and return the exit code."""
    formats, chosen = parse_formats(given.formats, show=given.show), given.rules.settings()
    output = outcome.Output(formats, scrubbed=given.scrub, show=given.show)
    applied, demands = book(chosen), gates(GateOptions(), chosen)
    if given.keep is not None:
        check_target(str(given.keep))
    request = _request(given)
    recording = _recording(given, request, applied)
    root = recording.root or Path()
    with writing(root, stored.ELSEWHERE):  # known before the trial runs for minutes
        tempfile.TemporaryFile(dir=root).close()
    demands = demands.of(program_of(recording))
    diagnosis = demands.applied(outcome.untried(recording, recording.title(Path()), applied))
    outlive()
    tried = of_recording.conduct(recording, diagnosis, request)
    shown, failed = output.safe(tried.diagnosis, recording), []
    for write in (partial(_keep, given.keep, tried, recording), partial(_store, tried, recording)):
        try:
            write()
        except OutputError as error:  # does not lose what the others hold
            failed.append(error)
    try:
        output.write(shown, recording.root or Path())
    except OutputError as error:
        replace(output, formats=[]).write(shown, Path())  # the summary alone
        failed.append(error)
    for other in failed[1:]:
        say(str(other))
    if failed:
        raise failed[0]
    diagnosis = tried.diagnosis
    return of_recording.exit_code(diagnosis, given.fail_on_promise) or exit_code(diagnosis, fail_on=None)


def _request(given: TryOptions) -> of_recording.Request:
    only = comma_separated(given.only or "")
    if given.only is not None and not only:
        raise typer.BadParameter("--only needs the name of a rule")

    def consent(warning: str) -> None:
        """Ask whether the runs may write where the program writes."""
        say(warning)
        if given.yes:
            return
        if not sys.stdin.isatty():
            raise CaptureError(UNASKED.format(""))
        if not typer.confirm("Run it?", err=True):
            raise InputError("Nothing was run.")

    tried = {"only": tuple(only), "patches": tuple(given.patch or ()), "environment": tuple(given.env or ())}
    asked = {"settings": given.usual_settings, "parts": given.without_parts}
    return common(of_recording.Request, given, **tried, **asked, consent=consent, say=say)


def _recording(given: TryOptions, request: of_recording.Request, applied: Rulebook) -> Recording:
    """Return the recording that was named, or a new one of a program, unless that could not be tried afterwards."""
    if RECORDING in given.ctx.meta:
        path, *words = given.command or []
        if more := [*(("-m", given.module) if given.module else ()), *words]:
            raise typer.BadParameter(
                f"{path} is a recording, which contains its program and the arguments: remove `{' '.join(more)}`"
            )
        return outcome.noted(Recording.open(path))
    kind, script, args = what(given.ctx, given.module, given.command or [])
    of_recording.check(request, {rule.name for rule in applied.rules})
    plan = Plan(script, args, given.out, kind=kind, stop_after=True)
    plan.check()
    why = layer.why_not(Path.cwd()) if given.layer else "--no-layer"
    if why and not given.yes and not sys.stdin.isatty():
        raise CaptureError(UNASKED.format(f" ({why})"))
    ended = profile(plan, stderr=sys.stderr)
    if ended.exit_code:
        raise CaptureError(
            f"The program ended with exit code {ended.exit_code} when it was profiled: run it by itself."
        )
    return ended.recording


def _store(tried: of_recording.Tried, recording: Recording) -> None:
    if not stored.keep(tried.diagnosis.trials, recording):
        say(
            f"this trial has no figure, so {stored.FILE} in the recording keeps those of an earlier trial, "
            "which `tfdoctor report` shows"
        )


def _keep(target: Path | None, tried: of_recording.Tried, recording: Recording) -> None:
    if target is None:
        return
    diff, folder, left_out = kept_diff(tried.kept, tried.before, recording)
    for path in left_out:
        say(f"not in the patch: {path} is outside {folder}: change it by hand")
    if useless := no_savings(tried.diagnosis.trials.rows if tried.diagnosis.trials else ()):
        say(f"not in the patch: {useless}")
    if not diff:
        not_written("no change proved to help", str(target))
        return
    run = Path(recording.manifest.cwd if recording.manifest else "").resolve()
    write_file(str(target), diff, "" if folder == run else str(folder))
