from tfdoctor.facts.input.training_inputs import PaddedInput
from tfdoctor.families.kit import *
from tfdoctor.rules.input.padding_waste.batch_source import BatchMaker, BatchSource

__doc__, CODE = page(__file__)

# Smallest number of calls per position of the sequence from which an operation belongs to a loop over time:
# TensorFlow does not record all of the cheap ones.
LOOPED = 0.5
MATRIX = 2  # Dimensions of what a layer makes of batch and time in one: (rows, features)
MOST_DIMENSIONS = 2  # Dimensions of time that a tensor can have: attention's scores have two

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


class Limits(RuleLimits):
    padding: float = share_limit(0.25)
    kept: float = share_limit(0.5)


class LengthWork(Record):
    """The operations that grow with the length; ``started`` is the share of all calls that loops over time make.

    Each has the number of dimensions of one of its tensors that are as long: 2 for attention's scores. None, where
    no recorded shape or loop shows it, counts as one.
    """

    growing: tuple[tuple[OperationTime, int | None], ...]
    started: float = 0.0  # 0 to 1

    @classmethod
    def measure(
        cls, padding: SequencePadding, operations: Operations, loops: LoopWork | None, program: Program | None
    ) -> Self:
        """Find the operations with a tensor or a loop as long as the longest sequences.

        A layer works on them if one of its tensors has time as a dimension of its own.
        """
        worst, rows = padding.inputs[0], operations.rows
        batch = (program.batch_size if program else None) or worst.batch_size
        least = LOOPED * worst.steps
        inside = [row for loop in (loops.loops if loops else ()) if loop.iterations >= least for row in loop.rows]
        looped = {row.name for row in (*inside, *(row for row in rows if row.calls >= least))}
        built = program.by_name.values() if program else ()
        layers = {one.layer for one in built if _dimensions(one, worst.steps, batch)}
        growing = []
        for row in rows:
            own = _dimensions(row.operation, worst.steps, batch)
            found = own or 1 if own or row.name in looped else _of_layer(row, layers)
            if found != 0:
                growing.append((row, found))
        if all(found is None for _, found in growing):
            return cls(())
        calls = sum(row.calls for row in rows)
        started = sum(row.calls for row in rows if row.name in looped)
        return cls(tuple(growing), started / calls if calls else 0.0)

    def effects(self, used: float, breakdown: Breakdown, edges_ms: float) -> Iterator[Effect]:
        """Shrink what takes longer with the length: once for each dimension of time, or in a loop over time.

        Python or TensorFlow's executor starts the operations of a loop over time, in the host's time without its
        ``edges_ms`` on the way into a call and out of it.
        """
        shrinking = [(Stage.DEVICE, used ** (long or 1), row.name, row.ms) for row, long in self.growing]
        shrinking.append((Stage.TRANSFER, used, "", breakdown["transfer"] if self.growing else 0.0))
        shrinking.append((Stage.HOST, used, StepWork.SCHEDULING, self.started * (breakdown["host"] - edges_ms)))
        for stage, left, subject, time_ms in shrinking:
            if time_ms > 0.0:
                yield Effect(stage, left, subject, ms(time_ms), bound=Bound.AT_MOST, narrows=True)


def check(  # noqa: PLR0913, PLR0917 - it needs all the facts that it names
    padding: SequencePadding, source: BatchSource, work: LengthWork, breakdown: Breakdown, program: Program | None,
    overhead: PythonOverhead | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Scale the work on sequences by the share of their positions that is used."""
    worst, wasted = padding.inputs[0], 1.0 - padding.inputs[0].used
    measures = [
        Measure.share("padding as a share of the positions", wasted, limits.padding),
        Measure("positions of the longest sequences with padding", count(worst.steps)),
    ]
    if worst.fits_batches:
        return Healthy(summary=f"{FITTING}: {percent(wasted)} of it is padding", evidence=tuple(measures))
    summary = f"Padding is {percent(wasted)} of the sequences of {worst.steps} positions"
    if wasted < limits.padding:
        return Healthy(summary=summary, evidence=tuple(measures))
    batch_size = program.batch_size if program else None
    cut = worst.cut(batch_size)
    own = cut if cut is not None and 1.0 - cut >= (1.0 - limits.kept) * wasted else None
    if cut is not None:
        measures.append(Measure.share("positions of batches padded to their own longest sequence", cut))
    # The times that the saving counts, of which some may not depend on the length.
    known_ms, unknown_ms = (
        sum(row.ms for row, long in work.growing if (long is not None) is known) for known in (True, False)
    )
    measures.append(Measure("time per step of operations that grow with the length", ms(known_ms)))
    if unknown_ms:
        measures.append(
            Measure("time per step of operations of unknown length, counted as growing", ms(unknown_ms))
        )
    beyond = {one: None if one.trimmed is None else ratio(1.0 - one.trimmed) for one in padding.inputs}
    table = Table.of(
        enumerate(padding.inputs, 1),
        ("sequences", lambda one: f"input {one[0]}"),
        ("positions", lambda one: count(one[1].steps)),
        ("padded at the", lambda one: "beginning" if one[1].leading else "end"),
        ("average length", lambda one: count(one[1].used * one[1].steps)),
        ("padding", lambda one: ratio(1.0 - one[1].used)),
        ("padding beyond the longest of a batch", lambda one: beyond[one[1]]),
    )
    return Finding(
        summary=summary,
        evidence=(*measures, table),
        remedies=_remedies(source, worst, batch_size, own_is_enough=own is not None),
        effects=tuple(work.effects(own or worst.used, breakdown, overhead.edges_ms if overhead else 0.0)),
    )


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
    own = Remedy(OWN, padded, source.at, changes="a model without a mask sees less padding")
    if len(worst.buckets) == 1:  # all have about one length
        return (own,)
    if not own_is_enough:
        return (Remedy(ACTION, by_length, source.at),)
    return own, Remedy(f"Or, for more, {ACTION[0].lower()}{ACTION[1:]}", by_length)


def _of_layer(row: OperationTime, layers: set[str]) -> int | None:
    """Return the dimensions of an operation whose shapes show none, by its layer; None is unknown."""
    tensors = (*row.operation.inputs, *row.operation.outputs) if row.operation else ()
    layer = row.layer or (row.operation.layer if row.operation else "")
    if not tensors or any(dtype == "variant" or shape is None for dtype, shape in tensors):
        return None  # a TensorList has an element for each position
    if not any(shape and shape[0] is None for _, shape in tensors):
        return 0
    if layer:
        return 1 if layer in layers else 0
    return None if any(len(shape) == MATRIX for _, shape in tensors if shape) else 0


def _dimensions(operation: Operation | None, steps: int, batch: int | None) -> int:
    """Count the dimensions of one tensor that are as long as the sequences, or open and not the batch's."""

    def of_tensor(shape: Shape) -> int:
        flat = batch is not None and shape[0] == batch * steps
        first = shape[0] == steps and shape[1:2] in {(None,), (batch,)}  # time-major
        long = sum(size is None or size == steps for size in shape[1:])
        return min(MOST_DIMENSIONS, long + (flat or (first and shape[1] is not None)))

    tensors = (*operation.inputs, *operation.outputs) if operation else ()
    return max((of_tensor(shape) for _, shape in tensors if shape), default=0)
