"""Larger batches and other widths: they change what is trained, so they are tried only when their rule is named."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Result
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.patch import changed_files
from tfdoctor.edits.sizes import larger_batch, width
from tfdoctor.edits.source import Sources
from tfdoctor.edits.splice import Declined, Splice
from tfdoctor.recording import Recording
from tfdoctor.recording.program import ProgramRecord, RecordedDataset, SourceLine
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Finding, Remedy
from tfdoctor.trial.variants import NotTried, Variant

FACTORS = (2, 4)  # How much larger the batches are that are tried
# The rules that advise a larger batch for the sake of the step.
BATCH_RULES = ("small-batch", "small-replica-batch")

WIDTH_RULE = "unaligned-dimension"

ARRAYS = "arrays"  # The kind of input for which Keras makes the batches
Splices = tuple[tuple[str, tuple[Splice, ...]], ...]  # By the name of a file in reports, what is replaced in it


class ModelChanges(Record):
    """What there is to change, and what of it is asked for."""

    variants: tuple[Variant, ...]
    not_tried: tuple[NotTried, ...]


def of_report(recording: Recording, diagnosis: Diagnosis, only: Sequence[str], *, keep: bool) -> ModelChanges:
    """Return the changes that the findings of a report advise; `keep` lets them into what is kept."""
    findings = {result.rule.name: result for result in diagnosis.results if isinstance(result.outcome, Finding)}
    rules = [rule for rule in (*BATCH_RULES, WIDTH_RULE) if rule in findings]
    made: list[Variant | NotTried] = []
    for rule in rules:
        if rule in only:
            made += _tried(recording, findings[rule], keep=keep)
        elif not only:
            name = rule if rule == WIDTH_RULE else "a larger batch"
            why = f"it changes what is trained, so it is tried only with --only {rule}"
            made.append(NotTried(name, why))
    return ModelChanges(
        tuple(one for one in made if isinstance(one, Variant)),
        tuple(one for one in made if isinstance(one, NotTried)),
    )


def _tried(recording: Recording, result: Result, *, keep: bool) -> Iterator[Variant | NotTried]:
    if result.rule.name == WIDTH_RULE:
        yield _aligned(recording, result, keep=keep)
        return
    for factor in FACTORS:
        name = f"batch \N{MULTIPLICATION SIGN} {factor}"
        try:
            yield _larger(recording, name, factor, keep=keep)
        except Declined as reason:
            yield NotTried(name, str(reason))


def _larger(recording: Recording, name: str, factor: int, *, keep: bool) -> Variant:
    """Return the variant with larger batches.

    Raises:
        Declined: the files do not show where their size is set.
    """
    sources = Sources(recording)
    (path, line), size = _batch(sources.program)
    shown = sources.places.shown(path)
    module = SyntaxTree(sources[shown].text)
    found = larger_batch(module, line, (size, factor * size), _other_texts(sources, shown))
    splices: Splices = ((shown, tuple(found)),)
    return Variant(
        name=name,
        action=f"Use {factor * size} examples a batch instead of {size}",
        files=changed_files(recording, (), splices),
        splices=splices,
        examples=Fraction(factor),
        model=f"a step has {factor * size} examples instead of {size}",
        may_keep=keep,
    )


def _batch(program: ProgramRecord) -> tuple[SourceLine, int]:
    """Return the line that sets the size of a training batch, and the size.

    Raises:
        Declined: the recording does not show it.
    """
    size = program.run.batch_size
    if program.input_kind == ARRAYS:
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


def _aligned(recording: Recording, result: Result, *, keep: bool) -> Variant | NotTried:
    """Return the variant with the widths that the finding advises, as far as the files show them."""
    remedies = result.outcome.remedies if isinstance(result.outcome, Finding) else ()
    sources, why = Sources(recording), "the finding names no width"
    made: list[tuple[Remedy, str, tuple[Splice, ...]]] = []
    for remedy in remedies:
        try:
            made.append((remedy, *_width_of(sources, remedy)))
        except Declined as reason:
            why = str(reason)
    splices: Splices = tuple((path, found) for _, path, found in made)
    try:
        files = changed_files(recording, (), splices)
    except Declined as reason:
        return NotTried(result.rule.name, str(reason))
    if not files:
        return NotTried(result.rule.name, why)
    return Variant(
        name=result.rule.name,
        action="; ".join(remedy.action for remedy, _, _ in made),
        files=files,
        splices=splices,
        rules=(result.rule.name,),
        promised=result.saving if len(made) == len(remedies) else None,
        model="layers have other widths",
        may_keep=keep,
    )


def _width_of(sources: Sources, remedy: Remedy) -> tuple[str, tuple[Splice, ...]]:
    """Return the file of a remedy, and the splices that make it.

    Raises:
        Declined: the file does not show the width.
    """
    if remedy.width is None or remedy.at is None:
        raise Declined("the line to change is unknown")
    path = remedy.at.path
    module = SyntaxTree(sources[path].text)
    numbers = remedy.width.now, remedy.width.target
    return path, tuple(width(module, remedy.at.line, numbers, _other_texts(sources, path)))


def _other_texts(sources: Sources, path: str) -> list[str]:
    """Return the texts of the other files of the run.

    Raises:
        Declined: one of them cannot be read.
    """
    shown = (sources.places.shown(recorded) for recorded in sources.hashes)
    return [sources[other].text for other in shown if other != path]
