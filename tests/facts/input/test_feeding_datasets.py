"""Which files a pipeline reads, and which stages tf.data sizes by itself, from the record that the agent wrote."""

from typing import Any

import pytest

from tests.builders import program_of
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.feeding_datasets import PATHS, SourceFiles, TunedBuffers
from tfdoctor.facts.run.program import Dataset, FileList, Program


def measured(*datasets: Dataset) -> SourceFiles:
    """The datasets stand source first."""
    return SourceFiles.measure(Program(datasets=datasets, feeds=datasets[-1].id))


def dataset(number: int, kind: str, **more: Any) -> Dataset:
    return Dataset(id=number, kind=kind, inputs=(number - 1,) if number else (), **more)


RECORDS = dataset(2, "_InterleaveDataset")


def test_a_list_of_files_says_how_many_and_where() -> None:
    listed = dataset(0, "_TensorSliceDataset", files=FileList(count=40, scheme="gs", nbytes=None))
    found = measured(listed, dataset(1, "_RepeatDataset"), RECORDS)
    assert (found.count, found.network, found.remote) == (40, "gs://", True)


@pytest.mark.parametrize(
    ("file_system", "network", "local"),
    [
        ("nfs4", "NFS", False),
        ("fuse.gcsfuse", "Cloud Storage FUSE", False),
        ("ext4", "", True),
        ("overlay", "", False),
        ("9p", "", False),
        ("", "", False),
    ],
)
def test_a_mount_says_whether_its_files_lie_across_a_network(
    file_system: str, network: str, *, local: bool
) -> None:
    files = FileList(count=40, file_system=file_system)
    found = measured(dataset(0, "_TensorSliceDataset", files=files), dataset(1, "_MapDataset"))
    assert (found.network, found.local) == (network, local)


def test_an_older_record_says_how_many_elements_an_interleave_takes() -> None:
    listed = dataset(0, "_TensorSliceDataset", element=PATHS, cardinality=8)
    found = measured(listed, dataset(1, "_RepeatDataset", element=PATHS, cardinality=-1), RECORDS)
    assert found == SourceFiles(8)
    assert not found.remote


def test_texts_that_nothing_opens_are_no_files() -> None:
    listed = dataset(0, "_TensorSliceDataset", element=PATHS, cardinality=8)
    with pytest.raises(Unavailable, match="files that the pipeline reads"):
        measured(listed, dataset(1, "_BatchDataset"))


def test_two_lists_are_not_guessed_from() -> None:
    lists = [Dataset(id=at, kind="_TensorSliceDataset", files=FileList(count=2 + at)) for at in (0, 1)]
    both = Dataset(id=2, kind="_ZipDataset", inputs=(0, 1))
    with pytest.raises(Unavailable, match="files that the pipeline reads"):
        measured(*lists, both)


IMAGES = "TensorSpec(shape=(None, 224, 224, 3), dtype=tf.float32, name=None)"


def buffers(options: dict[str, Any] | None = None, **parameters: int) -> TunedBuffers:
    """The pipeline of a map and a prefetch of batches of 64 images, with these parameters of the prefetch."""
    mapped = {"id": 0, "class": "_MapDataset", "parameters": {"num_parallel_calls": 4}}
    batched = {"id": 1, "class": "_BatchDataset", "inputs": [0], "parameters": {"batch_size": 64}}
    ahead = {
        "id": 2, "class": "_PrefetchDataset", "inputs": [1], "parameters": parameters, "options": options or {},
        "element_spec": IMAGES, "at": ["/home/me/train.py", 22],
    }  # fmt: skip
    run = {"batch_size": 64}
    return TunedBuffers.measure(program_of(datasets=[mapped, batched, ahead], feeds=2, run=run))


def test_a_prefetch_of_autotune_holds_batches() -> None:
    found = buffers(buffer_size=-1)
    assert [one.id for one in found.stages] == [2]
    assert found.largest_bytes == 64 * 224 * 224 * 3 * 4
    assert found.remedy.at is not None
    assert found.remedy.at.line == 22


def test_sizes_that_the_program_chose_are_its_own() -> None:
    with pytest.raises(Unavailable, match="no buffer"):
        buffers(buffer_size=2)


def test_a_budget_of_the_program_limits_them() -> None:
    with pytest.raises(Unavailable, match="limits the memory"):
        buffers({"autotune.ram_budget": 1 << 30}, buffer_size=-1)
