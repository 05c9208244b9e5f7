"""sequential-map: the map that limits the pipeline of a waiting step runs on one thread."""

import pytest

from tests.rules.cases.sequential_map import example
from tests.rules.kit import *
from tfdoctor.facts.input.feeding_datasets import DataOptions
from tfdoctor.rules import sequential_map

ON_CPU = Device(DeviceKind.CPU, 1, 1)


def stage(kind: str = "Map", threads: float = 1.0, **more: Any) -> StageTime:
    return StageTime.of(f"Root::Prefetch::{kind}", 40.0, threads, **more)


def effect(verdict: Verdict) -> Effect:
    assert isinstance(verdict, Finding)
    (effect,) = verdict.effects
    return effect


@pytest.mark.parametrize(
    ("calls", "kind"), [(-1, NotApplicable), (2, NotApplicable), (1, Finding), (None, Finding)]
)
def test_a_map_that_tf_data_may_run_in_parallel_is_not_advised_to(calls: int | None, kind: type) -> None:
    parameters = DatasetParameters(num_parallel_calls=calls)
    made = Dataset(id=1, kind="_ParallelMapDataset", parameters=parameters)
    assert isinstance(example(stage("ParallelMapV2", dataset=made)), kind)


def test_a_map_on_one_thread_is_found() -> None:
    assert isinstance(example(stage()), Finding)


@pytest.mark.parametrize("kind", ["ParallelMapV2", "ParallelMap", "MapAndBatch"])
def test_a_map_that_ran_in_parallel_is_not(kind: str) -> None:
    assert isinstance(example(stage(kind, threads=3)), Healthy)


def test_where_map_and_batch_were_fused_the_threads_tell() -> None:
    assert [type(example(stage("MapAndBatch", threads))) for threads in (1.2, 1.3)] == [Finding, Healthy]


def test_a_map_on_the_threads_of_an_interleave_is_not_sequential() -> None:
    reader = StageTime.of("Root::Prefetch::ParallelInterleaveV4")
    mapped = stage("ParallelInterleaveV4::Map", threads=3)
    assert isinstance(example(reader, mapped), Healthy)


@pytest.mark.parametrize("kind", ["FlatMap", "BatchV2", "Shuffle"])
def test_a_stage_that_is_no_map_is_not_advised_threads(kind: str) -> None:
    assert isinstance(example(stage(kind)), Healthy)


def test_a_sequential_map_that_does_not_limit_the_pipeline_is_healthy() -> None:
    slow = StageTime.of("Root::Prefetch::MapAndBatch", 300.0, threads=2)
    quick = stage("MapAndBatch::Map")
    assert isinstance(example(slow, quick), Healthy)


def test_only_a_step_that_waits() -> None:
    assert [type(example(stage(), wait=wait)) for wait in (2.0, 1.9)] == [Finding, Healthy]


def test_python_gains_nothing_from_threads() -> None:
    assert [type(example(stage(python_ms=python))) for python in (20.0, 21.0)] == [Finding, NotApplicable]


@pytest.mark.parametrize(("run", "speedup"), [(1.0, 4.0), (3.0, 2.0), (4.0, 1.0)])
def test_beside_an_accelerator_the_map_gets_its_own_core_and_the_free_ones(run: float, speedup: float) -> None:
    mapped = effect(example(stage(), cores=Cores(4.0, run)))
    assert mapped.scales == near(1 / speedup)
    assert mapped.bound is Bound.EXPECTED


@pytest.mark.parametrize("run", [1.0, 4.0])
def test_on_a_cpu_the_step_model_accounts_for_the_cores(run: float) -> None:
    mapped = effect(example(stage(), device=ON_CPU, cores=Cores(4.0, run)))
    assert (mapped.scales, mapped.bound, mapped.spreads) == (0.25, Bound.EXPECTED, True)


@pytest.mark.parametrize(("other", "bound"), [(0.5, Bound.EXPECTED), (0.6, Bound.AT_MOST)])
def test_other_programs_on_the_cores_make_the_saving_a_ceiling(other: float, bound: Bound) -> None:
    mapped = effect(example(stage(), cores=Cores(4.0, busy=1.0, others=other)))
    assert (mapped.scales, mapped.bound) == (0.25, bound)


def test_without_samples_of_the_cores_the_saving_is_a_ceiling() -> None:
    mapped = effect(example(stage(), cores=Cores(4.0, busy=1.0, sampled=False)))
    assert (mapped.scales, mapped.bound) == (0.25, Bound.AT_MOST)


def test_with_unknown_cores_the_whole_wait_is_the_ceiling() -> None:
    mapped = effect(example(stage(), cores=None))
    assert (mapped.scales, mapped.bound) == (0.0, Bound.AT_MOST)


@pytest.mark.parametrize(("name", "code"), [("decode", "map(decode,"), ("<lambda>", "map(function,")])
def test_the_remedy_is_the_users_own_line(name: str, code: str) -> None:
    written = Dataset(id=1, kind="_MapDataset", function=name, at=Location("t.py", 9))
    verdict = as_finding(example(stage(dataset=written)))
    assert code in verdict.remedies[0].code
    assert verdict.remedies[0].at == Location("t.py", 9)


def test_a_map_whose_results_were_buffered_is_not_called_healthy() -> None:
    dataset = Dataset(id=1, kind="_MapDataset", function="decode", function_at=Location("t.py", 3))
    verdict = as_not_applicable(
        applied(
            sequential_map,
            InputPipeline((StageTime.of("Root::Prefetch"),), (), idle=(dataset,)),
            Breakdown.of(device=10.0),
            ON_CPU,
        )
    )
    assert "decode" in verdict.reason


@pytest.mark.parametrize(("threads", "kind"), [(1, NotApplicable), (2, Finding)])
def test_a_private_pool_of_one_thread_is_another_rules_fault(threads: int, kind: type) -> None:
    options = DataOptions({"threading.private_threadpool_size": threads})
    verdict = example(stage("MapAndBatch"), options=options)
    assert isinstance(verdict, kind)
