"""Sequences are padded far beyond their length.

## What it checks

The padding at the ends, or of whole numbers also at the beginnings, of the sequences that the training is given:
whole numbers of shape (batch, time) and vectors of shape (batch, time, features). tfdoctor looks at what the first
training calls are given (a `tf.function` that trains, `train_on_batch`, the feeds of `Session.run`), whatever made
it; else at the first batches of `fit` or of a loop in Python, at the arrays given to `fit`, or at the arrays that a
dataset slices.

## Why it matters

The model computes padding like data, and masks discard the results. If the longest of all sequences sets the
length of every batch, short sequences are mostly padding; attention even takes the square of the length.

## How to fix

Pad each batch to its own longest sequence, or put sequences of similar length into the same batch (bucketing) as
well. Or cut off the few longest sequences. Bucketing changes the order of the data: shuffle before it. With
`jit_compile=True` and on a TPU give all buckets a few fixed lengths, because each new shape is compiled. A
`tf.function` that is called with arrays is traced for each new shape: round lengths up to a few. The model must
accept any length, as with `keras.Input((None,))`. The lengths in the advice are those that a quarter, half, three
quarters and all of the recorded sequences have at most, rounded up to multiples of 8.

## Holds for

TensorFlow 2, sequences that are padded at one end, with other values at the other end and hardly any padding in
between. Vectors are padded with zeros; whole numbers with zero, or with the number that fills the end of a quarter
of the rows. Masks, and rows that nearly all end at the same position, as columns of a table do, do not count.
Batches that differ in length and are each about as long as their longest sequence are
healthy: whether the rest is worth buckets depends on how random the batches have to be.

The saving is an upper bound. If batches padded to their own longest sequence keep at most half of the padding, it
is that of such batches: what they keep is computed from the recorded batches, or from the size of a batch and the
recorded lengths, as if they were drawn at random. Else it is that of buckets without padding. The share that goes
is taken of the time of the operations with a tensor or a loop as long as the sequences; of attention's scores,
the share by both dimensions; of the host, only the part that starts the operations of a loop over time, without
the cost of calling the step from Python. Buckets still contain some padding, and fixed costs of these operations
stay. Operations whose lengths are unknown count in proportion, and the finding shows their time. The time of the
input and between steps is not counted. In `fit`, batches are seen where `steps_per_execution` is 1 and no
strategy distributes the dataset. They are not seen in loops inside a `tf.function`, nor in eager loops that go over
something else than a dataset.

## Sources

- [tf.data.Dataset.bucket_by_sequence_length](https://www.tensorflow.org/api_docs/python/tf/data/Dataset)
- [Understanding masking and padding, Keras](https://keras.io/guides/understanding_masking_and_padding/)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.input.sequence_padding import PaddedInput, SequencePadding, bucketing
from tfdoctor.facts.operations.loop_work import LoopWork
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.python_overhead import PythonOverhead
from tfdoctor.rules.padding_waste.batch_source import BatchMaker, BatchSource
from tfdoctor.rules.padding_waste.length_work import LengthWork
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.units import count, ms, ratio
from tfdoctor.terms.verdict import Bound, Effect, Finding, Healthy, Measure, Remedy, Stage, StepWork, Table, Verdict

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
    padded, buckets = CODE[source.maker]
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

BUCKETS = """\
dataset = dataset.bucket_by_sequence_length(
    lambda tokens, label: tf.shape(tokens)[0],  # elements without padding
    {bucketing})"""

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

FEW = """\
LENGTHS = {lengths}  # of the recorded sequences; few, as each new shape is traced

def padded(sequences):  # those of one batch, without padding
    longest = max(map(len, sequences))
    length = next((n for n in LENGTHS if n >= longest), longest)
    return keras.utils.pad_sequences(sequences, length, padding="{side}", value={pad},
                                        dtype=np.asarray(sequences[0]).dtype)"""

DIFFERENT = """

# Keras 3 fixes a length that the first two batches share: pad the first one to another length"""

SORTED = """

def batches(lengths, batch_size):  # the indices of each batch; lengths is an array
    order = np.random.permutation(len(lengths))
    windows = np.array_split(order, -(-len(order) // (50 * batch_size)))
    similar = [window[np.argsort(lengths[window])] for window in windows]
    found = [some[at : at + batch_size] for some in similar for at in range(0, len(some), batch_size)]
"""

SHUFFLED = """\
    random.shuffle(found)
    return found

for batch in batches(lengths, batch_size):
    train_step(padded([sequences[one] for one in batch]), labels[batch])"""

ENDS_FIRST = """\
    found.sort(key=lambda batch: lengths[batch].max())
    ends = [found.pop(0), found.pop()]  # Keras 3 fixes a length that the first two batches share
    random.shuffle(found)
    return ends + found"""

CODE = {
    BatchMaker.DATASET: (PADDED, BUCKETS),
    BatchMaker.ARRAYS: (SLICED + PADDED + WITHOUT, SLICED + BUCKETS),
    BatchMaker.GIVEN: (FEW + DIFFERENT, FEW + SORTED + ENDS_FIRST),
    BatchMaker.LOOP: (FEW, FEW + SORTED + SHUFFLED),
}
"""How to pad batches to their own longest sequence, and how to make them of similar lengths, by what makes them."""


def example(
    *inputs: PaddedInput,
    rows: tuple[OperationTime, ...] = (),
    source: BatchSource = BatchSource(BatchMaker.DATASET),
    breakdown: Breakdown | None = None,
    loops: LoopWork | None = None,
    program: Program | None = None,
    overhead: PythonOverhead | None = None,
) -> Verdict:
    """Sequences of 50 words are padded to 200 for a matmul of 30 ms."""
    tensors = (("float32", (32, 200, 256)), ("float32", (256, 256)))
    graph = Operation(name="model/dense/MatMul", type="MatMul", inputs=tensors)
    matmul = OperationTime(name=graph.name, type="MatMul", ms=30.0, operation=graph)
    padding = SequencePadding(inputs or (of_length(50),))
    work = LengthWork.measure(padding, Operations(rows or (matmul,)), loops, program)
    return check(padding, source, work, breakdown or Breakdown.of(device=30.0), program, overhead)


def of_length(length: int) -> PaddedInput:
    """Build an input whose sequences are padded to the longest one of 200 positions."""
    return PaddedInput(200, ((length,) * 31 + (200,),))


sick = example


def healthy() -> Verdict:
    """Sequences of 190 words are padded to 200."""
    return example(of_length(190))
