"""serial-batch: one thread copies large examples into the batches that a step waits for."""

import pytest

from tfdoctor.facts.breakdown import Breakdown
from tfdoctor.facts.cores import Cores
from tfdoctor.facts.dataset_properties import DatasetProperties
from tfdoctor.facts.device import Device
from tfdoctor.facts.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.program import Dataset
from tfdoctor.rules import serial_batch
from tfdoctor.verdict import Bound, Finding, Healthy, Location, NotApplicable, Verdict

AHEAD = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
ON_GPU, ON_CPU = Device("GPU", 1, 1), Device("CPU", 1, 1)
ONE_BUSY = Cores(4.0, busy=1.0)


def written(width: int = 8192, **more: object) -> Dataset:
    """A batch of 16 examples of float32."""
    parts = {
        "id": 1,
        "kind": "_BatchDataset",
        "parameters": {"batch_size": 16},
        "element": f"TensorSpec(shape=(None, {width}), dtype=tf.float32, name=None)",
        "at": Location("t.py", 9),
    } | more
    return Dataset(**parts)  # type: ignore[arg-type]


def batch(dataset: Dataset | None = None, kind: str = "BatchV2", **more: object) -> StageTime:
    parts = {
        "path": f"Root::Prefetch::{kind}",
        "kind": kind,
        "work_ms": 20.0,
        "wall_ms": 20.0,
        "dataset": dataset or written(),
    } | more
    return StageTime(**parts)  # type: ignore[arg-type]


def check(
    *stages: StageTime,
    wait: float = 10.0,
    device: Device = ON_GPU,
    cores: Cores | None = ONE_BUSY,
    properties: bool = True,
) -> Verdict:
    chain = tuple(stage.dataset for stage in stages if stage.dataset)
    return serial_batch.check(
        InputPipeline.of(AHEAD, *stages),
        Breakdown.of(input=wait, device=20.0 - wait),
        device,
        cores,
        DatasetProperties(chain) if properties else None,
    )


@pytest.mark.parametrize(("width", "kind"), [(8192, Finding), (8191, Healthy)])
def test_the_copy_of_small_examples_is_not_what_takes_the_time(width: int, kind: type) -> None:
    assert isinstance(check(batch(written(width))), kind)


@pytest.mark.parametrize(("wait", "kind"), [(1.0, Finding), (0.9, Healthy)])
def test_only_a_step_that_waits(wait: float, kind: type) -> None:
    assert isinstance(check(batch(), wait=wait), kind)


@pytest.mark.parametrize(("work", "kind"), [(0.4, Finding), (0.39, Healthy)])
def test_a_batch_that_takes_next_to_nothing_is_healthy(work: float, kind: type) -> None:
    assert isinstance(check(batch(work_ms=work, wall_ms=work)), kind)


@pytest.mark.parametrize("kind", ["MapAndBatch", "ParallelBatch", "PaddedBatchV2", "Map"])
def test_what_copies_in_parallel_or_cannot_is_left_alone(kind: str) -> None:
    asynchronous = kind in {"MapAndBatch", "ParallelBatch"}
    assert isinstance(check(batch(kind=kind, asynchronous=asynchronous)), Healthy)


def test_a_batch_that_does_not_limit_the_pipeline_is_left_alone() -> None:
    slow = StageTime(
        path="Root::Prefetch::BatchV2::ParallelMapV2",
        kind="ParallelMapV2",
        work_ms=90.0,
        wall_ms=30.0,
        asynchronous=True,
    )
    assert isinstance(check(batch(), slow), Healthy)


def test_batches_inside_an_interleave_are_copied_on_several_threads() -> None:
    assert isinstance(check(batch(wall_ms=10.0)), Healthy)


@pytest.mark.parametrize(
    "element",
    [
        "TensorSpec(shape=(None, None), dtype=tf.float32, name=None)",
        "TensorSpec(shape=(None,), dtype=tf.string, name=None)",
        "",
    ],
)
def test_examples_of_unknown_size_are_not_judged(element: str) -> None:
    assert isinstance(check(batch(written(element=element))), NotApplicable)


def test_without_a_program_record_nothing_is_claimed() -> None:
    assert isinstance(check(batch(), properties=False), NotApplicable)


@pytest.mark.parametrize(
    ("device", "cores", "scales"),
    [
        (ON_GPU, Cores(4.0, busy=1.0), 0.25),
        (ON_GPU, Cores(4.0, busy=4.0), 1.0),
        (ON_CPU, Cores(2.0, busy=1.0), 0.5),
        (ON_CPU, None, 0.0),
    ],
)
def test_the_saving_is_a_ceiling_set_by_the_cores(
    device: Device, cores: Cores | None, scales: float
) -> None:
    found = check(batch(), device=device, cores=cores)
    assert isinstance(found, Finding)
    (effect,) = found.effects
    assert (effect.scales, effect.bound, effect.spreads) == (scales, Bound.AT_MOST, True)


def test_the_remedy_is_the_users_own_batch() -> None:
    found = check(batch())
    assert isinstance(found, Finding)
    (remedy,) = found.remedies
    assert remedy.at == Location("t.py", 9)
    assert "batch(16, num_parallel_calls=" in remedy.code
    assert remedy.trial == "parallel-batch"
