"""How long the rows of one input are: their positions without the padding at one end."""

from __future__ import annotations

import collections
import math
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypedDict

    from ..process.declared import Foreign

    class Sequences(TypedDict):
        """One input whose second dimension may be time, read from one side.

        `lengths` and `steps` have one entry for each batch seen.
        """

        dtype: str
        shape: list[int]  # of the first batch
        leading: bool  # whether rows are read from their end: their padding comes first
        pad: int  # the value that counts as padding
        mask: bool  # whether all other values are the same, as in a mask
        steps: list[int]  # positions of the rows of a batch
        lengths: list[list[int]]  # of a row: its positions without the padding at its far end
        begins: float  # share of the rows whose first position, as read, is not padding
        gaps: float  # share of padding among the positions that count
        batches: bool  # whether the rows are whole batches, else a sample of all data


MOST_ROWS = 64
MOST_BYTES = 8_000_000  # Of one input: training waits meanwhile
# Ranks of sequences: whole numbers (batch, time), or vectors of floats (batch, time, features).
TOKENS, FEATURES = 2, 3
# Share of rows that end with a number, twice, from which it is taken for padding: the least that padding of a
# quarter of the positions needs.
PADDED = 0.25
# Numbers that pad: of Keras and BERT, of RoBERTa, of masked labels, and of labels that losses in Hugging Face's
# library ignore (huggingface.co/docs/transformers/pad_truncation). Any other may be data, as a counter's limit.
PADS = frozenset((0, 1, -1, -100))
NONE: Mapping[bool, int] = {}  # Nothing is known of padding


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


def described(value: Foreign, *, whole: bool, pads: Mapping[bool, int] = NONE) -> Iterator[Sequences]:
    """Yield the lengths of the rows; nothing of what is no sequence, or too large.

    Whole numbers may be padded at either end, as `pad_sequences` does at the beginning: both are described.
    `pads` has what an earlier batch is padded with, by whether it comes first.
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
    if len(shape) == FEATURES:
        yield _described(dtype, shape, (rows != 0).any(axis=-1), whole=whole)
        return
    for leading, pad in (pads or _pads(rows)).items():
        read = rows[:, ::-1] if leading else rows
        entry = _described(dtype, shape, read != pad, whole=whole)
        values = read[read != pad]
        mask = len(values) > 0 and bool((values == values[0]).all())
        entry["leading"], entry["pad"], entry["mask"] = leading, pad, mask
        yield entry


def _described(dtype: str, shape: tuple[int, ...], filled: Foreign, *, whole: bool) -> Sequences:
    """Describe rows by their positions that are not padding."""
    lengths = (filled.any(axis=1) * (shape[1] - filled[:, ::-1].argmax(axis=1))).tolist()
    return {
        "dtype": dtype,
        "shape": list(shape),
        "leading": False,
        "pad": 0,
        "mask": False,
        "steps": [shape[1]],
        "lengths": [lengths],
        "begins": float(filled[:, 0].mean()),
        "gaps": 1.0 - int(filled.sum()) / sum(lengths) if sum(lengths) else 0.0,
        "batches": whole,
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
