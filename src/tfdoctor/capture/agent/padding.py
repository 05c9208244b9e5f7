"""How long the sequences are that the training is given: the zeros at one end, in a few rows of each input."""

from __future__ import annotations

import math
import sys

from .journal import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypedDict

    from .declared import Foreign, TfDataset
    from .journal import Journal

    class Sequences(TypedDict):
        """One input whose second dimension may be time, read from one side.

        `lengths` and `steps` have one entry for each batch seen.
        """

        dtype: str
        shape: list[int]  # of the first batch
        leading: bool  # whether rows are read from their end: their zeros come first
        steps: list[int]  # positions of the rows of a batch
        lengths: list[list[int]]  # of a row: its positions without the zeros at its far end
        begins: float  # share of the rows whose first position, as read, is not zero
        gaps: float  # share of zeros among the positions that count
        batches: bool  # whether the rows are whole batches, else a sample of all data


BATCHES = 4
"""Batches that are looked at, before the window opens."""

MOST_ROWS = 64
MOST_BYTES = 8_000_000
"""Of one input: training waits meanwhile."""

TOKENS, FEATURES = 2, 3
"""Ranks of sequences: whole numbers (batch, time), or vectors of floats (batch, time, features)."""


class SequenceLengths:
    """The lengths of the sequences in the first batches of a loop, or in the arrays that it goes over."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.again()

    def again(self) -> None:
        """A recording begins."""
        self.left = BATCHES
        self.seen: dict[tuple[int, bool], Sequences] = {}  # by the input's position and its side
        self.arrays: list[Sequences] = []

    def wants(self, specs: Iterable[Foreign]) -> bool:
        """Say whether batches of these types are worth to be taken before fit takes them."""
        return may_be_sequences(specs)

    @guarded("sequence lengths")
    def batch(self, batch: object) -> None:
        """Look at a batch of a loop over a dataset, or of one that fit was given."""
        self.left -= 1
        for at, value in enumerate(_flat(batch)):
            for entry in _described(value, whole=True):
                known = self.seen.setdefault((at, entry["leading"]), entry)
                if known is not entry:
                    known["lengths"] += entry["lengths"]
                    known["steps"] += entry["steps"]
                    known["begins"] = min(known["begins"], entry["begins"])
                    known["gaps"] = max(known["gaps"], entry["gaps"])

    @guarded("sequence lengths")
    def given(self, adapter: object) -> None:
        """Look at the arrays that Keras's fit was given."""
        arrays = getattr(adapter, "_inputs", None)
        self.arrays = _all(_flat(getattr(array, "array", array)) for array in _flat(arrays))

    def describe(self, dataset: TfDataset | None) -> list[Sequences]:
        """Return what was seen: of batches, else of fit's arrays, else of those that a dataset slices."""
        if self.seen:
            return list(self.seen.values())
        return self.arrays or _of_slices(dataset)


def _all(groups: Iterable[Iterable[object]]) -> list[Sequences]:
    return [
        entry for group in groups for value in group for entry in _described(value, whole=False)
    ]


def _of_slices(dataset: TfDataset | None) -> list[Sequences]:
    """Look at the arrays far upstream, where the batches still have their time dimension."""
    if dataset is None:
        return []
    specs: list[Foreign] = _flat(dataset.element_spec)
    shapes = [tuple(spec.shape.as_list()[1:]) for spec in specs if getattr(spec, "shape", None)]
    entries = _all(_flat(tensors) for tensors in _sliced(dataset))
    return [entry for entry in entries if tuple(entry["shape"][1:]) in shapes]


def _sliced(dataset: TfDataset) -> Iterator[Sequence[object]]:
    """Yield the tensors that the datasets upstream were made from."""
    waiting = [dataset]
    while waiting:
        source = waiting.pop()
        yield getattr(source, "_tensors", None) or ()
        waiting += source._inputs() if hasattr(source, "_inputs") else []


def _flat(value: object) -> list[object]:
    """Return the leaves of nested tuples, lists and dictionaries."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (tuple, list)):
        return [] if value is None else [value]
    return [leaf for part in value for leaf in _flat(part)]


def may_be_sequences(specs: Iterable[Foreign]) -> bool:
    """Say whether batches of these types contain sequences that are worth a look; an open size may be any."""
    for spec in specs:
        shape = getattr(spec, "shape", None)
        if shape is not None and shape.rank is not None and _is_ranked(spec.dtype.name, shape.rank):
            sizes = [size or 1 for size in shape.as_list()]
            if all(shape.as_list()[2:]) and _bytes(sizes) <= MOST_BYTES:
                return True
    return False


def _is_ranked(dtype: str, rank: int) -> bool:
    """Say whether values are whole numbers by batch and time, or vectors by batch and time."""
    whole = rank == TOKENS and dtype in ("int32", "int64")
    return whole or (rank == FEATURES and dtype in ("float16", "float32", "float64"))


def _bytes(sizes: Iterable[int]) -> int:
    return math.prod(sizes) * 8


def _described(value: Foreign, *, whole: bool) -> Iterator[Sequences]:
    """Yield the lengths of the rows; nothing of what is no sequence, or too large.

    Whole numbers may be padded at either end, as `pad_sequences` does at the beginning: both are described.
    """
    dtype, shape = _type(value)
    if not _is_ranked(dtype, len(shape)) or not all(shape):
        return
    number = shape[0] if whole else min(shape[0], MOST_ROWS)
    is_held = hasattr(value, "numpy") or _is_numpy(value)
    if not is_held or _bytes((number, *shape[1:])) > MOST_BYTES:
        return
    rows = value[:: 1 if whole else max(1, shape[0] // MOST_ROWS)][:number]
    rows = rows.numpy() if hasattr(rows, "numpy") else rows
    filled = (rows != 0).any(axis=-1) if len(shape) == FEATURES else rows != 0
    for leading in (False, True) if len(shape) == TOKENS else (False,):
        read = filled[:, ::-1] if leading else filled
        lengths = [int(row.nonzero()[0][-1]) + 1 if row.any() else 0 for row in read]
        yield {
            "dtype": dtype,
            "shape": list(shape),
            "leading": leading,
            "steps": [shape[1]],
            "lengths": [lengths],
            "begins": float(read[:, 0].mean()),
            "gaps": 1.0 - int(filled.sum()) / sum(lengths) if sum(lengths) else 0.0,
            "batches": whole,
        }


def _is_numpy(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _type(value: Foreign) -> tuple[str, tuple[int, ...]]:
    """Return the type and shape of an array or eager tensor; "" and () of anything else."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return "", ()
    try:
        return getattr(dtype, "name", str(dtype)), tuple(int(size) for size in shape)
    except (TypeError, ValueError):  # a dimension or the rank is open
        return "", ()
