"""What to try: the edits that the report advises, patches of the user's, and settings of the environment."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod
from pathlib import Path

from tfdoctor.capture.agent.process.masking import masked
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import RunSaving
from tfdoctor.edits.patch import changed_files
from tfdoctor.edits.splice import Declined
from tfdoctor.facts.run.operation_types import RANDOM
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.verdict import Finding, Remedy
from tfdoctor.trial.merging import merged
from tfdoctor.trial.variants import NotTried, Variant

# Edits that move work without changing its arithmetic, so that the weights must stay the same.
EXACT = frozenset(
    {
        "prefetch",
        "parallel-map",
        "parallel-batch",
        "parallel-interleave",
        "cache",
        "cache-before-repeat",
        "steps-per-execution",
        "run-eagerly-off",
    }
)

# Edits after which a function runs for several elements at once, which draw random numbers in any order.
PARALLEL = frozenset({"parallel-map", "parallel-interleave"})


def edits(
    recording: Recording, diagnosis: Diagnosis, only: Sequence[str], *, keep: bool
) -> tuple[list[tuple[Variant, Result]], list[NotTried]]:
    """Return a variant for each finding that has an edit, and the findings without one.

    First comes what is expected to save most of the run; what is expected to save nothing is not tried unasked.
    `keep` lets those into what is kept that change what is trained.

    Raises:
        InputError: `only` names a rule without a finding.
    """
    findings = _findings(diagnosis)
    _check_named("--only", only, findings)
    variants, missing = [], []
    for result in findings:
        if (only and result.rule.name not in only) or _has_width(result):
            continue
        try:
            files = changed_files(recording, [result])
        except Declined as reason:
            missing.append(NotTried(result.rule.name, str(reason)))
            continue
        variant = _of(result, files, recording, keep=keep)
        useless = "the report expects it to save nothing" if variant.expected == 0 else ""
        if (why := variant.model or useless) and result.rule.name not in only:
            why = f"{why}, so it is tried only with --only {result.rule.name}"
            missing.append(NotTried(result.rule.name, why))
        else:
            variants.append((variant, result))
    return sorted(variants, key=lambda pair: -(pair[0].expected or 0.0)), missing


def _has_width(result: Result) -> bool:
    """Say whether a finding advises other widths of layers, which are variants of their own (`model_changes`)."""
    remedies = result.outcome.remedies if isinstance(result.outcome, Finding) else ()
    return any(remedy.width is not None for remedy in remedies)


def _findings(diagnosis: Diagnosis) -> list[Result]:
    """Return the findings that concern the program, in the report's order."""
    return [result for result in diagnosis.results if isinstance(result.outcome, Finding)]


def finding(diagnosis: Diagnosis, rule: str) -> Result:
    """Return the finding of the rule that a patch is for.

    Raises:
        InputError: the report has none.
    """
    findings = _findings(diagnosis)
    _check_named("--patch", [rule], findings)
    return next(result for result in findings if result.rule.name == rule)


def _check_named(option: str, rules: Sequence[str], findings: Sequence[Result]) -> None:
    names = [result.rule.name for result in findings]
    unknown = [name for name in rules if name not in names]
    if unknown:
        there = ", ".join(dict.fromkeys(names)) or "none"
        raise InputError(f"{option} {unknown[0]}: the report has no such finding. Its findings: {there}.")


def _of(result: Result, files: Mapping[Path, bytes], recording: Recording, *, keep: bool) -> Variant:
    """Return the variant of a finding's edits; its action is that of the first of its remedies that is one."""
    remedies = result.outcome.remedies if isinstance(result.outcome, Finding) else ()
    pairs = zip(remedies, result.edits, strict=False)
    edited = (remedy for remedy, edit in pairs if edit.before or edit.after)
    first = next(edited, Remedy(""))
    return Variant(
        name=result.rule.name,
        action=first.action,
        files=files,
        rules=(result.rule.name,),
        promised=result.saving,
        promised_run=of_whole_run(result),
        exact={remedy.edit_id for remedy in remedies if remedy.edit_id} <= EXACT,
        reorders=_reorders(remedies, recording),
        model=first.changes,
        may_keep=keep or not first.changes,
    )


def of_whole_run(result: Result) -> RunSaving | None:
    """Return what a change promises of the run that a trial makes: of all epochs, where fewer were recorded."""
    run = result.run
    if run is None or run.extrapolated_share is None:
        return run
    return replace(run, share=run.extrapolated_share)


def _reorders(remedies: Sequence[Remedy], recording: Recording) -> bool:
    """Say whether an edit runs a function in parallel that is recorded to draw random numbers from a generator.

    Stateless operations depend on no order.
    """
    if recording.program is None:
        return False
    place = Places.of(recording)
    drawing = {
        place(one.at)
        for one in recording.program.datasets
        if one.function is not None and any(map(RANDOM.search, one.function.stateful or ()))
    }
    return any(remedy.edit_id in PARALLEL and remedy.at in drawing for remedy in remedies)


def joined(recording: Recording, parts: Sequence[Variant], results: Mapping[str, Result]) -> Variant:
    """Return the variant that makes several changes at once.

    Raises:
        Declined: they cannot be made together.
    """
    environment = [name for part in parts for name in part.environment]
    if len(environment) > len(set(environment)):
        raise Declined("they set the same variable")
    return Variant(
        name=" + ".join(part.name for part in parts),
        parts=tuple(part.name for part in parts),
        files=_files_of_all(recording, parts, results),
        environment={name: value for part in parts for name, value in part.environment.items()},
        runner={name: value for part in parts for name, value in part.runner.items()},
        rules=tuple(rule for part in parts for rule in part.rules),
        exact=all(part.exact for part in parts),
        reorders=any(part.reorders for part in parts),
        model=" and ".join(part.model for part in parts if part.model),
        examples=prod((part.examples for part in parts), start=Fraction(1)),
    )


def _files_of_all(
    recording: Recording, parts: Sequence[Variant], results: Mapping[str, Result]
) -> Mapping[Path, bytes]:
    """Return the files with all edits, which are made together, and with the texts of patches merged into these."""
    edited = [results[rule] for part in parts if part.edited for rule in part.rules]
    more = [splices for part in parts for splices in part.splices]
    files = dict(changed_files(recording, edited, more))
    for part in parts:
        if part.edited or part.splices:
            continue
        for path, data in part.files.items():
            files[path] = merged(path.read_bytes(), files[path], data) if path in files else data
    return files


def must_be_diff(patch: Path) -> bytes:
    """Return the content of a diff.

    Raises:
        InputError: the file cannot be read, or is no diff.
    """
    try:
        data = patch.read_bytes()
    except OSError as error:
        raise InputError(f"{patch} cannot be read ({error.strerror}): check the path of the patch.") from error
    if not HUNK.search(data):
        raise InputError(f"{patch} is no diff: make it with `git diff --relative` in the folder of the run.")
    return data


HUNK = re.compile(rb"^(?:@@ |diff --git |GIT binary patch)", re.MULTILINE)  # What every diff has


def of_patch(patch: Path, folder: Path) -> Variant:
    """Return the variant of a diff, as `git apply` would make it in the program's folder.

    Raises:
        InputError: the file is no diff that applies there.
    """
    data = must_be_diff(patch)
    if shutil.which("git") is None:
        raise InputError("--patch needs git, which applies the patch to copies: install it.")
    with tempfile.TemporaryDirectory(prefix="tfdoctor-patch-") as temporary:
        files = _patched(patch, data, folder, Path(temporary))
    return Variant(name=patch.name, files=files, patched=True)


def _patched(patch: Path, data: bytes, folder: Path, root: Path) -> dict[Path, bytes]:
    """Return the files that a diff changes, as it makes them in an empty folder.

    Raises:
        InputError: the file is no diff that applies there.
    """
    try:
        names = _touched(data, patch, root)
        for name in names:
            if (folder / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / name, root / name)
        _git_apply(data, root)
    except _NotAppliedError as why:
        raise InputError(
            f"{patch} does not apply in {folder} ({why}): "
            "make it with `git diff --relative` in the folder of the run."
        ) from why
    after = {name: (root / name).read_bytes() for name in names}
    if all((folder / name).read_bytes() == text for name, text in after.items()):
        raise InputError(f"{patch} changes the text of no file: try a patch that does.")
    return {(folder / name).resolve(): text for name, text in after.items()}


class _NotAppliedError(Exception):
    """What git says of a diff that it does not apply."""


def _git_apply(data: bytes, root: Path, *options: str) -> bytes:
    """Let git apply a diff in a folder that is in no repository, or tell of it; return what it prints.

    Raises:
        _NotAppliedError: git refuses.
    """
    done = subprocess.run(  # noqa: S603 - git, with options of ours
        ["git", "apply", *options, "-"],  # noqa: S607 - the git of the user's PATH
        input=data,
        cwd=root,
        env={
            "GIT_CEILING_DIRECTORIES": str(root.parent),
            "LC_ALL": "C",
            "PATH": os.environ.get("PATH", os.defpath),
        },
        capture_output=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        errors = [line for line in lines if line.startswith("error: ")] or lines
        raise _NotAppliedError(errors[0] if errors else "git gives no reason")
    return done.stdout


TEXT_ONLY = (b" mode change ", b" rewrite ")  # What git says of a file of the same name


def _touched(diff: bytes, patch: Path, root: Path) -> list[str]:
    """Return the paths that a diff changes, without their first folder (a/ and b/).

    Raises:
        InputError: it adds, deletes or renames a file, or names one outside of the folder.
        _NotAppliedError: git cannot read it.
    """
    names = dict.fromkeys(
        os.fsdecode(entry.split(b"\t", 2)[2])
        for entry in _git_apply(diff, root, "--numstat", "-z").split(b"\0")
        if entry
    )
    summary = _git_apply(diff, root, "--summary").splitlines()
    if not all(line.startswith(TEXT_ONLY) for line in summary):
        raise InputError(f"{patch} adds or deletes a file, or renames one: only changes of files can be tried.")
    outside = [name for name in names if Path(name).is_absolute() or ".." in Path(name).parts]
    if outside:
        raise InputError(
            f"{patch} names {outside[0]}, which is outside of the folder of the run: "
            "make it with `git diff --relative` there."
        )
    return list(names)


def of_environment(settings: Iterable[str]) -> list[Variant]:
    """Return a variant for each NAME=VALUE, whose name shows no credential.

    Raises:
        InputError: one is not of that form.
    """
    variants: list[Variant] = []
    for setting in dict.fromkeys(settings):
        name, equals, value = setting.partition("=")
        (shown,) = masked([setting])
        if not equals or not name.isidentifier():
            raise InputError(f"--env {shown}: write NAME=VALUE, as in TF_ENABLE_ONEDNN_OPTS=0.")
        variants.append(Variant(name=shown, environment={name: value}))
    return variants
