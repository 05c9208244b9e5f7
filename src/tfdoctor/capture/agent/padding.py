"""How long the sequences are that the training is given: the zeros at their ends, in a few rows of each input."""

from __future__ import annotations

import sys

from .journal import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypedDict

    from .declared import Foreign, TfDataset
    from .journal import Journal

    class Sequences(TypedDict):
        """One input whose second dimension may be time; `lengths` has one list for each batch seen."""

        dtype: str
        shape: list[int]
        lengths: list[list[int]]  # of a row: its positions up to the last that is not zero
        begins: float  # share of the rows whose first position is not zero
        gaps: float  # share of zeros among the positions before the ends
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
        self.seen: dict[int, Sequences] = {}  # by the position of the input
        self.arrays: list[Sequences] = []

    @guarded("sequence lengths")
    def batch(self, batch: object) -> None:
        """Look at a batch of a loop over a dataset."""
        self.left -= 1
        for at, value in enumerate(_flat(batch)):
            entry = _described(value, whole=True)
            if entry is None:
                continue
            known = self.seen.setdefault(at, entry)
            if known is not entry:
                known["lengths"] += entry["lengths"]
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
    entries = (_described(value, whole=False) for group in groups for value in group)
    return [entry for entry in entries if entry is not None]


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


def _described(value: Foreign, *, whole: bool) -> Sequences | None:
    """Return the lengths of the rows; None of what is no sequence, or too large."""
    dtype, shape = _type(value)
    is_sequence = (len(shape) == TOKENS and dtype in ("int32", "int64")) or (
        len(shape) == FEATURES and dtype in ("float16", "float32", "float64")
    )
    if not is_sequence or not all(shape):
        return None
    stride = 1 if whole else max(1, shape[0] // MOST_ROWS)
    rows = value[::stride][: shape[0] if whole else MOST_ROWS]
    row_bytes = 8
    for size in shape[1:]:
        row_bytes *= size
    if row_bytes * len(rows) > MOST_BYTES or (not hasattr(value, "numpy") and not _is_numpy(value)):
        return None
    rows = rows.numpy() if hasattr(rows, "numpy") else rows
    filled = (rows != 0).any(axis=-1) if len(shape) == FEATURES else rows != 0
    lengths = [int(row.nonzero()[0][-1]) + 1 if row.any() else 0 for row in filled]
    positions = sum(lengths)
    return {
        "dtype": dtype,
        "shape": list(shape),
        "lengths": [lengths],
        "begins": float(filled[:, 0].mean()),
        "gaps": 1.0 - int(filled.sum()) / positions if positions else 0.0,
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
