"""serial-batch: one thread copies large examples into batches for a waiting step."""

from typing import Any

import pytest

from tests.builders import (
    Row,
    Thread,
    chart,
    iterator,
    line,
    manifest,
    markers,
    recording,
    trace,
    wait,
)
from tfdoctor.diagnose.engine import examine
from tfdoctor.diagnosis import Result
from tfdoctor.facts.input.data_options import DataOptions
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.program import Dataset, DatasetParameters
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Rule
from tfdoctor.rules import serial_batch
from tfdoctor.verdict import Bound, Finding, Healthy, Location, NotApplicable, Verdict

AHEAD = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
ON_GPU, ON_CPU = Device(DeviceKind.GPU, 1, 1), Device(DeviceKind.CPU, 1, 1)
ONE_BUSY = Cores(4.0, busy=1.0)
PARALLEL = "experimental_optimization.parallel_batch"
OFF = DataOptions({PARALLEL: False}, Location("t.py", 5))


def written(width: int = 8192, **more: Any) -> Dataset:
    """A batch of 16 examples of float32."""
    parts: dict[str, Any] = {
        "id": 1,
        "kind": "_BatchDataset",
        "parameters": DatasetParameters(batch_size=16),
        "element": f"TensorSpec(shape=(None, {width}), dtype=tf.float32, name=None)",
        "at": Location("t.py", 9),
    } | more
    return Dataset(**parts)


def batch(dataset: Dataset | None = None, kind: str = "BatchV2", **more: Any) -> StageTime:
    parts: dict[str, Any] = {
        "path": f"Root::Prefetch::{kind}",
        "kind": kind,
        "work_ms": 20.0,
        "wall_ms": 20.0,
        "dataset": dataset or written(),
    } | more
    return StageTime(**parts)


def check(
    *stages: StageTime,
    wait: float = 10.0,
    device: Device = ON_GPU,
    cores: Cores | None = ONE_BUSY,
    properties: bool = True,
    options: DataOptions | None = OFF,
) -> Verdict:
    chain = tuple(stage.dataset for stage in stages if stage.dataset)
    return serial_batch.check(
        InputPipeline.of(AHEAD, *stages),
        Breakdown.of(input=wait, device=20.0 - wait),
        device,
        cores,
        DatasetProperties(chain) if properties else None,
        options,
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
def test_stages_that_copy_in_parallel_or_never_can_are_healthy(kind: str) -> None:
    asynchronous = kind in {"MapAndBatch", "ParallelBatch"}
    assert isinstance(check(batch(kind=kind, asynchronous=asynchronous)), Healthy)


def test_a_batch_that_does_not_limit_the_pipeline_is_healthy() -> None:
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
    verdict = check(batch(), device=device, cores=cores)
    assert isinstance(verdict, Finding)
    (effect,) = verdict.effects
    assert (effect.scales, effect.bound, effect.spreads) == (scales, Bound.AT_MOST, True)


def test_the_remedy_is_the_users_own_batch() -> None:
    verdict = check(batch())
    assert isinstance(verdict, Finding)
    remedy, option = verdict.remedies
    assert remedy.at == Location("t.py", 9)
    assert (option.at, PARALLEL in option.code) == (Location("t.py", 5), True)
    assert "batch(16, num_parallel_calls=" in remedy.code
    assert remedy.edit_id == "parallel-batch"


MEBIBYTE = 1 << 14
"""Float32 values per example, if 16 examples make a batch of 1 MiB."""


@pytest.mark.parametrize(("width", "kind"), [(MEBIBYTE, Healthy), (MEBIBYTE - 1, Finding)])
def test_tf_data_copies_large_batches_on_all_threads_by_itself(width: int, kind: type) -> None:
    assert isinstance(check(batch(written(width)), options=DataOptions()), kind)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({PARALLEL: True}, Healthy),
        ({PARALLEL: False}, Finding),
        ({"experimental_optimization.apply_default_optimizations": False}, Finding),
        (
            {PARALLEL: True, "experimental_optimization.apply_default_optimizations": False},
            Healthy,
        ),
        ({"autotune.enabled": False}, Healthy),
    ],
)
def test_only_some_options_leave_the_copy_to_one_thread(
    values: dict[str, bool], kind: type
) -> None:
    assert isinstance(check(batch(written(MEBIBYTE)), options=DataOptions(values)), kind)


def test_unrecorded_options_are_not_judged() -> None:
    assert isinstance(check(batch(written(MEBIBYTE)), options=None), NotApplicable)


# From the events to the saving


def in_a_trace(shape: str) -> Result:
    """Examine steps of 100 ms that wait 61 ms: a prefetch's thread is 78 ms in a batch, 20 in its source."""

    def thread(name: str, *rows: Row) -> Thread:
        return line(name, *(_later(row, at) for at in range(0, 500, 100) for row in rows))

    trainer = thread(
        "tf_data_iterator_get_next/1",
        wait(0, 61),
        iterator("Root", 0.1, 60.7, 1),
        iterator("Root::Prefetch", 0.15, 60.65, 2, 1),
    )
    producer = thread(
        "tf_data_iterator_resource/2",
        ("PrefetchProduce", 0.5, 99.5),
        iterator("Root::Prefetch::BatchV2", 1, 99, 3, 2, name="BatchDatasetV2:1"),
        iterator("Root::Prefetch::BatchV2::TensorSlice", 1, 21, 4, 3, name="TensorSliceDataset:0"),
    )
    batched = {
        "id": 1,
        "class": "_BatchDataset",
        "inputs": [],
        "parameters": {"batch_size": 16},
        "trace_name": "BatchDatasetV2:1",
        "element_spec": f"TensorSpec(shape=(None, {shape}), dtype=tf.float32, name=None)",
        "at": ["/home/me/train.py", 7],
        "options": {"experimental_optimization.parallel_batch": False},
    }
    host = {"host": {"run_cpu_pct": 100.0, "other_cpu_pct": 0.0}, "unix_ns": 1}
    beside = recording({"datasets": [batched], "feeds": 1}, [host], manifest=manifest())
    events = trace([markers(5, 100), trainer, producer])
    (result,) = examine(chart(events, beside), [Rule.from_module(serial_batch)])
    return result


def _later(row: Row, at: float) -> Row:
    name, start, end, *stats = row
    return (name, start + at, end + at, *stats)  # type: ignore[return-value] # a row has stats or not


def test_four_cores_leave_a_quarter_of_the_copy() -> None:
    """Of 100 ms the source keeps 20.4 and the batch a quarter of 79.6, which still is more than the rest's 39."""
    result = in_a_trace("224, 224, 3")

    assert isinstance(result.outcome, Finding)
    assert result.outcome.remedies[0].at == Location("train.py", 7)
    assert result.saving is not None
    assert result.saving.per_step.value == pytest.approx(0.75 * 79.6, abs=0.1)
    assert result.saving.bound is Bound.AT_MOST


def test_the_same_steps_with_batches_of_numbers_are_healthy() -> None:
    assert isinstance(in_a_trace("8").outcome, Healthy)


def test_an_option_set_by_keras_is_not_for_the_user_to_remove() -> None:
    wide = batch(written(MEBIBYTE))
    own, by_keras = (
        check(wide, options=DataOptions({PARALLEL: False}, by_keras=by)) for by in (False, True)
    )
    assert isinstance(own, Finding)
    assert isinstance(by_keras, Finding)
    assert (len(own.remedies), len(by_keras.remedies)) == (2, 1)
