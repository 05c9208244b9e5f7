from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.sequence_padding import PaddedInput, SequencePadding, bucketing
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
    effects = _effects(own or worst.used, work, breakdown, overhead.edges_ms if overhead else 0.0)
    return Finding(
        summary=summary,
        evidence=(*measures, *_evidence(padding, cut, work)),
        remedies=_remedies(source, worst, batch_size, own_is_enough=own is not None),
        effects=effects,
    )


def _remedies(
    source: BatchSource, worst: PaddedInput, batch_size: int | None, *, own_is_enough: bool
) -> tuple[Remedy, ...]:
    padded, buckets = PADDINGS[source.maker]
    if worst.pad and source.maker in {BatchMaker.DATASET, BatchMaker.ARRAYS}:
        padded, buckets = padded + NUMBER, buckets + NUMBER
    if worst.features and source.maker is BatchMaker.ARRAYS:  # the code is for rows of numbers
        padded = buckets = ""
    values = {
        "lengths": worst.buckets,
        "bucketing": bucketing(worst.buckets, batch_size),
        "batch_size": batch_size or "batch_size",
        "side": "pre" if worst.leading else "post",
        "pad": worst.pad,
    }
    by_length = buckets.format(**values)
    if not own_is_enough:
        return (Remedy(ACTION, by_length, source.at),)
    edit_id = "own-length" if source.maker is BatchMaker.DATASET else ""
    changes = "a model without a mask sees less padding"
    own = Remedy(OWN, padded.format(**values), source.at, edit_id, changes=changes)
    return own, Remedy(f"Or, for more, {ACTION[0].lower()}{ACTION[1:]}", by_length)


def _evidence(padding: SequencePadding, cut: float | None, work: LengthWork) -> Iterator[Measure | Table]:
    """Yield what batches of their own length use, the times that the saving counts, and the inputs.

    Some of these times may not depend on the length.
    """
    if cut is not None:
        yield Measure.share("positions of batches padded to their own longest sequence", cut)
    yield Measure("time per step of operations that grow with the length", ms(work.known_ms))
    if work.unknown_ms:
        label = "time per step of operations of unknown length, counted as growing"
        yield Measure(label, ms(work.unknown_ms))
    yield _table(padding)


def _effects(used: float, work: LengthWork, breakdown: Breakdown, edges_ms: float) -> tuple[Effect, ...]:
    """Shrink what takes longer with the length: once for each dimension of time, or in a loop over time.

    Python or TensorFlow's executor starts the operations of a loop over time, in the host's time without its
    ``edges_ms`` on the way into a call and out of it.
    """
    shrinking = [(Stage.DEVICE, used**entry.dimensions, entry.row.name, entry.row.ms) for entry in work.growing]
    shrinking.append((Stage.TRANSFER, used, "", breakdown["transfer"] if work.growing else 0.0))
    starting_ms = work.started * (breakdown["host"] - edges_ms)
    shrinking.append((Stage.HOST, used, StepWork.SCHEDULING, starting_ms))
    return tuple(
        Effect(stage, left, subject, ms(time_ms), bound=Bound.AT_MOST, narrows=True)
        for stage, left, subject, time_ms in shrinking
        if time_ms > 0.0
    )


def _table(padding: SequencePadding) -> Table:
    rows = tuple(
        (f"input {number}", count(entry.steps), "beginning" if entry.leading else "end",
         count(entry.used * entry.steps), ratio(1.0 - entry.used),
         "unknown" if (trimmed := entry.trimmed) is None else ratio(1.0 - trimmed))
        for number, entry in enumerate(padding.inputs, 1)
    )  # fmt: skip
    columns = (
        "sequences", "positions", "padded at the", "average length", "padding",
        "padding beyond the longest of a batch",
    )  # fmt: skip
    return Table(columns, rows)


FITTING = "Each batch is about as long as its longest sequence"

OWN = "Pad each batch to its own longest sequence"

ACTION = "Batch sequences of similar length, padded to the longest of their batch"

PADDED = """\
dataset = dataset.padded_batch({batch_size})  # of sequences without padding"""

NUMBER = """
# and padding_values: {pad} for the tokens, as a tensor of their type"""

SLICED = """\
# sequences: your sequences without padding, as lists or arrays; labels: theirs, in the same order
dataset = tf.data.Dataset.from_tensor_slices((tf.ragged.constant(sequences), labels))
dataset = dataset.map(lambda tokens, label: (tf.ensure_shape(tokens, (None,)), label))
dataset = dataset.shuffle(len(labels))
"""

WITHOUT = """
# or, all to the longest of all: x = keras.utils.pad_sequences(sequences), without maxlen"""

DIFFERENT = """

# Keras 3 fixes a length that the first two batches share: pad the first one to another length"""

SORTED = """

def batches(lengths, batch_size):  # the indices of each batch; lengths is an array
    order = np.random.permutation(len(lengths))
    windows = np.array_split(order, -(-len(order) // (50 * batch_size)))
    similar = [window[np.argsort(lengths[window])] for window in windows]
    found = [some[at : at + batch_size] for some in similar for at in range(0, len(some), batch_size)]
"""

PADDINGS = {
    BatchMaker.DATASET: (PADDED, CODE["buckets"]),
    BatchMaker.ARRAYS: (SLICED + PADDED + WITHOUT, SLICED + CODE["buckets"]),
    BatchMaker.GIVEN: (CODE["few"] + DIFFERENT, CODE["few"] + SORTED + CODE["ends-first"]),
    BatchMaker.LOOP: (CODE["few"], CODE["few"] + SORTED + CODE["shuffled"]),
}
"""How to pad batches to their own longest sequence, and how to make them of similar lengths, by what makes them."""
