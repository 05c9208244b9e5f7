"""disabled-autotune: options of tf.data, and what they did to a pipeline that the step waits for."""

import pytest

from tests.rules.kit import *
from tfdoctor.rules.input.disabled_autotune import check


def example(
    options: DataOptions = DataOptions({"threading.private_threadpool_size": 1}), *stages: StageTime,
    wait: float = 22.0, device: Device = Device(DeviceKind.GPU, 1, 1), cores: Cores | None = Cores(8.0, busy=1.0),
) -> Verdict:  # fmt: skip
    """A pool of one thread decodes images while seven of eight cores are idle."""
    ahead = StageTime.of("Root::Prefetch"), StageTime.of("Root::Prefetch::ParallelMapV2", 30.0)
    pipeline = InputPipeline.of(*(stages or ahead))
    return check(options, pipeline, Breakdown.of(input=wait, device=10.0), device, cores)


sick = example


def healthy() -> Verdict:
    """The same pipeline with a pool of sixteen threads, which are mostly idle."""
    return example(DataOptions({"threading.private_threadpool_size": 16}))


GPU, CPU = Device(DeviceKind.GPU, 1, 1), Device(DeviceKind.CPU, 1, 1)
ONE = {"threading.private_threadpool_size": 1}
MAP_OFF = {"experimental_optimization.map_parallelization": False}

PLAIN = (StageTime.of("Root::Prefetch"), StageTime.of("Root::Prefetch::Map", 30.0))
SERIAL = (StageTime.of("Root::BatchV2", 5.0), StageTime.of("Root::BatchV2::Map", 25.0))


def judged(values: dict[str, Any], *stages: StageTime, **more: Any) -> Verdict:
    return example(DataOptions(values, Location("t.py", 7)), *stages, **more)


@pytest.mark.parametrize(
    "name", ["threading.private_threadpool_size", "experimental_threading.private_threadpool_size"]
)
def test_a_full_pool_of_one_thread_is_found(name: str) -> None:
    verdict = as_finding(judged({name: 1}))
    (effect,) = verdict.effects
    assert (effect.scales, effect.bound, effect.spreads) == (1 / 8, Bound.EXPECTED, True)
    assert verdict.remedies[0].at == Location("t.py", 7)


INJECT_OFF = {"experimental_optimization.inject_prefetch": False}

test_both_sides_of_each_limit = each_is(
    (judged(ONE, StageTime.of("Root::ParallelMapV2", 22.3)), Healthy),  # a pool that is idle
    (judged(ONE, StageTime.of("Root::ParallelMapV2", 22.5)), Finding),
    # A pool as large as the machine
    (judged({"threading.private_threadpool_size": 2}, device=CPU, cores=Cores(2.0, busy=1.0)), Healthy),
    (judged(MAP_OFF), Healthy),  # a map that ran in parallel all the same
    (judged(INJECT_OFF, *PLAIN), Healthy),  # a prefetch of the user's own
    (judged({}, *PLAIN), Healthy),
    (judged({"deterministic": False}, *PLAIN), Healthy),
    (judged({"autotune.enabled": True}, *PLAIN), Healthy),
    (judged({"autotune.ram_budget": 1000}, *PLAIN), Healthy),
    # Python gains nothing from threads
    (judged(ONE, StageTime.of("Root::ParallelMapV2", 30.0, python_ms=29.0)), NotApplicable),
)


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
    (effect,) = as_finding(judged(ONE, device=device, cores=cores)).effects
    assert (effect.scales, effect.bound) == (scales, bound)


@pytest.mark.parametrize(
    "values",
    [
        MAP_OFF,
        {"autotune.enabled": False},
        {"experimental_optimization.autotune": False},
        {"experimental_optimization.apply_default_optimizations": False},
    ],
)
def test_a_plain_map_that_tf_data_would_have_run_in_parallel_is_found(values: dict[str, Any]) -> None:
    verdict = as_finding(judged(values, *PLAIN))
    assert next(iter(values)) in verdict.summary
    assert verdict.effects[0].scales == pytest.approx(1 / 8)


def test_the_option_alone_is_no_fault() -> None:
    verdict = as_healthy(judged(MAP_OFF | ONE, *PLAIN, wait=0.04))
    assert "map_parallelization" in verdict.summary
    assert "private_threadpool_size=1" in verdict.summary


def test_batches_produced_inside_the_step_without_a_prefetch_are_found() -> None:
    verdict = as_finding(judged(INJECT_OFF, *SERIAL))
    (effect,) = verdict.effects
    assert effect.overlaps
    assert "inject_prefetch" in verdict.summary


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
    assert "Keras" in as_healthy(example(arrays, *PLAIN)).summary
    assert isinstance(judged(off, *PLAIN), Finding)
