"""How long sequences are: the padding at one end, in the rows of batches or in a few rows of whole arrays."""

from __future__ import annotations

import collections
import math
import sys

from ..process.objects import leaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from ..process.declared import Foreign, TfDataset

    Entry = dict[str, Any]  # one input, read from one side
    Inputs = dict[tuple[int, bool], Entry]  # by the input's position and its side

MOST_ROWS = 64
MOST_BYTES = 8_000_000  # Of one input: training waits meanwhile
# Ranks of sequences: whole numbers (batch, time), or vectors of floats (batch, time, features).
FEATURES = 3
RANKS = {"int32": 2, "int64": 2, "float16": FEATURES, "float32": FEATURES, "float64": FEATURES}
# Share of rows that end with a number, twice, from which it is taken for padding: the least that padding of a
# quarter of the positions needs.
PADDED = 0.25
# Numbers that pad: of Keras and BERT, of RoBERTa, of masked labels, and of labels that losses in Hugging Face's
# library ignore (huggingface.co/docs/transformers/pad_truncation). Any other may be data, as a counter's limit.
PADS = frozenset((0, 1, -1, -100))


def any_in(specs: Iterable[Foreign]) -> bool:
    """Say whether batches of these types may have sequences that can be read; open sizes may be any."""
    for spec in specs:
        shape = getattr(spec, "shape", None)
        if shape is not None and shape.rank is not None and shape.rank == RANKS.get(spec.dtype.name):
            sizes = shape.as_list()
            if all(sizes[2:]) and _bytes(size or 1 for size in sizes) <= MOST_BYTES:
                return True
    return False


def add(inputs: Inputs, batch: object) -> None:
    """Add the inputs of a batch to those seen before."""
    for at, value in enumerate(leaves(batch)):
        pads = {side: inputs[at, side]["pad"] for side in (False, True) if (at, side) in inputs}
        for entry in _described(value, whole=True, pads=pads):
            known = inputs.setdefault((at, entry["leading"]), entry)
            if known is not entry:
                known["lengths"] += entry["lengths"]
                known["steps"] += entry["steps"]
                known["begins"] = min(known["begins"], entry["begins"])
                known["gaps"] = max(known["gaps"], entry["gaps"])
                known["mask"] = known["mask"] and entry["mask"]


def sampled(arrays: Iterable[object]) -> Iterator[Entry]:
    """Look at a few rows of arrays as large as the whole data."""
    for array in arrays:
        for value in leaves(array):
            yield from _described(value, whole=False)


def of_slices(dataset: TfDataset) -> list[Entry]:
    """Look at the arrays far upstream, where the batches still have their time dimension."""
    specs: list[Foreign] = leaves(dataset.element_spec)
    shapes = [tuple(spec.shape.as_list()[1:]) for spec in specs if getattr(spec, "shape", None)]
    sliced: list[object] = []
    waiting = [dataset]
    while waiting:
        source = waiting.pop()
        sliced += getattr(source, "_tensors", None) or ()
        waiting += source._inputs() if hasattr(source, "_inputs") else []
    return [entry for entry in sampled(sliced) if tuple(entry["shape"][1:]) in shapes]


def _described(value: Foreign, *, whole: bool, pads: Mapping[bool, int] | None = None) -> Iterator[Entry]:
    """Yield the lengths of the rows; nothing of what is no sequence, or too large.

    Whole numbers may be padded at either end, as `pad_sequences` does at the beginning: both are described.
    `pads` has what an earlier batch is padded with, by whether it comes first.
    """
    dtype, shape = _type(value)
    if RANKS.get(dtype) != len(shape) or not all(shape):
        return
    number = shape[0] if whole else min(shape[0], MOST_ROWS)
    numpy = sys.modules.get("numpy")
    is_held = hasattr(value, "numpy") or (numpy is not None and isinstance(value, numpy.ndarray))
    if not is_held or _bytes((number, *shape[1:])) > MOST_BYTES:
        return
    rows = value[:: 1 if whole else max(1, shape[0] // MOST_ROWS)][:number]
    rows = rows.numpy() if hasattr(rows, "numpy") else rows
    entry = {"dtype": dtype, "shape": list(shape)}
    if len(shape) == FEATURES:
        filled = (rows != 0).any(axis=-1)
        yield {**entry, "leading": False, "pad": 0, "mask": False, **_lengths(filled), "batches": whole}
        return
    for leading, pad in (pads or _pads(rows)).items():
        read = rows[:, ::-1] if leading else rows
        values = read[read != pad]
        mask = len(values) > 0 and bool((values == values[0]).all())
        yield {**entry, "leading": leading, "pad": pad, "mask": mask, **_lengths(read != pad), "batches": whole}


def _lengths(filled: Foreign) -> Entry:
    """Describe the rows of a batch by their positions that are not padding.

    `steps` are all positions of a row, `lengths` those without the padding at its far end. `begins` is the share of
    the rows whose first position is not padding, `gaps` that of padding among the positions that count.
    """
    steps = filled.shape[1]
    lengths = (filled.any(axis=1) * (steps - filled[:, ::-1].argmax(axis=1))).tolist()
    return {
        "steps": [steps],
        "lengths": [lengths],
        "begins": float(filled[:, 0].mean()),
        "gaps": 1.0 - int(filled.sum()) / sum(lengths) if sum(lengths) else 0.0,
    }


def _pads(rows: Foreign) -> dict[bool, int]:
    """Return what fills rows of whole numbers at their end and beginning: 0 where nothing does at either."""
    end, beginning = _pad(rows), _pad(rows[:, ::-1])
    return {
        False: next((pad for pad in (end, beginning) if pad is not None), 0),
        True: next((pad for pad in (beginning, end) if pad is not None), 0),
    }


def _pad(rows: Foreign) -> int | None:
    """Return the most frequent padding that ends rows twice, if it does so in enough of them."""
    ends = [end for end in rows[rows[:, -1] == rows[:, -2:][:, 0], -1].tolist() if end in PADS]
    (pad, number), *_ = collections.Counter(ends).most_common(1) or [(0, 0)]
    return pad if number >= PADDED * len(rows) else None


def _bytes(sizes: Iterable[int]) -> int:
    return math.prod(sizes) * 8


def _type(value: Foreign) -> tuple[str, tuple[int, ...]]:
    """Return the type and shape of an array or eager tensor; "" and () of anything else."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return "", ()
    try:
        return getattr(dtype, "name", str(dtype)), tuple(int(size) for size in shape)
    except (TypeError, ValueError):  # a dimension or the rank is open
        return "", ()
