"""A trial of what a recording's report advises."""

import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tfdoctor.capture.plan import Kind
from tfdoctor.diagnosis import Diagnosis, Difference, Order, Result, Trials
from tfdoctor.recording import Recording
from tfdoctor.terms.errors import CaptureError, InputError
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound
from tfdoctor.trial import diffs, layer, proposals, schedule, settings, taking_out, trial
from tfdoctor.trial import program as programs
from tfdoctor.trial.clock import TrialClock
from tfdoctor.trial.program import NotTried, RecordedProgram, Texts, Variant, distinct
from tfdoctor.trial.rounds import AROUND
from tfdoctor.trial.running import Runner

FOR_CHANGES = 2 / 3  # Share of the time that changes have where large parts follow that no change is known for
OFF = 3  # Exit code when a promise was off by more than the limit


class Request(Record, kw_only=True):
    """What the user asked to try, and how."""

    only: tuple[str, ...] = ()
    patches: tuple[Path, ...] = ()
    environment: tuple[str, ...] = ()
    settings: bool = False
    parts: bool = False  # the program without each of its parts, in place of the report's edits
    minutes: float = 10.0
    keep_model_changes: bool = False
    layer: bool = True
    consent: Callable[[str], None]  # asks whether runs may write; raises where not
    say: Callable[[str], object]

    @property
    def tries_edits(self) -> bool:
        """Whether the report's edits are tried."""
        return bool(self.only) or not self.parts

    @property
    def names_nothing(self) -> bool:
        """Whether the report alone says what to try."""
        return not (self.only or self.patches or self.environment or self.settings)


class Tried(Record):
    """A diagnosis with what was measured, and the variants that proved to help: the last has all their changes."""

    diagnosis: Diagnosis
    kept: tuple[Variant, ...]
    before: Texts  # of the files that the variants change


def check(request: Request, rules: Collection[str]) -> None:
    """Check what needs no recording, before a program is profiled for the trial; ``rules`` are those that apply.

    Raises:
        InputError: a rule or a patch does not exist, or a setting is none.
    """
    proposals.of_environment(request.environment)
    for patch in request.patches:
        rule, path = _rule_and_diff(patch)
        diffs.must_be_diff(path)
        _must_be_rules("--patch", [rule] if rule else [], rules)
    _must_be_rules("--only", request.only, rules)


def _must_be_rules(option: str, names: Iterable[str], rules: Collection[str]) -> None:
    unknown = [name for name in names if name not in rules]
    if unknown:
        raise InputError(f"{option} {unknown[0]}: there is no such rule, see `tfdoctor rules`.")


def _rule_and_diff(patch: Path) -> tuple[str, Path]:
    """Return the two parts of RULE=DIFF; "" for the rule of a path."""
    rule, equals, path = str(patch).partition("=")
    if not equals or patch.exists():
        return "", patch
    if not rule or not path:
        raise InputError(f"--patch {patch}: write RULE=DIFF, or the path of the diff alone.")
    return rule, Path(path)


def conduct(recording: Recording, diagnosis: Diagnosis, request: Request) -> Tried:
    """Try the edits of a report, what the user names, and the program without its parts.

    Raises:
        InputError: there is nothing to try, or the recording cannot be run again.
        CaptureError: the program cannot be timed as it is, which a recording without any step says before a run.
    """
    program = programs.of(recording)
    programs.originals(recording)
    variants, results, without, missing = _wanted(recording, diagnosis, program, request)
    _must_have_any([*variants, *without], missing, edits=request.tries_edits)
    known = recording.manifest
    traced = known is not None and known.plan is not None and known.plan.trace
    if traced and known and not known.steps.seen and known.trace_gap and not all(map(trial.is_about_run, variants)):
        raise CaptureError(f"The steps of the program cannot be timed as it is: {known.trace_gap.why}.")
    before = programs.originals(recording, (path for one in variants for path in one.files))
    thrown = _thrown_away(program, request, recording, len(variants) + len(without))

    def join(parts: Sequence[Variant]) -> Variant:
        return proposals.joined(recording, parts, results)

    check, clock = partial(programs.must_be_unchanged, before), TrialClock(request.minutes)
    memory = programs.bytes_beside_others(diagnosis)
    trials, kept = Trials(rows=()), tuple[Variant, ...]()
    with tempfile.TemporaryDirectory(prefix="tfdoctor-try-", ignore_cleanup_errors=True) as folder:
        stage = Runner(program, Path(folder).resolve(), thrown, check, memory)
        if variants:
            share, rivals = FOR_CHANGES if without else 1.0, (diagnosis.order or Order()).rivals
            plan = trial.Agenda(variants, join, share * request.minutes, request.say, rivals, share)
            trials, kept = trial.conduct(stage, plan)
        if without and not trials.ended_early:
            recorded = taking_out.recorded_length(diagnosis)
            trials = taking_out.conduct(stage, without, recorded, clock.left_s / 60, request.say, trials)
    check()  # Ctrl-C ends a run before its check
    all_kept = (*kept, join(kept)) if len(kept) > 1 else kept
    trials = replace(trials, layer=thrown, not_tried=tuple((one.name, one.why) for one in missing))
    return Tried(trial.with_measured(diagnosis, trials), all_kept, before)


# Changes, with the findings of those that are edits, parts that are taken out, and what cannot be tried.
Wanted = tuple[list[Variant], Mapping[str, Result], list[Variant], list[NotTried]]


def _wanted(recording: Recording, diagnosis: Diagnosis, program: RecordedProgram, request: Request) -> Wanted:
    """Return what a trial tries: the parts in place of the edits where the user asks for them.

    A finding without an edit can be tried where a change of the model or a patch is for it. Where nothing is asked
    for, large parts follow that no finding has an edit for.
    """
    edited: list[tuple[Variant, Result]] = []
    unedited: list[NotTried] = []
    model: list[Variant] = []
    missing: list[NotTried] = []
    if request.tries_edits:
        only, keep = request.only, request.keep_model_changes
        edited, unedited = proposals.edits(recording, diagnosis, only, keep=keep)
        model, missing = proposals.changes_of_model(recording, diagnosis, only, keep=keep)
    named = [patch_variant(patch, program.folder, diagnosis) for patch in request.patches]
    named += proposals.of_environment(request.environment)
    usual, useless = settings.of_recording(recording, program) if request.settings else ([], [])
    replaced = (
        {one.name for one in model} | {one.name for one in missing} | {rule for one in named for rule in one.rules}
    )
    missing = [*(one for one in unedited if one.name not in replaced), *missing, *useless]
    without: list[Variant] = []
    if request.parts or request.names_nothing:
        without, unknown = taking_out.of_recording(recording, diagnosis)
        missing += unknown if request.parts else []
    if not request.parts:
        without = taking_out.unexplained(without, diagnosis)
    changes = distinct([*(variant for variant, _ in edited), *model, *named, *usual])
    return changes, {one.rule.name: one for _, one in edited}, without, missing


def patch_variant(patch: Path, folder: Path, diagnosis: Diagnosis) -> Variant:
    """Return the variant of a patch; of RULE=PATCH, one that fixes the finding of that rule, with its promise.

    Raises:
        InputError: the patch does not apply, or the report has no such finding.
    """
    rule, path = _rule_and_diff(patch)
    if not rule:
        return diffs.of_patch(path, folder)
    result, _ = proposals.named(diagnosis, [rule], "--patch")[rule]
    patched, of_run = diffs.of_patch(path, folder), proposals.of_whole_run(result)
    return replace(patched, rules=(rule,), promised=result.saving, promised_run=of_run)


def _must_have_any(variants: Sequence[Variant], missing: Sequence[NotTried], *, edits: bool) -> None:
    """Refuse a trial of nothing; without ``edits``, those of the report were not asked for."""
    if variants:
        return
    if not missing and not edits:
        raise InputError(
            "No part of the program takes enough to be taken out: leave out --parts to try what the report advises."
        )
    if not missing:
        raise InputError(
            "The report advises no change, and no part of the program takes enough to be taken out, so there is "
            "nothing to try: name a --patch or --env."
        )
    unknown = [one.why for one in missing if one.name == taking_out.WHOLE]
    if unknown:
        raise InputError(f"Nothing is known of the program's parts ({unknown[0]}): record it again.")
    why = "; ".join(f"{one.name}: {one.why}" for one in missing[:3])
    raise InputError(
        f"No advised change can be applied automatically ({why}): make the change and try it with --patch."
    )


def _thrown_away(program: RecordedProgram, request: Request, recording: Recording, variants: int) -> bool:
    """Say whether the runs' writes are thrown away; where they cannot be, ask."""
    why = layer.why_not(program.folder) if request.layer else "--no-layer"
    if not why:
        return True
    if program.kind is Kind.COMMAND:
        raise InputError(
            f"A command can be tried only where writes can be thrown away, which is not possible here ({why}): "
            "try the script that it starts."
        )
    written = recording.manifest.written if recording.manifest else None
    runs = schedule.LEAST_ROUNDS * (AROUND + variants) + 1
    request.consent(layer.warning(why, program.folder, runs, request.minutes, written))
    return False


def exit_code(diagnosis: Diagnosis, limit: float | None) -> int:
    """Return 3 where a promised saving is off by more than `limit`, a share of the step, or none was measured.

    Within the interval of the measurement no promise is off; a bound is off only where it is exceeded.
    """
    if limit is None or diagnosis.trials is None:
        return 0
    rows = [(promised, row.measured) for row in diagnosis.trials.rows if (promised := row.prediction)]
    off = [
        max(
            measured.low - promised.share,
            0.0 if promised.bound is Bound.AT_MOST else promised.share - measured.high,
        )
        for promised, measured in rows
        if measured and measured.difference is not Difference.UNKNOWN
    ]
    unmeasured = bool(rows) and not off
    return OFF if unmeasured or max(off, default=0.0) > limit else 0
