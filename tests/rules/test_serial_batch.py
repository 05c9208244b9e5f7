"""serial-batch: one thread copies large examples into batches for a waiting step."""

from tests.builders import Row, Thread, iterator, line, wait
from tests.rules.kit import *
from tfdoctor.diagnose.engine import examine
from tfdoctor.rules.input import serial_batch
from tfdoctor.rules.input.serial_batch import check


def element(shape: str, dtype: str = "float32") -> str:
    """Return tf.data's text for batches of examples of a shape."""
    return f"TensorSpec(shape=(None, {shape}), dtype=tf.{dtype}, name=None)"


def example(  # noqa: PLR0913 - what the verdict depends on
    *others: StageTime, batches: str = element("224, 224, 3"), size: int = 64, kind: str = "BatchV2",
    work: float = 20.0, threads: float = 1.0, wait: float = 10.0, device: Device = Device(DeviceKind.GPU, 1, 1),
    cores: Cores | None = Cores(4.0, busy=1.0),
    options: DataOptions | None = DataOptions({"experimental_optimization.parallel_batch": False}),
    at: Location | None = None,
) -> Verdict:  # fmt: skip
    """One thread copies batches of 64 images of 602 kB for 20 ms per step, because of an option."""
    made = Dataset(
        id=1, kind="_BatchDataset", parameters=DatasetParameters(batch_size=size), element=batches, at=at
    )
    stage = StageTime.of(f"Root::Prefetch::{kind}", work, threads, dataset=made)
    return check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), stage, *others),
        Breakdown.of(input=wait, device=20.0 - wait),
        device,
        cores,
        DatasetProperties((made,)),
        options,
    )


sick = example


def healthy() -> Verdict:
    """Batches of 64 numbers."""
    return example(batches=element(""), work=0.1)


ON_GPU, ON_CPU = Device(DeviceKind.GPU, 1, 1), Device(DeviceKind.CPU, 1, 1)
PARALLEL = "experimental_optimization.parallel_batch"
OFF = DataOptions({PARALLEL: False})


def of_width(width: int, options: DataOptions | None = OFF) -> Verdict:
    """Judge batches of 16 examples of so many numbers."""
    return example(batches=element(str(width)), size=16, options=options)


def test_both_sides_of_each_limit() -> None:
    """Small examples, a step that hardly waits, and a batch that takes next to nothing."""
    sizes, waits = (of_width(width) for width in (8192, 8191)), (example(wait=wait) for wait in (1.0, 0.9))
    for both in (sizes, waits, (example(work=work) for work in (0.4, 0.39))):
        assert kinds(*both) == [Finding, Healthy]


def test_stages_that_copy_in_parallel_or_never_can_are_healthy() -> None:
    for kind in ("MapAndBatch", "ParallelBatch", "PaddedBatchV2", "Map"):
        assert isinstance(example(kind=kind), Healthy)
    assert isinstance(example(threads=2.0), Healthy)  # inside an interleave


def test_a_batch_that_does_not_limit_the_pipeline_is_healthy() -> None:
    slow = StageTime.of("Root::Prefetch::BatchV2::ParallelMapV2", 90.0, threads=3)
    assert isinstance(example(slow), Healthy)


def test_what_is_unknown_is_not_judged() -> None:
    """The size of examples, the program, and the options."""
    found = [example(batches=batches) for batches in (element("None"), element("", "string"), "")]
    pipeline, waits = InputPipeline.of(StageTime.of("Root::BatchV2", 20.0)), Breakdown.of(input=10.0, device=10.0)
    unrecorded = serial_batch.check(pipeline, waits, ON_GPU, None, None, OFF)
    assert set(kinds(*found, unrecorded, of_width(MEBIBYTE, None))) == {NotApplicable}


def test_the_saving_is_a_ceiling_set_by_the_cores() -> None:
    for device, cores, left in (
        (ON_GPU, Cores(4.0, busy=1.0), 0.25),
        (ON_GPU, Cores(4.0, busy=4.0), 1.0),
        (ON_CPU, Cores(2.0, busy=1.0), 0.5),
        (ON_CPU, None, 0.0),
    ):
        (effect,) = as_finding(example(device=device, cores=cores)).effects
        assert (effect.scales, effect.bound, effect.spreads) == (left, Bound.AT_MOST, True)


def test_the_remedy_is_the_users_own_batch() -> None:
    off = DataOptions({PARALLEL: False}, Location("t.py", 5))
    remedy, option = as_finding(example(size=16, options=off, at=Location("t.py", 9))).remedies
    assert (remedy.at, remedy.edit_id) == (Location("t.py", 9), "parallel-batch")
    assert "batch(16, num_parallel_calls=" in remedy.code
    assert (option.at, PARALLEL in option.code) == (Location("t.py", 5), True)


MEBIBYTE = 1 << 14
"""Float32 values per example, if 16 examples make a batch of 1 MiB."""


def test_tf_data_copies_large_batches_on_all_threads_by_itself() -> None:
    assert [type(of_width(width, DataOptions())) for width in (MEBIBYTE, MEBIBYTE - 1)] == [Healthy, Finding]


def test_only_some_options_leave_the_copy_to_one_thread() -> None:
    no_defaults = {"experimental_optimization.apply_default_optimizations": False}
    for values in ({PARALLEL: False}, no_defaults):
        assert isinstance(of_width(MEBIBYTE, DataOptions(values)), Finding)
    for values in ({PARALLEL: True}, {PARALLEL: True} | no_defaults, {"autotune.enabled": False}):
        assert isinstance(of_width(MEBIBYTE, DataOptions(values)), Healthy)


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
    assert as_finding(result.outcome).remedies[0].at == Location("train.py", 7)
    assert result.saving is not None
    assert (result.saving.ms_per_step, result.saving.bound) == (near(0.75 * 79.6, abs=0.1), Bound.AT_MOST)
    assert isinstance(in_a_trace("8").outcome, Healthy)  # batches of numbers


def test_an_option_set_by_keras_is_not_for_the_user_to_remove() -> None:
    found = (of_width(MEBIBYTE, DataOptions({PARALLEL: False}, by_keras=by)) for by in (False, True))
    assert [len(as_finding(one).remedies) for one in found] == [2, 1]
