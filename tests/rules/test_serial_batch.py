"""serial-batch: one thread copies large examples into batches for a waiting step."""

from tests.rules.kit import *
from tfdoctor.rules.input.serial_batch import check

ON_GPU, ON_CPU = Device(DeviceKind.GPU, 1, 1), Device(DeviceKind.CPU, 1, 1)
PARALLEL = "experimental_optimization.parallel_batch"
OFF = DataOptions({PARALLEL: False})
MEBIBYTE = 1 << 14
"""Float32 values per example, if 16 examples make a batch of 1 MiB."""


def element(shape: str, dtype: str = "float32") -> str:
    """Return tf.data's text for batches of examples of a shape."""
    return f"TensorSpec(shape=(None, {shape}), dtype=tf.{dtype}, name=None)"


def example(  # noqa: PLR0913 - what the verdict depends on
    *others: StageTime, batches: str = element("224, 224, 3"), size: int = 64, kind: str = "BatchV2",
    work: float = 20.0, threads: float = 1.0, wait: float = 10.0, device: Device = ON_GPU,
    cores: Cores | None = Cores(4.0, busy=1.0), options: DataOptions | None = OFF, at: Location | None = None,
) -> Verdict:  # fmt: skip
    """One thread copies batches of 64 images of 602 kB for 20 ms per step, because of an option."""
    made = dataset_of("Batch", id=1, parameters=DatasetParameters(batch_size=size), element=batches, at=at)
    stage = stage_time(f"Root::Prefetch::{kind}", work, threads, dataset=made)
    pipeline, step = InputPipeline.of(PREFETCH, stage, *others), Breakdown.of(input=wait, device=20.0 - wait)
    return check(pipeline, step, device, cores, DatasetProperties((made,)), options)


def of_width(width: int, options: DataOptions | None = OFF) -> Verdict:
    """Judge batches of 16 examples of so many numbers."""
    return example(batches=element(str(width)), size=16, options=options)


sick = example
healthy = described("Batches of 64 numbers.", example, batches=element(""), work=0.1)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["half a mebibyte in a batch, and less"] = of_width(8192), of_width(8191)
    told["a step that waits 5 % of its time, and less"] = example(wait=1.0), example(wait=0.9)
    told["a batch takes 0.4 ms, and less"] = example(work=0.4), example(work=0.39)
    told["stages that copy in parallel, or never can"] = [
        example(kind=kind) for kind in ("MapAndBatch", "ParallelBatch", "PaddedBatchV2", "Map")
    ]
    told["a batch inside of an interleave, on two threads"] = example(threads=2.0)
    slow = stage_time("Root::Prefetch::BatchV2::ParallelMapV2", 90.0, threads=3)
    told["a batch that does not limit the pipeline"] = example(slow)
    told["open, texts, and unknown"] = [
        example(batches=batches) for batches in (element("None"), element("", "string"), "")
    ]
    pipeline, waits = InputPipeline.of(stage_time("Root::BatchV2", 20.0)), Breakdown.of(input=10.0, device=10.0)
    told["a program that was not recorded"] = check(pipeline, waits, ON_GPU, None, None, OFF)
    told["unknown options"] = of_width(MEBIBYTE, None)
    for name, device, cores in (
        ("a GPU beside four cores, of which one is busy", ON_GPU, Cores(4.0, busy=1.0)),
        ("a GPU beside four busy cores", ON_GPU, Cores(4.0, busy=4.0)),
        ("a CPU of two cores, of which one is busy", ON_CPU, Cores(2.0, busy=1.0)),
        ("a CPU of unknown cores", ON_CPU, None),
    ):
        told[f"{name} sets the ceiling of the saving"] = example(device=device, cores=cores)
    off = DataOptions({PARALLEL: False}, Location("t.py", 5))
    told["the user's own batch, and the option"] = example(size=16, options=off, at=Location("t.py", 9))
    told["an option that Keras sets"] = of_width(MEBIBYTE, DataOptions({PARALLEL: False}, by_keras=True))
    told["tf.data copies large batches on all threads by itself"] = of_width(MEBIBYTE, DataOptions())
    told[...] = of_width(MEBIBYTE - 1, DataOptions())
    no_defaults = {"experimental_optimization.apply_default_optimizations": False}
    for values in (no_defaults, {PARALLEL: True}, {PARALLEL: True} | no_defaults, {"autotune.enabled": False}):
        options = ", ".join(
            f"{name.removeprefix('experimental_optimization.')}: {value}" for name, value in values.items()
        )
        told[f"a large batch with {options}"] = of_width(MEBIBYTE, DataOptions(values))


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
    made = {"parameters": {"batch_size": 16}, "element_spec": element(shape), "options": {PARALLEL: False}}
    of = {"id": 1, "class": "_BatchDataset", "inputs": [], "trace_name": "BatchDatasetV2:1"}
    batched = of | made | {"at": ["/home/me/train.py", 7]}
    host = {"host": {"run_cpu_pct": 100.0, "other_cpu_pct": 0.0}, "unix_ns": 1}
    beside = recording({"datasets": [batched], "feeds": 1}, [host], manifest=manifest())
    events = trace([markers(5, 100), trainer, producer])
    return examined(check, chart(events, beside))


def _later(row: Row, at: float) -> Row:
    name, start, end, *stats = row
    return (name, start + at, end + at, *stats)  # type: ignore[return-value] # a row has stats or not


@golden_cases
def test_in_a_trace(told: Cases) -> None:
    large = in_a_trace(
        "224, 224, 3"
    )  # of 100 ms the source keeps 20.4 and the batch a quarter of 79.6; the rest, 39
    told["four cores leave a quarter of the copy"] = large.outcome, large.saving
    told["batches of numbers"] = in_a_trace("8").outcome
