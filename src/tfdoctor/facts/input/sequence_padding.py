"""How much of the sequences in the batches is padding at their ends."""

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

GAPS = 0.05
"""Largest share of zeros before the ends: one-hot and sparse features have many, words and samples hardly any."""


@dataclass(frozen=True, slots=True)
class PaddedInput:
    """One input of sequences: ``steps`` positions, of which each row uses ``lengths``, batch by batch.

    ``batches`` says whether whole batches were seen; else one list is a sample of all data.
    """

    steps: int
    lengths: tuple[tuple[int, ...], ...]
    batches: bool = False

    @property
    def used(self) -> float:
        """The share of the positions that is not padding."""
        rows = [length for batch in self.lengths for length in batch]
        return sum(rows) / (len(rows) * self.steps)

    @property
    def trimmed(self) -> float | None:
        """The share that remains when each batch is cut to its own longest row; None without whole batches."""
        if not self.batches:
            return None
        return sum(max(batch) for batch in self.lengths) / (len(self.lengths) * self.steps)


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
        if not inputs:
            raise Unavailable(
                "no sequences were seen in the batches of a loop, in the arrays given to fit or in those that "
                "a dataset slices"
            )
        return cls(tuple(sorted(inputs, key=lambda entry: entry.used)))


def _is_sequence(entry: RecordedSequences) -> bool:
    rows = sum(len(batch) for batch in entry.lengths)
    return (
        len(entry.shape) > 1
        and entry.shape[1] >= SHORTEST
        and rows >= FEWEST_ROWS
        and all(entry.lengths)
        and entry.begins >= BEGINS
        and entry.gaps <= GAPS
    )


def _input(entry: RecordedSequences) -> PaddedInput:
    return PaddedInput(entry.shape[1], entry.lengths, entry.batches)
