"""How much of the sequences in the batches is padding at one of their ends."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.recording import Recording
from tfdoctor.recording.program import RecordedSequences

SHORTEST = 16
"""Fewest positions of a sequence: shorter second dimensions are mostly columns of a table."""

FEWEST_ROWS = 8
"""Rows below which the share of padding is chance."""

BEGINS = 0.98
"""Least share of rows whose first position is not zero: images and right-aligned series begin with zeros."""

FITTING = 0.9
"""Least share that cutting batches to their own longest row leaves of those that have no fixed length: some
pipelines round lengths up to a few that are compiled."""

GAPS = 0.05
"""Largest share of zeros before the ends: one-hot and sparse features have many, words and samples hardly any."""


@dataclass(frozen=True, slots=True)
class PaddedInput:
    """One input of sequences: ``steps`` positions, of which each row uses ``lengths``, batch by batch.

    ``batches`` says whether whole batches were seen; else one list is a sample of all data. ``sizes`` are the
    positions of each batch, if they were recorded; ``steps`` are those of the longest. ``leading`` says
    that the padding is at the beginning.
    """

    steps: int
    lengths: tuple[tuple[int, ...], ...]
    batches: bool = False
    leading: bool = False
    sizes: tuple[int, ...] = ()

    @property
    def used(self) -> float:
        """The share of the positions that is not padding."""
        return sum(sum(batch) for batch in self.lengths) / self._positions(self._sizes)

    @property
    def trimmed(self) -> float | None:
        """The share that remains when each batch is cut to its own longest row; None without whole batches."""
        if not self.batches:
            return None
        longest = [max(batch) for batch in self.lengths]
        return self._positions(longest) / self._positions(self._sizes)

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


@dataclass(frozen=True, slots=True)
class SequencePadding:
    """The inputs that are sequences by their values, the most padded first."""

    inputs: tuple[PaddedInput, ...]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Select the inputs whose zeros are at the ends of rows.

        Raises:
            Unavailable: the inputs were not recorded, or none has values of sequences.
        """
        program = recording.program
        if program is None or program.sequences is None:
            raise Unavailable(
                "the recording does not contain the lengths of sequences", "record the run again"
            )
        inputs = [_input(entry) for entry in program.sequences if _is_sequence(entry)]
        inputs = [entry for entry in inputs if not entry.leading or entry.used < 1.0]
        if not inputs:
            raise Unavailable(
                "no sequences were seen: tfdoctor looks at the first batches of fit and of loops in Python, at the "
                "arrays given to fit and at those that a dataset slices"
            )
        return cls(tuple(sorted(inputs, key=lambda entry: entry.used)))


def _is_sequence(entry: RecordedSequences) -> bool:
    rows = sum(len(batch) for batch in entry.lengths)
    return (
        len(entry.shape) > 1
        and max(entry.steps, default=entry.shape[1]) >= SHORTEST
        and rows >= FEWEST_ROWS
        and all(entry.lengths)
        and entry.begins >= BEGINS
        and entry.gaps <= GAPS
    )


def _input(entry: RecordedSequences) -> PaddedInput:
    recorded = len(entry.steps) == len(entry.lengths)
    sizes = entry.steps if recorded else ()
    longest = max(sizes, default=entry.shape[1])
    return PaddedInput(longest, entry.lengths, entry.batches, entry.leading, sizes)
