"""window-datasets: windows that are datasets of their own, in a pipeline that the step waits for."""

from tests.rules.kit import *
from tfdoctor.rules.input.window_datasets import WindowJoin, WindowJoins, check

ROOT = "Root::Prefetch"
AHEAD = stage_time(ROOT)
JOINED = f"{ROOT}::FlatMap"
SPEC = "DatasetSpec(TensorSpec(shape=(2,), dtype=tf.float32, name=None), TensorShape([]))"
JOIN = Dataset(id=2, kind="_FlatMapDataset", inputs=(1,), function="<lambda>")
CHAIN = (
    Dataset(id=4, kind="_BatchDataset", inputs=(3,), parameters=DatasetParameters(batch_size=64)),
    Dataset(id=3, kind="_MapDataset", inputs=(2,), function="cut", types=frozenset(("Slice",))),
    JOIN,
    Dataset(id=1, kind="_WindowDataset", inputs=(0,), element=SPEC),
    Dataset(id=0, kind="_TensorSliceDataset"),
)


def example(
    *inner: StageTime, work: float = 12.8, calls: float = 128.0, each: float | None = 164.0,
    step: Breakdown | None = None, contention: CpuContention = CpuContention(crowded=False),
) -> Verdict:  # fmt: skip
    """Each of 128 windows per step takes 0.1 ms and holds 164 bytes."""
    made = Dataset(id=2, kind="_FlatMapDataset", at=script(12))
    join = stage_time("Root::Prefetch::FlatMap", work, calls=calls, dataset=made)
    joins, pipeline = (
        WindowJoins((WindowJoin(join, inner, nbytes=each, batch=128),)),
        InputPipeline.of(PREFETCH, join, *inner),
    )
    return check(joins, pipeline, step or Breakdown.of(input=9.0, device=4.0), contention)


sick = example
healthy = described("The same number of windows, each of 80 kB.", example, each=80_000.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["eight windows, and nine"] = [example(work=0.1 * calls, calls=calls) for calls in (8.0, 9.0)]
    told["less than 30 kB, more, unknown"] = [example(each=nbytes) for nbytes in (29999.0, 30001.0, None)]
    told["a step that does not wait"] = example(step=Breakdown.of(input=0.1, device=9.9))
    copies = stage_time(f"{JOINED}::BatchV2", 2.8, calls=256.0)
    for name, compute, crowded in (
        ("a fifth of the compute", 31.9, True),
        ("less than a fifth of the compute", 32.1, True),
        ("nothing, where cores are free", 31.9, False),
        ("an unknown time, where the cores are", 31.9, None),
    ):
        contention = CpuContention(crowded=crowded, cores=2.0, compute_ms=compute)
        told[f"12.8 ms of work take {name}"] = example(
            copies, work=10.0, each=320.0, step=Breakdown.of(device=compute), contention=contention
        )


@golden_cases
def test_joins(told: Cases) -> None:
    inner = {"BatchV2": (1.0, 128.0), "BatchV2::Window": (0.5, 64.0 * 41), "Window": (0.5, 64.0)}
    flat, mapped = stage_time(JOINED, 4.0, calls=64.0, dataset=JOIN), f"{ROOT}::Map"
    pipeline = InputPipeline.of(
        AHEAD,
        stage_time(mapped, 1.0, calls=64.0, dataset=CHAIN[1]),
        flat,
        *(stage_time(f"{JOINED}::{kind}", ms, calls=calls) for kind, (ms, calls) in inner.items()),
        stage_time(f"{JOINED}::Window::TensorSlice", 0.1, calls=64.0),
    )
    (found,) = WindowJoins.measure(pipeline, DatasetProperties(CHAIN)).joins
    stages = [stage.path.removeprefix(JOINED) for stage in (*found.inner, *found.maps)]
    told["windows that are datasets are found with their maps"] = stages, found.nbytes, found.batch, found.work_ms
    files = DatasetProperties((JOIN, Dataset(id=1, kind="_TensorSliceDataset")))
    pipeline = InputPipeline.of(AHEAD, flat)
    joins, step = WindowJoins.measure(pipeline, files), Breakdown.of(input=8.0, device=2.0)
    told["flat_map over files, which looks the same in the trace"] = joins.joins
    told[...] = check(joins, pipeline, step, CpuContention(crowded=False))
