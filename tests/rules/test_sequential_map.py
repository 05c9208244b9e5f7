"""sequential-map: the map that limits the pipeline of a waiting step runs on one thread."""

from tests.rules.kit import *
from tfdoctor.rules.input.sequential_map import check

ON_CPU = Device(DeviceKind.CPU, 1, 1)


def example(
    *stages: StageTime, wait: float = 30.0, device: Device = Device(DeviceKind.GPU, 1, 1),
    cores: Cores | None = Cores(4.0, busy=1.0), options: DataOptions | None = None,
) -> Verdict:  # fmt: skip
    """A map of 40 ms runs on one thread while three of four cores are idle."""
    given = stages or (stage_time("Root::Prefetch::Map", 40.0),)
    pipeline = InputPipeline.of(PREFETCH, *given)
    return check(pipeline, Breakdown.of(input=wait, device=40.0 - wait), device, cores, options)


def healthy() -> Verdict:
    """The same map, which tf.data runs on three threads."""
    parallel = stage_time("Root::Prefetch::ParallelMapV2", 40.0, threads=3)
    return example(parallel, wait=3.0, cores=Cores(4.0, busy=3.0))


def stage(kind: str = "Map", threads: float = 1.0, **more: Any) -> StageTime:
    return stage_time(f"Root::Prefetch::{kind}", 40.0, threads, **more)


sick = example


@golden_cases
def test_verdicts(told: Cases) -> None:
    for calls in (-1, 2, 1, None):
        made = Dataset(id=1, kind="_ParallelMapDataset", parameters=DatasetParameters(num_parallel_calls=calls))
        told[f"a map on one thread with num_parallel_calls={calls}"] = example(stage("ParallelMapV2", dataset=made))
    told["three threads"] = [example(stage(kind, 3)) for kind in ("ParallelMapV2", "ParallelMap", "MapAndBatch")]
    told["no maps"] = [example(stage(kind)) for kind in ("FlatMap", "BatchV2", "Shuffle")]
    told["a map inside of an interleave on three threads"] = example(
        stage_time("Root::Prefetch::ParallelInterleaveV4"), stage("ParallelInterleaveV4::Map", 3)
    )
    told["fused with batch, the threads tell"] = [example(stage("MapAndBatch", threads)) for threads in (1.2, 1.3)]
    slow = stage_time("Root::Prefetch::MapAndBatch", 300.0, threads=2)
    told["a sequential map that does not limit the pipeline"] = example(slow, stage("MapAndBatch::Map"))
    told["a step that waits 5 % of its time, and less"] = example(stage(), wait=2.0), example(stage(), wait=1.9)
    told["Python gains nothing from threads: half of the work, and more"] = example(stage(python_ms=20.0))
    told[...] = example(stage(python_ms=21.0))
    for name in ("decode", "<lambda>"):
        written = Dataset(id=1, kind="_MapDataset", function=name, at=Location("t.py", 9))
        told[f"the user's own line, of {name}"] = example(stage(dataset=written))
    decode = Dataset(id=1, kind="_MapDataset", function="decode", function_at=Location("t.py", 3))
    pipeline = InputPipeline((PREFETCH,), (), idle=(decode,))
    told["a map whose results were buffered"] = applied(check, pipeline, Breakdown.of(device=10.0), ON_CPU)
    for threads in (1, 2):
        pool = DataOptions({"threading.private_threadpool_size": threads})
        told[f"a private pool of {threads}: one is another rule's"] = example(stage("MapAndBatch"), options=pool)
    for name, cores in (
        ("its own core and three free ones", Cores(4.0, 1.0)),
        ("its own core and a free one", Cores(4.0, 3.0)),
        ("no free core", Cores(4.0, 4.0)),
        ("others use little", Cores(4.0, 1.0, others=0.5)),
        ("others use more than half a core", Cores(4.0, 1.0, others=0.6)),
        ("cores that were not sampled", Cores(4.0, 1.0, sampled=False)),
        ("the whole wait, where cores are unknown", None),
    ):
        told[f"beside an accelerator: {name}"] = example(stage(), cores=cores)
    for run in (1.0, 4.0):
        told[f"on a CPU the step model accounts for the cores, of which {run:g} are busy"] = example(
            stage(), device=ON_CPU, cores=Cores(4.0, run)
        )
