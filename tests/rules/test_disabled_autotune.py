"""disabled-autotune: options of tf.data, and what they did to a pipeline that the step waits for."""

from tests.rules.kit import *
from tfdoctor.rules.input.disabled_autotune import check

GPU, CPU = Device(DeviceKind.GPU, 1, 1), Device(DeviceKind.CPU, 1, 1)
ONE = {"threading.private_threadpool_size": 1}
MAP_OFF = {"experimental_optimization.map_parallelization": False}
PLAIN = (PREFETCH, stage_time("Root::Prefetch::Map", 30.0))
SERIAL = (stage_time("Root::BatchV2", 5.0), stage_time("Root::BatchV2::Map", 25.0))
INJECT_OFF = {"experimental_optimization.inject_prefetch": False}


def example(
    options: DataOptions = DataOptions({"threading.private_threadpool_size": 1}), *stages: StageTime,
    wait: float = 22.0, device: Device = Device(DeviceKind.GPU, 1, 1), cores: Cores | None = Cores(8.0, busy=1.0),
) -> Verdict:  # fmt: skip
    """A pool of one thread decodes images while seven of eight cores are idle."""
    ahead = PREFETCH, stage_time("Root::Prefetch::ParallelMapV2", 30.0)
    pipeline = InputPipeline.of(*(stages or ahead))
    return check(options, pipeline, Breakdown.of(input=wait, device=10.0), device, cores)


def judged(values: dict[str, Any], *stages: StageTime, **more: Any) -> Verdict:
    return example(DataOptions(values, Location("t.py", 7)), *stages, **more)


def recorded(*datasets: Dataset, **more: Any) -> DataOptions:
    return DataOptions.measure(Program(datasets=datasets, **more))


sick = example
SIXTEEN = DataOptions({"threading.private_threadpool_size": 16})
healthy = described("The same pipeline with a pool of sixteen threads, which are mostly idle.", example, SIXTEEN)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a full pool of one thread, by the option's names"] = judged({"threading.private_threadpool_size": 1})
    told[...] = judged({"experimental_threading.private_threadpool_size": 1})
    told["a pool busy for three quarters, and less"] = judged(ONE, stage_time("Root::ParallelMapV2", 22.5))
    told[...] = judged(ONE, stage_time("Root::ParallelMapV2", 22.3))
    told["a pool as large as the machine"] = judged(
        {"threading.private_threadpool_size": 2}, device=CPU, cores=Cores(2.0, busy=1.0)
    )
    told["a map that ran in parallel all the same"] = judged(MAP_OFF)
    told["a prefetch of the user's own"] = judged(INJECT_OFF, *PLAIN)
    told["options that switch nothing off"] = [
        judged(values, *PLAIN)
        for values in ({}, {"deterministic": False}, {"autotune.enabled": True}, {"autotune.ram_budget": 1000})
    ]
    told["Python gains no threads"] = judged(ONE, stage_time("Root::ParallelMapV2", 30.0, python_ms=29.0))
    few = Cores(4.0, busy=1.0), Cores(4.0, busy=3.0), Cores(4.0, busy=1.0, others=2.0), None
    told["the cores limit what more threads gain, less surely where others use them or they are unknown"] = [
        judged(ONE, device=device, cores=cores) for cores, device in zip(few, (CPU, GPU, CPU, GPU), strict=True)
    ]
    switches = "map_parallelization", "autotune", "apply_default_optimizations"
    told["a plain map that tf.data would have run in parallel"] = [
        judged({name: False}, *PLAIN)
        for name in ("autotune.enabled", *(f"experimental_optimization.{one}" for one in switches))
    ]
    told["the options alone are no fault"] = judged(MAP_OFF | ONE, *PLAIN, wait=0.04)
    told["batches produced inside the step without a prefetch"] = judged(INJECT_OFF, *SERIAL)
    off = {"experimental_optimization.apply_default_optimizations": False}
    made = Dataset(id=0, kind="_OptionsDataset", options=off, at=Location("t.py", 3))
    arrays = recorded(made, feeds=0, input_kind="arrays")
    told["fit(x, y) on arrays switches the default optimizations off itself"] = arrays, example(arrays, *PLAIN)
    inner = Dataset(id=0, kind="_MapDataset", options={})
    outer = Dataset(id=1, kind="_OptionsDataset", inputs=(0,), options=ONE, at=Location("t.py", 3))
    told["the options come from the dataset that feeds the run"] = recorded(inner, outer, feeds=1)
    told["an older record does not tell the options"] = lambda: recorded(replace(inner, options=None), feeds=0)
    told["no pipeline was recorded"] = recorded
