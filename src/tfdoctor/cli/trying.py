"""``tfdoctor try``: measure what the advised changes save, by running them."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import typer

from tfdoctor.capture import Plan, profile
from tfdoctor.capture.signals import outlive
from tfdoctor.cli import outcome
from tfdoctor.cli.commands import TrialOptions, TryOptions
from tfdoctor.cli.gates import exit_code, gates
from tfdoctor.cli.options import GateOptions, book
from tfdoctor.cli.outcome import Output
from tfdoctor.cli.patching import check_target, not_written, write_file
from tfdoctor.cli.profile import what
from tfdoctor.cli.profile_parser import RECORDING
from tfdoctor.cli.streams import say
from tfdoctor.cli.values import comma_separated, parse_formats, parse_percent
from tfdoctor.compare.baseline import program_of
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.recording import Recording
from tfdoctor.report.trials import no_savings
from tfdoctor.rulebook.book import Rulebook
from tfdoctor.terms.errors import CaptureError, InputError, OutputError
from tfdoctor.trial import of_recording, stored
from tfdoctor.trial.keeping import diff
from tfdoctor.trial.of_recording import Request, Tried
from tfdoctor.trial.running import layer_possible

UNASKED = (
    "Nothing was run, because the writes of the runs cannot be thrown away and there is no terminal to ask at: "
    "give --yes to run the program nevertheless."
)


def try_(given: TryOptions) -> int:
    """Run the program with the changes and without, report what each saves, and return the exit code."""
    trial = given.trial
    wanted, chosen = parse_formats(given.formats, show=given.show), given.rules.settings()
    output = Output(wanted, scrubbed=given.scrub, show=given.show)
    applied, demands = book(chosen), gates(GateOptions(), chosen)
    limit = parse_percent(trial.fail_on_promise, "--fail-on-promise")
    if trial.keep is not None:
        check_target(trial.keep)
    request = _request(trial)
    recording = _opened(given) if RECORDING in given.ctx.meta else _profiled(given, request, applied)
    stored.must_be_writable(recording)
    demands.check(program_of(recording))
    diagnosis = demands.applied(outcome.untried(recording, recording.title(Path()), applied))
    outlive()
    tried = of_recording.conduct(recording, diagnosis, request)
    shown = outcome.without_names(tried.diagnosis, recording) if given.scrub else tried.diagnosis
    failed = []
    for write in (  # one that fails does not lose what the others hold
        partial(_keep, trial.keep, tried, recording),
        partial(_store, tried, recording),
        partial(_report, shown, recording, output),
    ):
        try:
            write()
        except OutputError as error:
            failed.append(error)
    for other in failed[1:]:
        say(str(other))
    if failed:
        raise failed[0]
    return of_recording.exit_code(tried.diagnosis, limit) or exit_code(tried.diagnosis, fail_on=None)


def _request(trial: TrialOptions) -> Request:
    only = comma_separated(trial.only or "")
    if trial.only is not None and not only:
        raise typer.BadParameter("--only needs the name of a rule")

    def consent(warning: str) -> None:
        """Ask whether the runs may write where the program writes."""
        say(warning)
        if trial.yes:
            return
        if not sys.stdin.isatty():
            raise CaptureError(UNASKED)
        if not typer.confirm("Run it?", err=True):
            raise InputError("Nothing was run.")

    return Request(
        only=tuple(only),
        patches=tuple(trial.patch or ()),
        environment=tuple(trial.env or ()),
        settings=trial.usual_settings,
        parts=trial.without_parts,
        minutes=trial.minutes,
        keep_model_changes=trial.keep_model_changes,
        layer=trial.layer,
        consent=consent,
        say=say,
    )


def _opened(given: TryOptions) -> Recording:
    """Return the recording that was named.

    Raises:
        BadParameter: the arguments of a program follow it.
        InputError: it cannot be read.
    """
    path, *words = given.command or []
    if more := [*(("-m", given.module) if given.module else ()), *words]:
        raise typer.BadParameter(
            f"{path} is a recording, which contains its program and the arguments: remove `{' '.join(more)}`"
        )
    return outcome.noted(Recording.open(path))


def _profiled(given: TryOptions, request: Request, applied: Rulebook) -> Recording:
    """Return a new recording of a program, unless it could not be tried afterwards.

    Raises:
        CaptureError: its writes would stay, and there is nobody to ask; or it failed or could not be profiled.
    """
    kind, script, args = what(given.ctx, given.module, given.command or [])
    of_recording.check(request, {rule.name for rule in applied.rules})
    discards = given.trial.layer and not layer_possible(Path.cwd())
    if not given.trial.yes and not sys.stdin.isatty() and not discards:
        raise CaptureError(UNASKED)
    plan = Plan(script=script, args=args, kind=kind, out=given.out, stop_after=True)
    ended = profile(plan, stderr=sys.stderr)
    if ended.exit_code:
        raise CaptureError(
            f"The program ended with exit code {ended.exit_code} when it was profiled: run it by itself."
        )
    return ended.recording


def _store(tried: Tried, recording: Recording) -> None:
    if not stored.keep(tried.diagnosis.trials, recording):
        say(
            f"this trial has no figure, so {stored.FILE} in the recording keeps those of an earlier trial, "
            "which `tfdoctor report` shows"
        )


def _report(diagnosis: Diagnosis, recording: Recording, output: Output) -> None:
    """Write the reports; show the summary also where they cannot be written."""
    try:
        outcome.write(diagnosis, recording.root or Path(), output)
    except OutputError:
        outcome.write(diagnosis, Path(), replace(output, formats=[]))
        raise


def _keep(target: Path | None, tried: Tried, recording: Recording) -> None:
    if target is None:
        return
    kept = diff(tried.kept, tried.before, recording)
    for path in kept.left_out:
        say(f"not in the patch: {path} is outside {kept.folder}: change it by hand")
    if left_out := no_savings(tried.diagnosis.trials.rows if tried.diagnosis.trials else ()):
        say(f"not in the patch: {left_out}")
    run = Path(recording.manifest.cwd if recording.manifest else "").resolve()
    if not kept.diff:
        not_written("no change proved to help", str(target))
        return
    write_file(target, kept.diff, "" if kept.folder == run else str(kept.folder))
