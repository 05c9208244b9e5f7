"""What training is given in Python: arrays that each call converts, and padded sequences."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import WIDTHS, Places
from tfdoctor.facts.step_time.python_work import function_calls
from tfdoctor.facts.steps.steps import SteadySteps, Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.host_events import is_named, trainers
from tfdoctor.recording.program import FedCall, TensorType
from tfdoctor.trace.names import CONVERTED, SESSION_RUN

HELD = frozenset(("numpy", "pandas"))  # Kinds of arguments that are no tensors, so that each call converts them

NOT_CALLED = (
    "the arguments are looked at only where the script's own loop calls a tf.function, train_on_batch or "
    "Session.run, and no such call was seen in the traced steps"
)

# Bytes read and written per ms, 0.5 GB/s, at the least: a copy to memory that the system provides page by page ran
# at 12 GB/s on two cores of an EPYC, and at 3 GB/s while other programs used both. So small arrays get none of the
# time of Python's own work in Session.run, 0.1 to 0.4 ms.
SLOWEST_BYTES_PER_MS = 0.5e6

SHORTEST = 16  # Fewest positions of a sequence: shorter second dimensions are mostly columns of a table
FEWEST_ROWS = 8  # Rows below which the share of padding is chance
# Least share of rows whose first position is not padding: images and right-aligned series begin with zeros.
BEGINS = 0.98
# Batches of changing lengths fit their longest rows if cutting them to these leaves at least this share: some
# pipelines round lengths up to a few that are compiled.
FITTING = 0.9
# Largest share of padding before the ends: one-hot and sparse features have many zeros, words hardly any.
GAPS = 0.05
# Largest share of one length among the rows that end early: columns of a table that are mostly zero end nearly all
# rows at the same position.
ALIKE = 0.9
TOKENS = 2  # Dimensions of sequences of whole numbers; those of vectors have more, and no table has
# Buckets end at multiples of this: Tensor Cores take whole tiles of 8 16-bit numbers, and few lengths differ.
ROUNDED = 8
# Buckets for equal shares of the sequences; each further one saves less, and is another shape to trace.
QUARTERS = 4


class ConvertedArray(Record):
    """An argument that is converted at every call; ms per training step."""

    dtype: str
    shape: tuple[int, ...]
    host_ms: float  # within the part of a step that is marked as the call
    between_ms: float  # outside of it
    same: bool | None = None  # two calls got the same values, as far as compared; None is unknown
    cast: OperationTime | None = None  # which changes its type, and is the only one that reads it
    cast_to: str = ""
    place: str = ""  # its position or name among the arguments, see FedArgument
    fed: bool = False  # to a placeholder of that name, which has the type ``cast_to``

    @property
    def ms(self) -> float:
        """The time to convert it, in ms per step."""
        return self.host_ms + self.between_ms

    @property
    def nbytes(self) -> int:
        """Its size; 0 for types without a fixed width, as strings."""
        return prod(self.shape) * WIDTHS.get(self.dtype, 0)


class Conversions(Record):
    """The arrays of the training call at ``at``, in the order of its arguments; () where it gets only tensors."""

    arrays: tuple[ConvertedArray, ...] = ()
    at: Location | None = None

    @property
    def host_ms(self) -> float:
        """The time of all of them within the part of a step that is marked as the call, in ms per step."""
        return sum(array.host_ms for array in self.arrays)

    @classmethod
    def measure(  # noqa: PLR0913, PLR0917 - it needs all the facts that it names
        cls, trace: Trace, recording: Recording, framework: Framework, steps: Steps, activity: Activity,
        operations: Operations | None, dataflow: Dataflow | None,
    ) -> Self:  # fmt: skip
        """Find the conversions within the training function's calls, as many as it has such arguments.

        Raises:
            Unavailable: the arguments were not recorded, or their conversions do not show in the trace.
        """
        record, locate = recording.program.python if recording.program else None, Places.of(recording)
        steady, device = SteadySteps.of(steps), activity.of(Stage.DEVICE)
        lines = trainers(line for line in trace.host_lines if len(line))
        if record is not None and record.feeds is not None:
            return cls(tuple(_fed(record.feeds, lines, steps, device)), locate(record.feeds.at))
        if record is not None and record.fed is None:
            raise Unavailable(NOT_CALLED)
        fed = record.fed if record else None
        if fed is None or not all(argument.kind for argument in fed.arguments):
            raise Unavailable(f"the arguments of the training function were not recorded{framework.with_tfdoctor}")
        held = [argument for argument in fed.arguments if argument.kind in HELD]
        spans = _conversions(lines, fed.function, len(held)) if held else []
        if held and not any(spans):
            raise Unavailable("the trace does not show how the arguments' arrays are converted")
        casts, arrays = _casts(dataflow, operations) if held else {}, []
        for one, when in zip(held, spans, strict=True):
            inside, outside = steady.split_ms(Intervals.union(when) - device)
            cast = casts.get(((one.dtype, one.shape),))
            made = cast.operation.outputs[:1] if cast and cast.operation else ()
            cast_to = made[0][0] if made else ""
            arrays.append(ConvertedArray(one.dtype, one.shape, inside, outside, one.same, cast, cast_to, one.place))
        return cls(tuple(arrays), locate(fed.at))


def _fed(feeds: FedCall, lines: Iterable[Line], steps: Steps, device: Intervals) -> Iterator[ConvertedArray]:
    """Yield what Session.run is fed, prepared from the beginning of each step's call until that starts the graph.

    The time, all within the step's call, is divided by the bytes that a cast, or a copy, reads and writes for each.
    """
    named = (line.start_ps[is_named(line, SESSION_RUN.__eq__)] for line in lines)
    starts = np.sort(np.concatenate([np.zeros(0, np.int64), *named]))
    firsts = [(step, int(starts.searchsorted(step.start_ps))) for step in steps.steps]
    within = ((step, int(starts[at])) for step, at in firsts if at < len(starts))
    spans = [(step.start_ps, start) for step, start in within if start < step.call_end_ps]
    if not spans:
        raise Unavailable("the trace does not show how Session.run converts what it is fed")
    if any(array.kind == "python" for array in feeds.arguments):
        raise Unavailable("Session.run is fed lists beside arrays, and the trace does not tell their times apart")
    feeding_ms, moved = SteadySteps.of(steps).ms(Intervals.union(spans) - device), []
    for array in feeds.arguments:
        taken, given = (WIDTHS.get(dtype, 0) for dtype in (array.dtype, array.fed_as or array.dtype))
        moved.append(prod(array.shape) * (taken + given) if taken and given else 0)
    for one, part in zip(feeds.arguments, moved, strict=True):
        own_ms = min(feeding_ms * part / sum(moved), part / SLOWEST_BYTES_PER_MS) if part else 0.0
        yield ConvertedArray(one.dtype, one.shape, own_ms, 0.0, one.same, None, one.fed_as, one.place, fed=True)


def _conversions(lines: Iterable[Line], function: str, count: int) -> list[list[tuple[int, int]]]:
    """Return when each of so many arrays was converted, from the calls of a function that convert as many."""
    spans: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for line in lines:
        mask = is_named(line, CONVERTED.__eq__)
        starts = line.start_ps[mask]
        events = np.stack((starts, starts + line.duration_ps[mask]), axis=1)
        for call in function_calls(line, function).spans:
            first, last = np.searchsorted(starts, call)
            if last - first == count:
                for one, (start, end) in zip(spans, events[first:last].tolist(), strict=True):
                    one.append((start, end))
    return spans


def _casts(dataflow: Dataflow | None, operations: Operations | None) -> dict[tuple[TensorType, ...], OperationTime]:
    """Return the casts that alone read one of a function's inputs, by the type and shape of that input."""
    casts: dict[tuple[TensorType, ...], OperationTime] = {}
    if dataflow is None or operations is None:
        return casts
    rows = {row.name: row for row in operations.rows}
    for operation in dataflow.program.by_name.values():
        users = dataflow.consumers.get(operation.name, ())
        row = rows.get(users[0].name) if len(users) == 1 and users[0].type == "Cast" else None
        if operation.type == "Placeholder" and row is not None and row.operation is not None:
            casts.setdefault(operation.outputs[:1], row)
    return casts


class PaddedInput(Record):
    """One input of sequences."""

    steps: int  # positions of the longest batch
    lengths: tuple[tuple[int, ...], ...]  # how many of them each row uses, batch by batch
    batches: bool = False  # whole batches were seen; else one list is a sample of all data
    leading: bool = False  # the padding is at the beginning
    sizes: tuple[int, ...] = ()  # positions of each batch, if they were recorded
    pad: int = 0  # the number that is padding
    features: bool = False  # vectors of floats at each position, instead of whole numbers

    @property
    def buckets(self) -> tuple[int, ...]:
        """A few lengths for these rows."""
        return few_lengths(length for batch in self.lengths for length in batch)

    @property
    def batch_size(self) -> int | None:
        """The rows of the first batch; None without whole batches."""
        return len(self.lengths[0]) if self.batches and self.lengths else None

    @property
    def used(self) -> float:
        """The share of the positions that is not padding."""
        return sum(map(sum, self.lengths)) / self._positions()

    @property
    def trimmed(self) -> float | None:
        """The share that remains when each batch is cut to its own longest row; None without whole batches."""
        return self._positions([*map(max, self.lengths)]) / self._positions() if self.batches else None

    def cut(self, batch_size: int | None) -> float | None:
        """Return the share that remains when each batch is cut to its own longest row; None is unknown.

        Where no whole batch was seen, its rows count as drawn at random from the sample: the longest of n is at
        most x with the probability (share of rows of at most x)^n.
        """
        if self.batches or not batch_size:
            return self.trimmed
        rows = sorted(length for batch in self.lengths for length in batch)
        below = [(at / len(rows)) ** batch_size for at in range(len(rows) + 1)]
        longest = sum(row * (below[at + 1] - below[at]) for at, row in enumerate(rows))
        return longest / self.steps

    @property
    def fits_batches(self) -> bool:
        """Whether batches differ in their positions, and each is about as long as its own longest row."""
        trimmed = self.trimmed
        return len(set(self.sizes)) > 1 and trimmed is not None and trimmed >= FITTING

    def _positions(self, sizes: Sequence[int] = ()) -> int:
        """Return the positions of all rows, where each batch has as many as given, else as it had."""
        each = sizes or self.sizes or (self.steps,) * len(self.lengths)
        return sum(len(batch) * size for batch, size in zip(self.lengths, each, strict=True))


def few_lengths(lengths: Iterable[int]) -> tuple[int, ...]:
    """Return the lengths, rounded up, that a quarter of these has at most, two, three quarters, and all."""
    rows = sorted(lengths)
    ends = [-(-len(rows) * share // QUARTERS) - 1 for share in range(1, QUARTERS + 1)]
    return tuple(sorted({max(1, -(-rows[end] // ROUNDED)) * ROUNDED for end in ends}))


def bucketing(lengths: Sequence[int], batch_size: int | None = None, *, fixed: bool = False) -> str:
    """Return the arguments of ``bucket_by_sequence_length`` that make a bucket for each length.

    ``fixed`` pads each batch to the length of its bucket; nothing may be longer than the last then. Without
    lengths the arguments are names.
    """
    if not lengths:
        return "bucket_boundaries=boundaries, bucket_batch_sizes=batch_sizes"
    bounded = lengths if fixed else lengths[:-1]
    sizes = f"[{batch_size or 'batch_size'}] * {len(bounded) + 1}"
    boundaries = [length + 1 for length in bounded]
    return f"bucket_boundaries={boundaries}, bucket_batch_sizes={sizes}"


class SequencePadding(Record):
    """The inputs that are sequences by their values, the most padded first."""

    inputs: tuple[PaddedInput, ...]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Select the inputs whose padding is at the ends of rows.

        Raises:
            Unavailable: the inputs were not recorded, or none has values of sequences.
        """
        program = recording.program
        if program is None or program.sequences is None:
            raise Unavailable("the recording does not contain the lengths of sequences", "record the run again")
        found, inputs = False, []
        for entry in program.sequences:
            many = sum(map(len, entry.lengths)) >= FEWEST_ROWS and all(entry.lengths)
            long = len(entry.shape) > 1 and max(entry.steps, default=entry.shape[1]) >= SHORTEST
            if not (many and long and entry.begins >= BEGINS and entry.gaps <= GAPS) or entry.mask:
                continue
            found, tokens = True, len(entry.shape) <= TOKENS
            steps = entry.steps or (entry.shape[1],) * len(entry.lengths)
            batches = zip(entry.lengths, steps, strict=False)
            early = Counter(length for batch, size in batches for length in batch if length < size)
            if tokens and max(early.values(), default=0) > ALIKE * early.total():
                continue  # rows of numbers that end at one column rather than at lengths of their own
            sizes = entry.steps if len(entry.steps) == len(entry.lengths) else ()  # only where all were recorded
            longest, whole = max(sizes, default=entry.shape[1]), entry.batches
            inputs.append(PaddedInput(longest, entry.lengths, whole, entry.leading, sizes, entry.pad, not tokens))
        if found and not inputs:
            raise Unavailable(
                "nearly all rows that end early end at the same position: they are a table, or sequences that were "
                "cut to one length"
            )
        inputs = [one for one in inputs if not one.leading or one.used < 1.0]
        if not inputs:
            raise Unavailable(
                "no sequences were seen: tfdoctor looks at what the first training calls are given, at the first "
                "batches of fit and of loops in Python, at the arrays given to fit and at those that a dataset "
                "slices"
            )
        return cls(tuple(sorted(inputs, key=lambda entry: entry.used)))
