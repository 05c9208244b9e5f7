"""Which stages tf.data sizes by itself, from the record of the pipeline."""

from typing import Any

import pytest

from tests.builders import program_of
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.feeding_datasets import TunedBuffers

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
