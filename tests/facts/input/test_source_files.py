"""Which files a pipeline reads, from the record that the agent wrote."""

from typing import Any

import pytest

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.feeding_datasets import PATHS, SourceFiles
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
