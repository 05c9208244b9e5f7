"""What datasets are like, from the record that the agent wrote."""

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import manifest, recording
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.dataset_properties import DatasetProperties, repeatable, spec_bytes
from tfdoctor.facts.input.iterators import Iterators, Node
from tfdoctor.facts.run.program import Dataset, DatasetParameters, Program, RunSettings, kind_of
from tfdoctor.recording.agent import StepsSeen
from tfdoctor.recording.manifest import CapturePlan

IMAGE = "TensorSpec(shape=(48, 48, 3), dtype=tf.float32, name=None)"
LABEL = "TensorSpec(shape=(), dtype=tf.int64, name=None)"
PAIR = f"({IMAGE}, {LABEL})"
BATCHED = "TensorSpec(shape=(None, 48, 48, 3), dtype=tf.float32, name=None)"


def dataset(number: int, kind: str, **more: Any) -> Dataset:
    inputs = (number - 1,) if number else ()
    return Dataset(id=number, kind=kind, **({"inputs": inputs, "cardinality": 320} | more))


def properties(*datasets: Dataset, seen: int = 0, stop_after: bool = False, **settings: Any) -> DatasetProperties:
    """The datasets stand source first."""
    program = Program(datasets=datasets, feeds=datasets[-1].id, settings=RunSettings(**settings))
    told = manifest(steps=StepsSeen(seen=seen), plan=CapturePlan(stop_after=stop_after))
    return DatasetProperties.measure(program, recording(manifest=told), None)


SOURCE = dataset(0, "_TensorSliceDataset")


@pytest.mark.parametrize(
    ("spec", "batch", "size"),
    [
        (PAIR, None, 48 * 48 * 3 * 4 + 8),
        (LABEL, None, 8),
        (BATCHED, 32, 32 * 48 * 48 * 3 * 4),
        (BATCHED, None, None),
        ("TensorSpec(shape=(None, None, 3), dtype=tf.uint8, name=None)", 32, None),
        ("TensorSpec(shape=(), dtype=tf.string, name=None)", None, None),
        (f"({IMAGE}, RaggedTensorSpec(TensorShape([None]), tf.int32, 1, tf.int64))", None, None),
        ("TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)", None, None),
        ("", None, None),
        (f"({', '.join([LABEL] * 20)}"[:500], None, None),
    ],
)
def test_the_bytes_of_an_element(spec: str, batch: int | None, size: int | None) -> None:
    assert spec_bytes(spec, batch) == size


@pytest.mark.parametrize("name", ["_ParallelMapDataset", "ParallelMapDataset"])
def test_a_kind_has_one_name_in_all_versions(name: str) -> None:
    assert kind_of(Dataset(id=0, kind=name)) == "ParallelMap"
    assert kind_of(Dataset(id=0, kind="TextLineDatasetV2")) == "TextLine"


@pytest.mark.parametrize(
    ("types", "stateful", "same"),
    [
        ({"Cast", "DecodePng"}, set(), True),
        ({"RandomUniform", "Cast"}, {"RandomUniform"}, False),
        ({"StatelessRandomUniformV2"}, set(), False),
        ({"SampleDistortedBoundingBoxV2"}, {"SampleDistortedBoundingBoxV2"}, False),
        ({"Assert", "If", "LookupTableFindV2"}, {"Assert", "If", "LookupTableFindV2"}, True),
        ({"TFRecordDataset"}, {"TFRecordDataset"}, True),
        ({"ReadVariableOp"}, {"ReadVariableOp"}, None),
        ({"EagerPyFunc"}, {"EagerPyFunc"}, None),
        (None, None, None),
    ],
)
def test_whether_a_function_does_the_same_each_time(
    *, types: set[str] | None, stateful: set[str] | None, same: bool | None
) -> None:
    mapped = Dataset(
        id=0,
        kind="_MapDataset",
        function="decode",
        types=None if types is None else frozenset(types),
        stateful=None if stateful is None else frozenset(stateful),
    )
    assert repeatable(mapped) is same


@pytest.mark.parametrize(
    ("kind", "more", "same"),
    [
        ("_BatchDataset", {}, True),
        ("_ShuffleDataset", {}, False),
        ("_ShuffleDataset", {"reshuffle_each_iteration": False}, True),
        ("_RandomDataset", {}, None),
        ("_MyDataset", {}, None),
    ],
)
def test_datasets_without_a_function(kind: str, more: Any, *, same: bool | None) -> None:
    assert repeatable(Dataset(id=0, kind=kind, parameters=DatasetParameters(**more))) is same


def test_elements_and_bytes_of_one_pass_leave_repetitions_out() -> None:
    repeated = dataset(1, "_RepeatDataset", cardinality=3200)
    mapped = dataset(2, "_MapDataset", element=PAIR, cardinality=3200)
    found = properties(SOURCE, repeated, mapped)

    assert found.elements(mapped) == 320
    assert found.nbytes(mapped) == 320 * (48 * 48 * 3 * 4 + 8)


def test_a_filter_keeps_at_most_all() -> None:
    chosen = dataset(1, "_FilterDataset", cardinality=None)
    assert properties(SOURCE, chosen).elements(chosen) == 320


def test_what_files_hold_is_unknown() -> None:
    rows = dataset(1, "_FlatMapDataset", cardinality=None, element=LABEL)
    found = properties(SOURCE, rows)
    assert found.elements(rows) is None
    assert found.nbytes(rows) is None


BATCH = dataset(1, "_BatchDataset", parameters=DatasetParameters(batch_size=32), cardinality=10)


@pytest.mark.parametrize(
    ("settings", "passes"),
    [
        ({"epochs": 4, "steps_per_epoch": 10}, 4.0),
        ({"epochs": 1, "steps_per_epoch": 10}, 1.0),
        ({"epochs": 1, "steps_per_epoch": 160}, 16.0),
        ({}, 2.5),
    ],
)
def test_passes_over_the_data(settings: Any, passes: float) -> None:
    assert properties(SOURCE, BATCH, seen=25, **settings).passes == passes


def test_a_run_that_was_not_seen_to_its_end_does_not_tell_its_passes() -> None:
    assert properties(SOURCE, BATCH, seen=25, stop_after=True).passes is None


def test_repeating_before_batching_counts() -> None:
    repeated = dataset(1, "_RepeatDataset", cardinality=-1)
    batched = dataset(2, "_BatchDataset", parameters=DatasetParameters(batch_size=32), cardinality=-1)
    assert properties(SOURCE, repeated, batched, seen=40).passes == 4.0


def test_files_of_unknown_length_are_passed_once_an_epoch() -> None:
    rows = dataset(1, "_FlatMapDataset", cardinality=None)
    assert properties(SOURCE, rows, seen=99, epochs=6, steps_per_epoch=None).passes == 6.0
    assert properties(SOURCE, rows, seen=99, epochs=6, steps_per_epoch=20).passes is None


def test_without_a_known_dataset_there_is_nothing_to_say() -> None:
    with pytest.raises(Unavailable, match=r"no recorded tf\.data pipeline"):
        DatasetProperties.measure(Program(), recording(), None)


SERIES = "TensorSpec(shape=(None, None, 16), dtype=tf.float32, name=None)"
SHORT = "TensorSpec(shape=(128, 64, 16), dtype=tf.float32, name='x')"


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ((SHORT,), 128 * 64 * 16 * 4),
        ((SHORT, SHORT), None),
        ((SHORT.replace("float32", "float16"),), None),
        ((SHORT.replace("16)", "8)"),), None),
        ((SHORT.replace("128, ", ""),), None),
        ((SHORT.replace("128", "None"),), None),
    ],
)
def test_the_training_function_may_know_the_shape_of_a_batch(given: tuple[str, ...], size: int | None) -> None:
    """timeseries_dataset_from_array leaves the length of its windows open."""
    program = Program(datasets=(replace(SOURCE, element=SERIES),), feeds=0)
    graph = {"name": "step", "operations": [], "kind": "function", "given": given}
    found = DatasetProperties.measure(program, recording({"graphs": [graph]}, manifest=manifest()), None)
    assert found.element_bytes(found.chain[0]) == size


def test_the_passes_that_the_trace_shows_are_the_least() -> None:
    """Records in files are not counted before they are read."""
    records = dataset(0, "TFRecordDatasetV2", cardinality=None)
    program = Program(datasets=(records,), feeds=0)
    for completed, passes in ((1, None), (2, 2.0)):
        nodes = {"Root": Node("Root", repetition=completed)}
        found = DatasetProperties.measure(program, recording(manifest=manifest()), Iterators(nodes))
        assert found.passes == passes


@pytest.mark.parametrize(
    ("kind", "length", "passes"),
    [
        ("_DirectedInterleaveDataset", 320, 0.5),
        ("_DirectedInterleaveDataset", None, None),
        ("_ZipDataset", 320, 1.0),
    ],
)
def test_pipelines_that_repeat_before_they_meet(kind: str, length: int | None, passes: float | None) -> None:
    """All of them make one pass together; the longer side of a Zip gives its length alone."""
    other = dataset(1, "_TensorSliceDataset", inputs=(), cardinality=length)
    repeated = dataset(2, "_RepeatDataset", cardinality=-1)
    both = dataset(3, kind, inputs=(0, 2), cardinality=320)
    taken = dataset(4, "_TakeDataset")
    assert properties(SOURCE, other, repeated, both, taken, seen=320).passes == passes


def keras_arrays(epochs: int | None) -> DatasetProperties:
    """Batches of indices, joined with the arrays, which repeat for each batch (ArrayDataAdapter, Keras 3)."""
    indices = dataset(1, "_FlatMapDataset", cardinality=None)
    arrays = dataset(2, "_TensorDataset", inputs=(), cardinality=1)
    again = dataset(3, "_RepeatDataset", inputs=(2,), cardinality=-1)
    both = dataset(4, "_ZipDataset", inputs=(1, 3), cardinality=None)
    made = (SOURCE, indices, arrays, again, both)
    program = Program(datasets=made, feeds=4, settings=RunSettings(epochs=epochs, steps_per_epoch=None))
    nodes = Iterators({"Root": Node("Root", repetition=25)})
    return DatasetProperties.measure(program, recording(manifest=manifest()), nodes)


def test_arrays_that_repeat_beside_their_indices_are_passed_once_an_epoch() -> None:
    assert keras_arrays(epochs=4).passes == 4.0
    assert keras_arrays(epochs=None).passes is None
    assert not keras_arrays(epochs=4).repeats
