"""The agent's look at sequences: the lengths of rows, and what it leaves alone."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tfdoctor.capture.agent.process.journal import Journal
from tfdoctor.capture.agent.program.sequences import BATCHES, MOST_ROWS, SequenceLengths


@pytest.fixture
def lengths() -> SequenceLengths:
    return SequenceLengths(Journal("unused"))


def padded(rows: list[int], steps: int = 20) -> Any:
    tokens = np.zeros((len(rows), steps), "int64")
    for at, length in enumerate(rows):
        tokens[at, :length] = range(7, 7 + length)
    return tokens


FEATURES = np.zeros((1, 20, 3), "float32")
FEATURES[0, :4, 1] = 1.0
HOLES = padded([4, 4])
HOLES[0, 0] = 0
NAMES = ("leading", "steps", "lengths", "begins", "gaps")


@pytest.mark.parametrize(
    ("batches", "entries"),
    [
        # Batches keep their own rows, and their lengths.
        ([padded([3, 20]), padded([5, 1])], [(False, [20, 20], [[3, 20], [5, 1]], 1.0, 0.0)]),
        ([padded([4, 9], 9), padded([12, 30], 30)], [(False, [9, 30], [[4, 9], [12, 30]], 1.0, 0.0)]),
        # Vectors are padding where all their features are zero.
        ([FEATURES], [(False, [20], [[4]], 1.0, 0.0)]),
        # Zeros at the beginning and between are counted.
        ([HOLES], [(False, [20], [[4, 4]], 0.5, 1 / 8)]),
        # `pad_sequences` puts the zeros first: whole numbers are read from their end as well.
        (
            [padded([4, 9])[:, ::-1]],
            [(False, [20], [[20, 20]], 0.0, 1 - 13 / 40), (True, [20], [[4, 9]], 1.0, 0.0)],
        ),
    ],
)
def test_the_rows_of_batches(lengths: SequenceLengths, batches: list[Any], entries: list[Any]) -> None:
    for batch in batches:
        lengths.batch(({"tokens": batch}, np.ones(2)))
    found = lengths.describe(None)
    assert [tuple(entry[name] for name in NAMES) for entry in found][: len(entries)] == entries
    assert (found[0]["shape"], found[0]["batches"]) == (list(batches[0].shape), True)
    assert lengths.left == BATCHES - len(batches)


def spec(dtype: str, *sizes: int | None) -> Any:
    shape = SimpleNamespace(rank=len(sizes), as_list=lambda: list(sizes))
    return SimpleNamespace(dtype=SimpleNamespace(name=dtype), shape=shape)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (spec("int32", None, None), True),
        (spec("int64", 32, 200), True),
        (spec("float32", None, None, 8), True),
        (spec("float32", None, None, None), False),
        (spec("float32", None, 28, 28, 1), False),
        (spec("float32", None, 12), False),
        (spec("int32", 4096, 4096), False),  # too large to be read while training waits
        (SimpleNamespace(shape=SimpleNamespace(rank=None), dtype=None), False),
    ],
)
def test_only_batches_of_possible_sequences_are_taken(
    lengths: SequenceLengths, given: Any, *, expected: bool
) -> None:
    assert lengths.wants([spec("float32", None), given]) is expected


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((2, 8, 8, 3), "float32"),  # images
        np.zeros((2, 8), "float32"),  # columns, or one-hot labels
        np.zeros(2, "int64"),
        np.zeros((0, 8), "int64"),
        np.zeros((2, 2_000_000), "int64"),  # too large
        "text",
        None,
    ],
)
def test_other_inputs_are_left_alone(lengths: SequenceLengths, value: Any) -> None:
    lengths.batch(value)
    assert lengths.describe(None) == []
    assert not lengths.log.errors


def test_of_the_arrays_given_to_fit_a_few_rows_are_read(lengths: SequenceLengths) -> None:
    lengths.given(SimpleNamespace(_inputs=({"x": padded([2] * 1000)}, np.zeros(1000))))
    entry, _ = lengths.describe(None)
    assert entry["lengths"] == [[2] * MOST_ROWS]
    assert entry["batches"] is False


def dataset(kept: int) -> Any:
    """A pipeline whose source slices sequences of 20, and whose batches have ``kept`` positions."""
    spec = SimpleNamespace(shape=SimpleNamespace(as_list=lambda: [None, kept]))
    source = SimpleNamespace(_tensors=[padded([2, 9])], _inputs=list)
    return SimpleNamespace(element_spec=(spec,), _inputs=lambda: [source])


@pytest.mark.parametrize(("kept", "number"), [(20, 2), (10, 0)])
def test_slices_count_if_the_batches_are_as_long(lengths: SequenceLengths, kept: int, number: int) -> None:
    assert len(lengths.describe(dataset(kept))) == number
