"""Buffers: what shuffle, cache and prefetch hold, and where the same elements are smaller."""

from collections.abc import Mapping
from typing import Any

import pytest

from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.run.program import Dataset, DatasetParameters
from tfdoctor.rules.late_shrink import PATH_BYTES, Buffer, Buffers

WIDE, NARROW = "shape=(100, 100, 3), dtype=tf.float32", "shape=(100, 100, 3), dtype=tf.uint8"
SMALL, TEXT = "shape=(10, 10, 3), dtype=tf.uint8", "shape=(), dtype=tf.string"
MUL = frozenset(("Cast", "Mul", "Placeholder"))
COUNT = 500

Step = tuple[str, str, Mapping[str, Any]]


def step(kind: str, tensor: str, **more: Any) -> Step:
    return kind, tensor, more


def mapped(tensor: str, types: frozenset[str] = MUL, stateful: frozenset[str] = frozenset()) -> Step:
    return step("ParallelMap", tensor, function="f", types=types, stateful=stateful)


def shuffled(tensor: str, size: int = 200) -> Step:
    return step("Shuffle", tensor, parameters=DatasetParameters(buffer_size=size))


def measured(*steps: Step) -> Buffers:
    """Measure a pipeline that is written in the order of its code."""
    chain = [
        Dataset(
            **{
                "id": at,
                "kind": f"_{kind}Dataset",
                "inputs": (at - 1,) if at else (),
                "element": f"TensorSpec({tensor}, name=None)",
                "cardinality": COUNT,
                **more,
            }
        )
        for at, (kind, tensor, more) in enumerate(steps)
    ]
    return Buffers.measure(DatasetProperties(tuple(reversed(chain))))


def only(*steps: Step) -> Buffer:
    (found,) = measured(*steps).known
    return found


def test_a_map_before_the_buffer_that_makes_elements_larger() -> None:
    found = only(step("TensorSlice", NARROW), mapped(WIDE), shuffled(WIDE))
    assert (found.elements, found.each, found.least, found.grows) == (200, 120_000, 30_000, True)
    assert found.by is not None
    assert found.by.id == 1
    assert (found.nbytes, found.spared) == (24_000_000, 18_000_000)


def test_a_map_behind_the_buffer_that_makes_them_smaller() -> None:
    found = only(step("TFRecord", TEXT), mapped(NARROW), shuffled(NARROW), mapped(SMALL))
    assert (found.each, found.least, found.grows) == (30_000, 300, False)


def test_the_smallest_form_counts_across_several_maps() -> None:
    found = only(step("TFRecord", TEXT), mapped(SMALL), mapped(NARROW), mapped(WIDE), shuffled(WIDE))
    assert found.least == 300


def test_of_a_file_that_a_map_reads_there_was_a_name_before() -> None:
    decode = mapped(WIDE, frozenset(("ReadFile", "DecodeJpeg")))
    found = only(step("TensorSlice", TEXT), decode, shuffled(WIDE))
    assert found.least == PATH_BYTES


def test_nobody_knows_whether_encoded_records_are_smaller() -> None:
    found = only(step("TFRecord", TEXT), mapped(WIDE, frozenset(("DecodeJpeg",))), shuffled(WIDE))
    assert found.spared == 0
    assert found.by is None


def test_a_shuffle_never_moves_before_a_cache() -> None:
    """It would be the same order in every epoch; and the cache holds its elements anyway."""
    source = step("TensorSlice", NARROW)
    behind_cache = measured(source, mapped(WIDE), step("Cache", WIDE), shuffled(WIDE))
    behind_map = measured(source, step("Cache", NARROW), mapped(WIDE), shuffled(WIDE))
    assert [one.dataset.kind for one in behind_cache.known] == ["_CacheDataset"]
    assert [one.least for one in behind_map.known] == [30_000]


@pytest.mark.parametrize(("types", "least"), [(MUL, 30_000), (MUL | {"ResizeArea"}, 120_000), (None, 120_000)])
def test_a_cache_moves_only_before_functions_that_cost_nothing(types: frozenset[str] | None, least: int) -> None:
    cast = step("Map", WIDE, function="f", types=types)
    found = only(step("TFRecord", TEXT), mapped(NARROW), cast, step("Cache", WIDE))
    assert found.least == least


@pytest.mark.parametrize(
    ("types", "least"), [(frozenset(("ResizeArea",)), 300), (frozenset(("RandomUniformInt",)), 30_000)]
)
def test_a_cache_never_moves_behind_what_is_random(types: frozenset[str], least: int) -> None:
    crop = mapped(SMALL, types, frozenset(one for one in types if "Random" in one))
    found = only(step("TFRecord", TEXT), mapped(NARROW), step("Cache", NARROW), crop)
    assert found.least == least


def test_elements_that_are_in_memory_anyway_do_not_count() -> None:
    found = measured(step("TensorSlice", WIDE), shuffled(WIDE), mapped(SMALL))
    assert (found.known, found.unknown) == ((), ())


def test_batches_end_the_search() -> None:
    batch = step("Batch", "shape=(None, 10, 10, 3), dtype=tf.uint8", parameters=DatasetParameters(batch_size=8))
    found = only(step("TFRecord", TEXT), mapped(WIDE), shuffled(WIDE), batch, mapped(SMALL))
    assert found.spared == 0


def test_a_buffer_larger_than_the_data_holds_the_data() -> None:
    found = only(step("TensorSlice", NARROW), mapped(WIDE), shuffled(WIDE, size=10_000))
    assert found.elements == COUNT


def test_a_repetition_fills_a_buffer_that_is_larger_than_the_data() -> None:
    found = only(
        step("TensorSlice", NARROW),
        mapped(WIDE),
        step("Repeat", WIDE, cardinality=-1),
        step("Shuffle", WIDE, cardinality=-1, parameters=DatasetParameters(buffer_size=10_000)),
    )
    assert found.elements == 10_000


def test_a_prefetch_stays_at_the_end() -> None:
    ahead = step("Prefetch", WIDE, parameters=DatasetParameters(buffer_size=300))
    tuned = step("Prefetch", WIDE, parameters=DatasetParameters(buffer_size=-1))
    (found,) = measured(step("TensorSlice", NARROW), mapped(WIDE), ahead, tuned).known
    assert (found.elements, found.spared) == (300, 0)


@pytest.mark.parametrize("tensor", [TEXT, "shape=(None, 4, 4), dtype=tf.uint8"])
def test_buffers_of_elements_without_a_known_size_are_named(tensor: str) -> None:
    found = measured(step("TFRecord", TEXT), mapped(tensor), shuffled(tensor))
    assert [one.kind for one in found.unknown] == ["_ShuffleDataset"]
