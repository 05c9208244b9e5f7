"""What to try: the edits that the report advises, larger batches, and environment variables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod

from tfdoctor.capture.agent.process.masking import masked
from tfdoctor.diagnosis import Diagnosis, Result, RunSaving
from tfdoctor.edits.patch import changed_files
from tfdoctor.edits.sizes import larger_batch
from tfdoctor.edits.source import Sources
from tfdoctor.facts.run.operation_types import RANDOM
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.recording.program import ProgramRecord, RecordedDataset, SourceLine
from tfdoctor.source_code.splice import Declined, Splice
from tfdoctor.source_code.tree import SyntaxTree
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.kinds import InputKind
from tfdoctor.terms.verdict import Remedy
from tfdoctor.trial.diffs import merged
from tfdoctor.trial.program import NotTried, Variant

# Edits after which a function runs for several elements at once, which draw random numbers in any order.
PARALLEL = frozenset({"parallel-map", "parallel-interleave"})
# Edits that move work without changing its arithmetic, so that the weights must stay the same.
EXACT = PARALLEL | {
    "prefetch", "parallel-batch", "cache", "cache-before-repeat", "steps-per-execution", "run-eagerly-off",
}  # fmt: skip


def edits(
    recording: Recording, diagnosis: Diagnosis, only: Sequence[str], *, keep: bool
) -> tuple[list[tuple[Variant, Result]], list[NotTried]]:
    """Return a variant for each finding that has an edit, and the findings without one.

    First comes what is expected to save most of the run; what is expected to save nothing is not tried unasked.
    `keep` lets those into what is kept that change what is trained.

    Raises:
        InputError: `only` names a rule without a finding.
    """
    findings, variants, missing = named(diagnosis, only, "--only"), [], []
    for name, (result, remedies) in findings.items():
        if only and name not in only:
            continue
        try:
            files = changed_files(recording, [result])
        except Declined as reason:
            missing.append(NotTried(name, str(reason)))
            continue
        pairs = zip(remedies, result.edits, strict=False)
        made = [remedy for remedy, edit in pairs if edit.before or edit.after] or [Remedy("")]
        first, widths = made[0], [remedy.action for remedy in made if remedy.width]
        variant = Variant(
            name=name,
            action="; ".join(widths) or first.action,
            files=files,
            rules=(name,),
            promised=None if widths and len(made) < len(remedies) else result.saving,
            promised_run=of_whole_run(result),
            exact={remedy.edit_id for remedy in remedies if remedy.edit_id} <= EXACT,
            reorders=_reorders(remedies, recording),
            model=first.changes,
            may_keep=keep or not first.changes,
        )
        useless = "the report expects it to save nothing" if variant.expected == 0 else ""
        if (why := variant.model or useless) and name not in only:
            missing.append(NotTried(name, f"{why}, so it is tried only with --only {name}"))
        else:
            variants.append((variant, result))
    return sorted(variants, key=lambda pair: -(pair[0].expected or 0.0)), missing


def named(diagnosis: Diagnosis, rules: Sequence[str], option: str) -> dict[str, tuple[Result, tuple[Remedy, ...]]]:
    """Return the findings with their remedies, by their rules, in the report's order.

    Raises:
        InputError: ``option`` names a rule that has none.
    """
    found = {one.rule.name: (one, one.finding.remedies) for one in diagnosis.results if one.finding}
    if unknown := [name for name in rules if name not in found]:
        there = ", ".join(found) or "none"
        raise InputError(f"{option} {unknown[0]}: the report has no such finding. Its findings: {there}.")
    return found


def of_whole_run(result: Result) -> RunSaving | None:
    """Return what a change promises of the run that a trial makes: of all epochs, where fewer were recorded."""
    run = result.run
    return run if run is None or run.extrapolated_share is None else replace(run, share=run.extrapolated_share)


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
    """Return the variant that makes several changes at once: edits together, and patches merged into these.

    Raises:
        Declined: they cannot be made together.
    """
    environment = [name for part in parts for name in part.environment]
    if len(environment) > len(set(environment)):
        raise Declined("they set the same variable")
    edited = [results[rule] for part in parts if part.edited for rule in part.rules]
    files = dict(changed_files(recording, edited, [splices for part in parts for splices in part.splices]))
    for part in parts:
        if part.edited or part.splices:
            continue
        for path, data in part.files.items():
            files[path] = merged(path.read_bytes(), files[path], data) if path in files else data
    return Variant(
        name=" + ".join(part.name for part in parts),
        parts=tuple(part.name for part in parts),
        files=files,
        environment={name: value for part in parts for name, value in part.environment.items()},
        runner={name: value for part in parts for name, value in part.runner.items()},
        rules=tuple(rule for part in parts for rule in part.rules),
        exact=all(part.exact for part in parts),
        reorders=any(part.reorders for part in parts),
        model=" and ".join(part.model for part in parts if part.model),
        examples=prod((part.examples for part in parts), start=Fraction(1)),
    )


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


FACTORS = (2, 4)  # How much larger the batches are that are tried
# The rules that advise a larger batch for the sake of the step.
BATCH_RULES = ("small-batch", "small-replica-batch")

Splices = tuple[tuple[str, tuple[Splice, ...]], ...]  # By the name of a file in reports, what is replaced in it


def changes_of_model(
    recording: Recording, diagnosis: Diagnosis, only: Sequence[str], *, keep: bool
) -> tuple[list[Variant], list[NotTried]]:
    """Return larger batches, which change what is trained: those whose rule `only` names.

    `keep` lets them into what is kept.
    """
    findings = named(diagnosis, (), "")
    variants: list[Variant] = []
    missing: list[NotTried] = []
    for rule in (one for one in BATCH_RULES if one in findings):
        if not only:
            why = f"it changes what is trained, so it is tried only with --only {rule}"
            missing.append(NotTried("a larger batch", why))
        for factor in FACTORS if rule in only else ():
            name = f"batch \N{MULTIPLICATION SIGN} {factor}"
            try:
                variants.append(replace(_larger(recording, factor, name), may_keep=keep))
            except Declined as reason:
                missing.append(NotTried(name, str(reason)))
    return variants, missing


def _larger(recording: Recording, factor: int, name: str) -> Variant:
    sources = Sources(recording)
    (path, line), size = _batch(sources.program)
    shown = sources.places.shown(path)
    module = SyntaxTree(sources[shown].text)
    names = (sources.places.shown(recorded) for recorded in sources.hashes)
    others = [sources[other].text for other in names if other != shown]
    found = larger_batch(module, line, (size, factor * size), others)
    splices: Splices = ((shown, tuple(found)),)
    return Variant(
        name=name,
        action=f"Use {factor * size} examples a batch instead of {size}",
        files=changed_files(recording, (), splices),
        splices=splices,
        examples=Fraction(factor),
        model=f"a step has {factor * size} examples instead of {size}",
    )


def _batch(program: ProgramRecord) -> tuple[SourceLine, int]:  # the line that sets its size, and the size
    size = program.run.batch_size
    if program.input_kind == InputKind.ARRAYS:  # Keras makes the batches
        place = program.run.fit_at
    else:
        stages = list(_batching(program))
        if len(stages) > 1:
            raise Declined("the pipeline makes batches at several stages")
        place = stages[0].at if stages else None
        size = stages[0].parameters.batch_size if stages else None
    if place is None or size is None or size != (program.run.batch_size or size):
        raise Declined("the recording does not show where the size of the batches is set")
    return place, size


def _batching(program: ProgramRecord) -> Iterator[RecordedDataset]:
    """Yield the stages that make batches on the way to the training loop, each with one input."""
    stages = {dataset.id: dataset for dataset in program.datasets}
    at, seen = program.feeds, set[int]()
    while at is not None and at in stages and at not in seen:
        seen.add(at)
        if stages[at].parameters.batch_size is not None:
            yield stages[at]
        at = stages[at].inputs[0] if len(stages[at].inputs) == 1 else None
