"""How much of the sequences in the batches is padding at one of their ends."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.recording import Recording
from tfdoctor.recording.program import RecordedSequences

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


@dataclass(frozen=True, slots=True)
class PaddedInput:
    """One input of sequences: ``steps`` positions, of which each row uses ``lengths``, batch by batch.

    ``batches`` says whether whole batches were seen; else one list is a sample of all data. ``sizes`` are the
    positions of each batch, if they were recorded; ``steps`` are those of the longest. ``leading`` says
    that the padding is at the beginning, ``pad`` which number it is.
    """

    steps: int
    lengths: tuple[tuple[int, ...], ...]
    batches: bool = False
    leading: bool = False
    sizes: tuple[int, ...] = ()
    pad: int = 0
    features: bool = False  # vectors of floats at each position, instead of whole numbers

    @classmethod
    def of(cls, entry: RecordedSequences) -> Self:
        """Read a recorded input; the sizes of its batches count only where all were recorded."""
        sizes = entry.steps if len(entry.steps) == len(entry.lengths) else ()
        longest, features = max(sizes, default=entry.shape[1]), len(entry.shape) > TOKENS
        return cls(longest, entry.lengths, entry.batches, entry.leading, sizes, entry.pad, features)

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
        return sum(map(sum, self.lengths)) / self._positions(self._sizes)

    @property
    def trimmed(self) -> float | None:
        """The share that remains when each batch is cut to its own longest row; None without whole batches."""
        if not self.batches:
            return None
        return self._positions(map(max, self.lengths)) / self._positions(self._sizes)

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
        return len(set(self._sizes)) > 1 and trimmed is not None and trimmed >= FITTING

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.sizes or (self.steps,) * len(self.lengths)

    def _positions(self, sizes: Iterable[int]) -> int:
        """Return the positions of all rows, where each batch has as many as given."""
        return sum(len(batch) * size for batch, size in zip(self.lengths, sizes, strict=True))


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


@dataclass(frozen=True, slots=True)
class SequencePadding:
    """The inputs that are sequences by their values, the most padded first."""

    inputs: tuple[PaddedInput, ...]

    @property
    def buckets(self) -> tuple[int, ...]:
        """A few lengths for the most padded input."""
        return self.inputs[0].buckets

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Select the inputs whose padding is at the ends of rows.

        Raises:
            Unavailable: the inputs were not recorded, or none has values of sequences.
        """
        program = recording.program
        if program is None or program.sequences is None:
            raise Unavailable("the recording does not contain the lengths of sequences", "record the run again")
        found = [entry for entry in program.sequences if _is_sequence(entry)]
        inputs = [PaddedInput.of(entry) for entry in found if not _is_table(entry)]
        if found and not inputs:
            raise Unavailable(
                "nearly all rows that end early end at the same position: they are a table, or sequences that were "
                "cut to one length"
            )
        inputs = [entry for entry in inputs if not entry.leading or entry.used < 1.0]
        if not inputs:
            raise Unavailable(
                "no sequences were seen: tfdoctor looks at what the first training calls are given, at the first "
                "batches of fit and of loops in Python, at the arrays given to fit and at those that a dataset "
                "slices"
            )
        return cls(tuple(sorted(inputs, key=lambda entry: entry.used)))


def _is_sequence(entry: RecordedSequences) -> bool:
    many = sum(map(len, entry.lengths)) >= FEWEST_ROWS and all(entry.lengths)
    long = len(entry.shape) > 1 and max(entry.steps, default=entry.shape[1]) >= SHORTEST
    return many and long and entry.begins >= BEGINS and entry.gaps <= GAPS and not entry.mask


def _is_table(entry: RecordedSequences) -> bool:
    """Whether rows of numbers end at one column rather than at lengths of their own."""
    sizes = entry.steps or (entry.shape[1],) * len(entry.lengths)
    batches = zip(entry.lengths, sizes, strict=False)
    early = Counter(length for batch, size in batches for length in batch if length < size)
    most = max(early.values(), default=0)
    return len(entry.shape) <= TOKENS and most > ALIKE * early.total()
