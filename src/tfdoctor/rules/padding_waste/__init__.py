from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.training_inputs import PaddedInput, SequencePadding, bucketing
from tfdoctor.facts.step_time.python_overhead import PythonOverhead
from tfdoctor.rules.padding_waste.batch_source import BatchMaker, BatchSource
from tfdoctor.rules.padding_waste.length_work import LengthWork

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "which length each batch gets changes the order of the examples"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much padding is reported."""

    padding: float = share_limit(
        0.25, "Smallest share of padding that justifies bucketing: buckets of similar length contain some as well"
    )
    kept: float = share_limit(
        0.5,
        "Largest share of the padding that batches padded to their own longest sequence keep where that is the "
        "advice: it needs no change of the order; of more, buckets save most",
    )


def check(  # noqa: PLR0913, PLR0917 - it needs all the facts that it names
    padding: SequencePadding,
    source: BatchSource,
    work: LengthWork,
    breakdown: Breakdown,
    program: Program | None,
    overhead: PythonOverhead | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Scale the work on sequences by the share of their positions that is used."""
    worst, wasted = padding.inputs[0], 1.0 - padding.inputs[0].used
    measures = (
        Measure.share("padding as a share of the positions", wasted, limits.padding),
        Measure("positions of the longest sequences with padding", count(worst.steps)),
    )
    if worst.fits_batches:
        return Healthy(summary=f"{FITTING}: {percent(wasted)} of it is padding", evidence=measures)
    summary = f"Padding is {percent(wasted)} of the sequences of {worst.steps} positions"
    if wasted < limits.padding:
        return Healthy(summary=summary, evidence=measures)
    batch_size = program.batch_size if program else None
    cut = worst.cut(batch_size)
    own = cut if cut is not None and 1.0 - cut >= (1.0 - limits.kept) * wasted else None
    return Finding(
        summary=summary,
        evidence=(*measures, *_evidence(padding, cut, work)),
        remedies=_remedies(source, worst, batch_size, own_is_enough=own is not None),
        effects=tuple(_effects(own or worst.used, work, breakdown, overhead.edges_ms if overhead else 0.0)),
    )


FITTING = "Each batch is about as long as its longest sequence"

OWN = "Pad each batch to its own longest sequence"

ACTION = "Batch sequences of similar length, padded to the longest of their batch"

# How to pad batches to their own longest sequence, and how to make them of similar lengths, by what makes them.
PADDINGS = {
    BatchMaker.DATASET: (["padded"], ["buckets"]),
    BatchMaker.ARRAYS: (["sliced", "padded", "without"], ["sliced", "buckets"]),
    BatchMaker.GIVEN: (["few", "different"], ["few", "sorted", "ends-first"]),
    BatchMaker.LOOP: (["few"], ["few", "sorted", "shuffled"]),
}


def _remedies(
    source: BatchSource, worst: PaddedInput, batch_size: int | None, *, own_is_enough: bool
) -> tuple[Remedy, ...]:
    number = ["number"] if worst.pad and source.maker in {BatchMaker.DATASET, BatchMaker.ARRAYS} else []
    of_rows = worst.features and source.maker is BatchMaker.ARRAYS  # the code is for rows of numbers
    values = {
        "lengths": worst.buckets,
        "bucketing": bucketing(worst.buckets, batch_size),
        "batch_size": batch_size or "batch_size",
        "side": "pre" if worst.leading else "post",
        "pad": worst.pad,
    }
    padded, by_length = (
        "" if of_rows else "\n".join(CODE[name] for name in (*names, *number)).format(**values)
        for names in PADDINGS[source.maker]
    )
    if not own_is_enough:
        return (Remedy(ACTION, by_length, source.at),)
    edit_id = "own-length" if source.maker is BatchMaker.DATASET else ""
    changes = "a model without a mask sees less padding"
    own = Remedy(OWN, padded, source.at, edit_id, changes=changes)
    return own, Remedy(f"Or, for more, {ACTION[0].lower()}{ACTION[1:]}", by_length)


def _evidence(padding: SequencePadding, cut: float | None, work: LengthWork) -> Iterator[Measure | Table]:
    """Yield what batches of their own length use, the times that the saving counts, and the inputs.

    Some of these times may not depend on the length.
    """
    if cut is not None:
        yield Measure.share("positions of batches padded to their own longest sequence", cut)
    times = {known: sum(one.row.ms for one in work.growing if one.known is known) for known in (True, False)}
    yield Measure("time per step of operations that grow with the length", ms(times[True]))
    if times[False]:
        yield Measure("time per step of operations of unknown length, counted as growing", ms(times[False]))
    yield Table.of(
        enumerate(padding.inputs, 1),
        ("sequences", lambda one: f"input {one[0]}"),
        ("positions", lambda one: count(one[1].steps)),
        ("padded at the", lambda one: "beginning" if one[1].leading else "end"),
        ("average length", lambda one: count(one[1].used * one[1].steps)),
        ("padding", lambda one: ratio(1.0 - one[1].used)),
        (
            "padding beyond the longest of a batch",
            lambda one: None if one[1].trimmed is None else ratio(1.0 - one[1].trimmed),
        ),
    )


def _effects(used: float, work: LengthWork, breakdown: Breakdown, edges_ms: float) -> Iterator[Effect]:
    """Shrink what takes longer with the length: once for each dimension of time, or in a loop over time.

    Python or TensorFlow's executor starts the operations of a loop over time, in the host's time without its
    ``edges_ms`` on the way into a call and out of it.
    """
    shrinking = [(Stage.DEVICE, used**entry.dimensions, entry.row.name, entry.row.ms) for entry in work.growing]
    shrinking.append((Stage.TRANSFER, used, "", breakdown["transfer"] if work.growing else 0.0))
    shrinking.append((Stage.HOST, used, StepWork.SCHEDULING, work.started * (breakdown["host"] - edges_ms)))
    for stage, left, subject, time_ms in shrinking:
        if time_ms > 0.0:
            yield Effect(stage, left, subject, ms(time_ms), bound=Bound.AT_MOST, narrows=True)
