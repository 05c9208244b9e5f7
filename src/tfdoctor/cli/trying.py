"""``tfdoctor try``: measure what the advised changes save, by running them."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdoctor.cli.completion import list_of, rule_names
from tfdoctor.cli.gates import Gates
from tfdoctor.cli.messages import say
from tfdoctor.cli.options import (
    TRIAL_MINUTES,
    Formats,
    Scrub,
    Show,
    comma_separated,
    parse_formats,
    parse_own,
    parse_percent,
)
from tfdoctor.cli.outcome import Output, exit_code, noted, untried, without_names, write
from tfdoctor.cli.patching import check_target, not_written, write_file
from tfdoctor.cli.profile import what
from tfdoctor.cli.profile_parser import RECORDING
from tfdoctor.cli.rule_selection import RuleOptions, book
from tfdoctor.terms.errors import CaptureError, InputError, OutputError

if TYPE_CHECKING:
    from tfdoctor.capture import Kind
    from tfdoctor.diagnosis import Diagnosis
    from tfdoctor.recording import Recording
    from tfdoctor.trial.of_recording import Request, Tried

UNASKED = (
    "Nothing was run, because the writes of the runs cannot be thrown away and there is no terminal to ask at: "
    "give --yes to run the program nevertheless."
)


def _finite(minutes: float) -> float:
    if minutes != minutes:  # noqa: PLR0124 - nan passes both limits
        raise typer.BadParameter("nan is not a number of minutes")
    return minutes


@dataclass(frozen=True, slots=True)
class TrialOptions:
    """What to try, for how long, and what to keep of it."""

    only: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Try only the edits of these rules, comma-separated.",
            autocompletion=list_of(rule_names),
        ),
    ] = None
    patch: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="[RULE=]DIFF",
            help="Also try this patch, as `git apply` would; can be repeated. With the name of a rule, the patch "
            "makes the change that this rule advises, and is compared with its promise.",
        ),
    ] = None
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Also try this environment variable; can be repeated."),
    ] = None
    usual_settings: Annotated[
        bool,
        typer.Option(
            "--settings",
            help="Also try XLA, oneDNN, tcmalloc and numbers of threads, as far as they can matter here.",
        ),
    ] = False
    without_parts: Annotated[
        bool,
        typer.Option(
            "--parts",
            help="Try the program without each of its parts instead of the edits: input always ready, callbacks "
            "silent, and metrics, summaries, saving or evaluation off. This shows the most that a change can save.",
        ),
    ] = False
    minutes: Annotated[
        float, typer.Option(min=0.5, max=1440, callback=_finite, help="Time for all runs together.")
    ] = TRIAL_MINUTES
    keep: Annotated[
        Path | None,
        typer.Option(
            parser=parse_own, metavar="FILE", help="Write the edits that proved to help as a diff for git apply."
        ),
    ] = None
    keep_model_changes: Annotated[
        bool,
        typer.Option(
            "--keep-model-changes",
            help="With --keep, also write the changes that alter what is trained: the batch size and the widths "
            "of layers. They are tried only if --only names them.",
        ),
    ] = False
    layer: Annotated[
        bool, typer.Option("--layer/--no-layer", help="Throw away what the runs write, where the kernel allows it.")
    ] = True
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            "-y",
            help="Do not ask before running the program where the files that it writes cannot be discarded.",
        ),
    ] = False
    fail_on_promise: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT", help="Exit with 3 if a promised saving is off by more than this share of the step."
        ),
    ] = None

    def request(self) -> "Request":
        """Return what is asked of a trial."""
        from tfdoctor.trial.of_recording import Request  # noqa: PLC0415 - keeps --help fast

        only = comma_separated(self.only or "")
        if self.only is not None and not only:
            raise typer.BadParameter("--only needs the name of a rule")
        return Request(
            only=tuple(only),
            patches=tuple(self.patch or ()),
            environment=tuple(self.env or ()),
            settings=self.usual_settings,
            parts=self.without_parts,
            minutes=self.minutes,
            keep_model_changes=self.keep_model_changes,
            layer=self.layer,
            consent=_consent(yes=self.yes),
            say=say,
        )


def try_(  # noqa: PLR0913 - its arguments are the command's options
    ctx: typer.Context,
    *,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RECORDING | SCRIPT [ARGS]...",
            help="A recording made by `tfdoctor profile`, or a training script and its arguments, which is then "
            "profiled first.",
        ),
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module instead of a script.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=parse_own, metavar="PATH", help="Folder for a new recording [default: runs/SCRIPT-TIME]."
        ),
    ] = None,
    trial: TrialOptions,
    formats: Formats = "html,json",
    show: Show = False,
    scrub: Scrub = False,
    rules: RuleOptions,
) -> None:
    """Run the program with the advised changes and without, by turns, and report what each saves.

    The files of the program are never written: its runs see changed copies.
    """
    from tfdoctor.capture.signals import outlive  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.compare.baseline import program_of  # noqa: PLC0415 - same
    from tfdoctor.trial import of_recording, stored  # noqa: PLC0415 - same

    wanted, chosen = parse_formats(formats, show=show), rules.settings()
    output = Output(wanted, scrubbed=scrub, show=show)
    applied, gates = book(chosen), Gates.of(chosen)
    limit = parse_percent(trial.fail_on_promise, "--fail-on-promise")
    if trial.keep is not None:
        check_target(trial.keep)
    request = trial.request()
    recording = _opened(ctx, module, command or [])
    if recording is None:
        target = what(ctx, module, command or [])
        of_recording.check(request, {rule.name for rule in applied.rules})
        _may_begin(yes=trial.yes, layer=trial.layer)
        recording = _profiled(target, out)
    stored.must_be_writable(recording)
    gates.check(program_of(recording))
    diagnosis = gates.applied(untried(recording, recording.title(Path()), applied))
    outlive()
    tried = of_recording.conduct(recording, diagnosis, request)
    shown = without_names(tried.diagnosis, recording) if scrub else tried.diagnosis
    _all_of(
        lambda: _keep(trial.keep, tried, recording),
        lambda: _store(tried, recording),
        lambda: _report(shown, recording, output),
    )
    promises = of_recording.exit_code(tried.diagnosis, limit)
    raise typer.Exit(promises or exit_code(tried.diagnosis, fail_on=None))


def _opened(ctx: typer.Context, module: str | None, command: list[str]) -> "Recording | None":
    """Return the recording that was named; None where a program was.

    Raises:
        BadParameter: the arguments of a program follow the recording.
        InputError: the recording cannot be read.
    """
    from tfdoctor.recording import Recording  # noqa: PLC0415 - keeps --help fast

    if RECORDING not in ctx.meta:
        return None
    more = [*(("-m", module) if module else ()), *command[1:]]
    if more:
        raise typer.BadParameter(
            f"{command[0]} is a recording, which contains its program and the arguments: remove `{' '.join(more)}`"
        )
    return noted(Recording.open(command[0]))


def _may_begin(*, yes: bool, layer: bool) -> None:
    """Refuse to profile what could not be tried afterwards: runs whose writes stay, and nobody to ask.

    Raises:
        CaptureError: so it is.
    """
    from tfdoctor.trial.running import layer_possible  # noqa: PLC0415 - keeps --help fast

    if not yes and not sys.stdin.isatty() and (not layer or layer_possible(Path.cwd())):
        raise CaptureError(UNASKED)


def _profiled(target: tuple["Kind", str, tuple[str, ...]], out: Path | None) -> "Recording":
    """Return a new recording of a program.

    Raises:
        CaptureError: the program failed or could not be profiled.
    """
    from tfdoctor.capture import Plan, profile  # noqa: PLC0415 - keeps --help fast

    kind, script, args = target
    plan = Plan(script=script, args=args, kind=kind, out=out, stop_after=True)
    outcome = profile(plan, stderr=sys.stderr)
    if outcome.exit_code:
        raise CaptureError(
            f"The program ended with exit code {outcome.exit_code} when it was profiled: run it by itself."
        )
    return outcome.recording


def _all_of(*writes: Callable[[], object]) -> None:
    """Make all writes, so that one that fails does not lose what the others hold.

    Raises:
        OutputError: the first of those that failed; the others are said.
    """
    failed = []
    for write_one in writes:
        try:
            write_one()
        except OutputError as error:
            failed.append(error)
    for other in failed[1:]:
        say(str(other))
    if failed:
        raise failed[0]


def _store(tried: "Tried", recording: "Recording") -> None:
    from tfdoctor.trial import stored  # noqa: PLC0415 - keeps --help fast

    if not stored.keep(tried.diagnosis.trials, recording):
        say(
            f"this trial has no figure, so {stored.FILE} in the recording keeps those of an earlier trial, "
            "which `tfdoctor report` shows"
        )


def _report(diagnosis: "Diagnosis", recording: "Recording", output: Output) -> None:
    """Write the reports; show the summary also where they cannot be written."""
    try:
        write(diagnosis, recording.root or Path(), output)
    except OutputError:
        write(diagnosis, Path(), replace(output, formats=[]))
        raise


def _keep(target: Path | None, tried: "Tried", recording: "Recording") -> None:
    from tfdoctor.report.trials import no_savings  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.trial.keeping import diff  # noqa: PLC0415 - same

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


def _consent(*, yes: bool) -> Callable[[str], None]:
    """Return what asks whether the runs may write where the program writes."""

    def ask(warning: str) -> None:
        say(warning)
        if yes:
            return
        if not sys.stdin.isatty():
            raise CaptureError(UNASKED)
        if not typer.confirm("Run it?", err=True):
            raise InputError("Nothing was run.")

    return ask
