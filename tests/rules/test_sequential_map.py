"""sequential-map: the map that limits the pipeline of a waiting step runs on one thread."""

from tests.rules.kit import *
from tfdoctor.rules.input import sequential_map
from tfdoctor.rules.input.sequential_map import check


def example(
    *stages: StageTime, wait: float = 30.0, device: Device = Device(DeviceKind.GPU, 1, 1),
    cores: Cores | None = Cores(4.0, busy=1.0), options: DataOptions | None = None,
) -> Verdict:  # fmt: skip
    """A map of 40 ms runs on one thread while three of four cores are idle."""
    given = stages or (StageTime.of("Root::Prefetch::Map", 40.0),)
    pipeline = InputPipeline.of(StageTime.of("Root::Prefetch"), *given)
    return check(pipeline, Breakdown.of(input=wait, device=40.0 - wait), device, cores, options)


sick = example


def healthy() -> Verdict:
    """The same map, which tf.data runs on three threads."""
    parallel = StageTime.of("Root::Prefetch::ParallelMapV2", 40.0, threads=3)
    return example(parallel, wait=3.0, cores=Cores(4.0, busy=3.0))


ON_CPU = Device(DeviceKind.CPU, 1, 1)


def stage(kind: str = "Map", threads: float = 1.0, **more: Any) -> StageTime:
    return StageTime.of(f"Root::Prefetch::{kind}", 40.0, threads, **more)


def test_a_map_that_tf_data_may_run_in_parallel_is_not_advised_to() -> None:
    for calls, kind in ((-1, NotApplicable), (2, NotApplicable), (1, Finding), (None, Finding)):
        parameters = DatasetParameters(num_parallel_calls=calls)
        made = Dataset(id=1, kind="_ParallelMapDataset", parameters=parameters)
        assert isinstance(example(stage("ParallelMapV2", dataset=made)), kind)


def test_a_map_on_one_thread_is_found() -> None:
    assert isinstance(example(stage()), Finding)
    parallel = (example(stage(kind, threads=3)) for kind in ("ParallelMapV2", "ParallelMap", "MapAndBatch"))
    no_maps = (example(stage(kind)) for kind in ("FlatMap", "BatchV2", "Shuffle"))
    interleaved = example(
        StageTime.of("Root::Prefetch::ParallelInterleaveV4"), stage("ParallelInterleaveV4::Map", 3)
    )
    assert set(kinds(*parallel, *no_maps, interleaved)) == {Healthy}


def test_where_map_and_batch_were_fused_the_threads_tell() -> None:
    assert kinds(*(example(stage("MapAndBatch", threads)) for threads in (1.2, 1.3))) == [Finding, Healthy]


def test_a_sequential_map_that_does_not_limit_the_pipeline_is_healthy() -> None:
    slow = StageTime.of("Root::Prefetch::MapAndBatch", 300.0, threads=2)
    quick = stage("MapAndBatch::Map")
    assert isinstance(example(slow, quick), Healthy)


def test_only_a_step_that_waits() -> None:
    assert kinds(*(example(stage(), wait=wait) for wait in (2.0, 1.9))) == [Finding, Healthy]


def test_python_gains_nothing_from_threads() -> None:
    assert kinds(*(example(stage(python_ms=python)) for python in (20.0, 21.0))) == [Finding, NotApplicable]


def test_beside_an_accelerator_the_cores_decide() -> None:
    for cores, left, bound in (
        (Cores(4.0, 1.0), 1 / 4, Bound.EXPECTED),  # its own core and the free ones
        (Cores(4.0, 3.0), 1 / 2, Bound.EXPECTED),
        (Cores(4.0, 4.0), 1.0, Bound.EXPECTED),
        (Cores(4.0, 1.0, others=0.5), 1 / 4, Bound.EXPECTED),
        (Cores(4.0, 1.0, others=0.6), 1 / 4, Bound.AT_MOST),
        (Cores(4.0, 1.0, sampled=False), 1 / 4, Bound.AT_MOST),
        (None, 0.0, Bound.AT_MOST),  # the whole wait
    ):
        assert [one[2:] for one in effects(example(stage(), cores=cores))] == [(near(left), bound)]


def test_on_a_cpu_the_step_model_accounts_for_the_cores() -> None:
    for run in (1.0, 4.0):
        (mapped,) = as_finding(example(stage(), device=ON_CPU, cores=Cores(4.0, run))).effects
        assert (mapped.scales, mapped.bound, mapped.spreads) == (0.25, Bound.EXPECTED, True)


def test_the_remedy_is_the_users_own_line() -> None:
    for name, code in (("decode", "map(decode,"), ("<lambda>", "map(function,")):
        written = Dataset(id=1, kind="_MapDataset", function=name, at=Location("t.py", 9))
        remedy = as_finding(example(stage(dataset=written))).remedies[0]
        assert (code in remedy.code, remedy.at) == (True, Location("t.py", 9))


def test_a_map_whose_results_were_buffered_is_not_called_healthy() -> None:
    dataset = Dataset(id=1, kind="_MapDataset", function="decode", function_at=Location("t.py", 3))
    pipeline = InputPipeline((StageTime.of("Root::Prefetch"),), (), idle=(dataset,))
    verdict = applied(sequential_map, pipeline, Breakdown.of(device=10.0), ON_CPU)
    assert "decode" in as_not_applicable(verdict).reason


def test_a_private_pool_of_one_thread_is_another_rules_fault() -> None:
    pools = (DataOptions({"threading.private_threadpool_size": threads}) for threads in (1, 2))
    found = [example(stage("MapAndBatch"), options=options) for options in pools]
    assert kinds(*found) == [NotApplicable, Finding]
