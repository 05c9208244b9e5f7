"""disabled-autotune: options of tf.data, and what they did to a pipeline that the step waits for."""

from typing import Any

import pytest

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.data_options import DataOptions
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.program import Dataset, Program
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.kinds import DeviceKind
from tfdoctor.rules import disabled_autotune
from tfdoctor.verdict import Bound, Finding, Healthy, Location, NotApplicable, Verdict

GPU, CPU = Device(DeviceKind.GPU, 1, 1), Device(DeviceKind.CPU, 1, 1)
ONE_BUSY = Cores(8.0, busy=1.0)
ONE = {"threading.private_threadpool_size": 1}
AHEAD = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
MAP_OFF = {"experimental_optimization.map_parallelization": False}


def stage(kind: str, work: float = 30.0, top: str = "Root::Prefetch", **more: Any) -> StageTime:
    parallel = kind not in {"Map", "BatchV2"}
    return StageTime(
        path=f"{top}::{kind}", kind=kind, work_ms=work, wall_ms=work, asynchronous=parallel, **more
    )


PARALLEL = InputPipeline.of(AHEAD, stage("ParallelMapV2"))
PLAIN = InputPipeline.of(AHEAD, stage("Map"))
SERIAL = InputPipeline.of(stage("BatchV2", 5.0, "Root"), stage("Map", 25.0, "Root::BatchV2"))


def check(
    values: dict[str, Any],
    pipeline: InputPipeline = PARALLEL,
    wait: float = 22.0,
    device: Device = GPU,
    cores: Cores | None = ONE_BUSY,
) -> Verdict:
    options = DataOptions(values, Location("t.py", 7))
    breakdown = Breakdown.of(input=wait, device=10.0)
    return disabled_autotune.check(options, pipeline, breakdown, device, cores)


def finding(verdict: Verdict) -> Finding:
    assert isinstance(verdict, Finding)
    return verdict


@pytest.mark.parametrize(
    "name",
    ["threading.private_threadpool_size", "experimental_threading.private_threadpool_size"],
)
def test_a_full_pool_of_one_thread_is_found(name: str) -> None:
    verdict = finding(check({name: 1}))
    (effect,) = verdict.effects
    assert (effect.scales, effect.bound, effect.spreads) == (1 / 8, Bound.EXPECTED, True)
    assert verdict.remedies[0].at == Location("t.py", 7)
    assert verdict.remedies[0].edit_id == "autotune-on"


@pytest.mark.parametrize(("work", "kind"), [(22.3, Healthy), (22.5, Finding)])
def test_a_pool_that_is_idle_does_not_limit(work: float, kind: type) -> None:
    pipeline = InputPipeline.of(AHEAD, stage("ParallelMapV2", work))
    assert isinstance(check(ONE, pipeline), kind)


@pytest.mark.parametrize(
    ("cores", "device", "scales", "bound"),
    [
        (Cores(4.0, busy=1.0), CPU, 0.25, Bound.EXPECTED),
        (Cores(4.0, busy=3.0), GPU, 0.5, Bound.EXPECTED),
        (Cores(4.0, busy=1.0, others=2.0), CPU, 0.25, Bound.AT_MOST),
        (None, GPU, 0.0, Bound.AT_MOST),
    ],
)
def test_the_cores_limit_what_more_threads_gain(
    cores: Cores | None, device: Device, scales: float, bound: Bound
) -> None:
    (effect,) = finding(check(ONE, device=device, cores=cores)).effects
    assert (effect.scales, effect.bound) == (scales, bound)


def test_a_pool_as_large_as_the_machine_takes_nothing() -> None:
    on_two = check({"threading.private_threadpool_size": 2}, device=CPU, cores=Cores(2.0, busy=1.0))
    assert isinstance(on_two, Healthy)


@pytest.mark.parametrize(
    "values",
    [
        MAP_OFF,
        {"autotune.enabled": False},
        {"experimental_optimization.autotune": False},
        {"experimental_optimization.apply_default_optimizations": False},
    ],
)
def test_a_plain_map_that_tf_data_would_have_run_in_parallel_is_found(
    values: dict[str, Any],
) -> None:
    verdict = finding(check(values, PLAIN))
    assert next(iter(values)) in verdict.summary
    assert verdict.effects[0].scales == pytest.approx(1 / 8)


def test_a_map_that_ran_in_parallel_all_the_same_is_healthy() -> None:
    assert isinstance(check(MAP_OFF, PARALLEL), Healthy)


def test_the_option_alone_is_no_fault() -> None:
    verdict = check(MAP_OFF | ONE, PLAIN, wait=0.04)
    assert isinstance(verdict, Healthy)
    assert "map_parallelization" in verdict.summary
    assert "private_threadpool_size=1" in verdict.summary


def test_batches_produced_inside_the_step_without_a_prefetch_are_found() -> None:
    verdict = finding(check({"experimental_optimization.inject_prefetch": False}, SERIAL))
    (effect,) = verdict.effects
    assert effect.overlaps
    assert "inject_prefetch" in verdict.summary


def test_a_prefetch_of_the_users_own_is_enough() -> None:
    verdict = check({"experimental_optimization.inject_prefetch": False}, PLAIN)
    assert isinstance(verdict, Healthy)


@pytest.mark.parametrize(
    "values",
    [{}, {"deterministic": False}, {"autotune.enabled": True}, {"autotune.ram_budget": 1000}],
)
def test_other_options_switch_nothing_off(values: dict[str, Any]) -> None:
    verdict = check(values, PLAIN)
    assert isinstance(verdict, Healthy)


def test_python_gains_nothing_from_threads() -> None:
    pipeline = InputPipeline.of(AHEAD, stage("ParallelMapV2", python_ms=29.0))
    assert isinstance(check(ONE, pipeline), NotApplicable)


def test_the_options_come_from_the_dataset_that_feeds_the_run() -> None:
    inner = Dataset(id=0, kind="_MapDataset", options={})
    outer = Dataset(id=1, kind="_OptionsDataset", inputs=(0,), options=ONE, at=Location("t.py", 3))
    read = DataOptions.measure(Program(datasets=(inner, outer), feeds=1))
    assert (read.pool, read.at) == (1, Location("t.py", 3))


def test_an_older_record_does_not_tell_the_options() -> None:
    old = Program(datasets=(Dataset(id=0, kind="_MapDataset"),), feeds=0)
    with pytest.raises(Unavailable, match="earlier tfdoctor"):
        DataOptions.measure(old)
    with pytest.raises(Unavailable, match=r"no recorded tf\.data pipeline"):
        DataOptions.measure(Program())


def test_the_options_of_kerass_own_pipelines_are_not_the_users() -> None:
    """fit(x, y) on arrays switches the default optimizations off."""
    off = {"experimental_optimization.apply_default_optimizations": False}
    made = Dataset(id=0, kind="_OptionsDataset", options=off, at=Location("t.py", 3))
    arrays = DataOptions.measure(Program(datasets=(made,), feeds=0, input_kind="arrays"))
    assert (arrays.by_keras, arrays.at) == (True, None)
    breakdown = Breakdown.of(input=22.0, device=10.0)
    verdict = disabled_autotune.check(arrays, PLAIN, breakdown, GPU, ONE_BUSY)
    assert isinstance(verdict, Healthy)
    assert "Keras" in verdict.summary
    assert isinstance(check(off, PLAIN), Finding)
