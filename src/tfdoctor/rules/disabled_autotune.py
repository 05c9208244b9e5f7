"""An option switches off what tf.data would do by itself, or leaves it a single thread.

## What it checks

The options that the script gave its pipeline, and what came of them in the steps that were traced: a
private thread pool whose threads are at work all the time while cores are free; a plain `map` on one
thread where autotuning or `map_parallelization` is off; batches made inside the step where
`inject_prefetch` is off. An option without such a consequence is not reported, nor one that Keras gives the
pipelines that it makes out of arrays.

## Why it matters

A pool of one thread makes `num_parallel_calls` an empty word. Left alone, tf.data runs plain maps in
parallel, adds a prefetch at the end and divides the cores among the stages.

## How to fix

Remove the option. Where memory was the reason, set `options.autotune.ram_budget` instead; where it was
reproducible results, `tf.data` keeps the order by default (`deterministic`), on any number of threads.

## Holds for

TensorFlow 2.5 and later (2.10 for `inject_prefetch`), in recordings of `tfdoctor profile`. A pool may be
meant to leave cores to others: on a run without accelerator the saving counts only what the cores
still give.

## Sources

- [tf.data.ThreadingOptions](https://www.tensorflow.org/api_docs/python/tf/data/ThreadingOptions)
- [tf.data.experimental.AutotuneOptions](https://www.tensorflow.org/api_docs/python/tf/data/experimental/AutotuneOptions)
- [tf.data.experimental.OptimizationOptions](https://www.tensorflow.org/api_docs/python/tf/data/experimental/OptimizationOptions)
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.facts.input.data_options import DataOptions
from tfdoctor.facts.input.input_pipeline import NEGLIGIBLE_MS, InputPipeline, StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import counted
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Evidence,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    Verdict,
)

TOPIC = Topic.INPUT
SINCE = "0.1.0"

PLAIN = re.compile(r"Map(?:V\d)?")
"""A map that runs on the thread that asks."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    full: float = limit(
        0.7,
        "of the time of a private pool's threads that stages work: below it, something else limits the "
        "pipeline",
        most=1.0,
    )
    serial_ms: float = limit(
        NEGLIGIBLE_MS,
        "ms of input work per step done while the step waits: handing over a batch that lies ready "
        "takes about 0.1 ms",
    )


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Consequence:
    """What one option did to the pipeline."""

    says: str
    option: str
    effects: tuple[Effect, ...]
    evidence: tuple[Evidence, ...]


def check(
    options: DataOptions,
    pipeline: InputPipeline,
    breakdown: Breakdown,
    device: Device,
    cores: Cores | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Look for what the options that are set did to a pipeline that the step waits for."""
    off = dict.fromkeys(filter(None, (options.no_parallel_map, options.no_prefetch)))
    named = [f"switch off {option}" for option in off]
    named += [f"set private_threadpool_size={options.pool}"] if options.pool else []
    said = f"The options of the pipeline {' and '.join(named)}"
    if options.by_keras:
        return Healthy(summary="The script sets no options: Keras makes the pipeline out of arrays")
    if not named:
        return Healthy(summary="No option switches off what tf.data does by itself")
    if not breakdown.waits_for_input:
        return Healthy(summary=f"{said}, and {breakdown.little_wait}")
    critical = pipeline.critical
    if critical and critical.python_ms > critical.work_ms / 2:
        return NotApplicable(
            reason=f"{critical.title} runs Python, which uses one thread at a time whatever the options "
            "say; python-input tells what helps"
        )
    found = [
        *_pool(options, pipeline, breakdown, _speedup(options, device, cores), limits),
        *_map(options, pipeline, device, cores),
        *_prefetch(options, pipeline, limits),
    ]
    if not found:
        return Healthy(summary=f"{said}, which is not what makes the step wait")
    return _finding(found, options)


def _finding(found: list[Consequence], options: DataOptions) -> Finding:
    return Finding(
        summary="; ".join(one.says for one in found),
        evidence=tuple(measure for one in found for measure in one.evidence),
        remedies=tuple(
            Remedy(
                f"Leave {option} as tf.data has it",
                _code(option, options),
                options.at,
                "autotune-on",
            )
            for option in dict.fromkeys(one.option for one in found)
        ),
        effects=tuple(effect for one in found for effect in one.effects),
    )


def _speedup(options: DataOptions, device: Device, cores: Cores | None) -> tuple[float, Bound]:
    """Return how many times as many threads the stages get without their pool; inf is unknown."""
    if cores is None or not options.pool:
        return float("inf"), Bound.AT_MOST
    threads = cores.usable if device.kind == DeviceKind.CPU else options.pool + cores.free
    bound = Bound.EXPECTED if cores.certain else Bound.AT_MOST
    return max(1.0, threads / options.pool), bound


def _pool(
    options: DataOptions,
    pipeline: InputPipeline,
    breakdown: Breakdown,
    speedup: tuple[float, Bound],
    limits: Limits,
) -> Iterator[Consequence]:
    """Yield what a pool does whose threads are at work all the time."""
    times, bound = speedup
    stages = [stage for stage in pipeline.stages if stage.asynchronous and stage.work_ms]
    if not options.pool or times <= 1.0 or not stages:
        return
    full = sum(stage.work_ms for stage in stages) / (options.pool * breakdown.step_ms)
    if full < limits.full:
        return
    yield Consequence(
        f"A private pool of {counted(options.pool, 'thread')} does all the work of the pipeline, and "
        "limits it",
        "threading.private_threadpool_size",
        tuple(_spread(stage, times, bound) for stage in stages),
        (
            Measure("threads of the private pool", count(options.pool)),
            Measure("of their time at work", ratio(min(1.0, full)), ratio(limits.full)),
        ),
    )


def _map(
    options: DataOptions, pipeline: InputPipeline, device: Device, cores: Cores | None
) -> Iterator[Consequence]:
    """Yield what a plain map costs that tf.data would have run in parallel."""
    stage = pipeline.critical
    if not options.no_parallel_map or stage is None or not PLAIN.fullmatch(stage.kind):
        return
    times, bound = float("inf"), Bound.AT_MOST
    if cores is not None:
        times = max(1.0, cores.usable if device.kind == DeviceKind.CPU else 1.0 + cores.free)
    yield Consequence(
        f"{stage.title} limits the pipeline and runs on one thread, for {options.no_parallel_map} is off",
        options.no_parallel_map,
        (_spread(stage, times, bound),),
        (Measure("work of the map per step", ms(stage.work_ms)),),
    )


def _prefetch(
    options: DataOptions, pipeline: InputPipeline, limits: Limits
) -> Iterator[Consequence]:
    """Yield what it costs that no prefetch was added."""
    serial = pipeline.serial_ms
    if not options.no_prefetch or pipeline.prefetches or serial <= limits.serial_ms:
        return
    yield Consequence(
        f"Batches are made while the step waits, for {options.no_prefetch} is off",
        options.no_prefetch,
        (Effect(Stage.INPUT, of=ms(serial), overlaps=True),),
        (Measure("input work while the step waits", ms(serial), ms(limits.serial_ms)),),
    )


def _spread(stage: StageTime, times: float, bound: Bound) -> Effect:
    return Effect(
        Stage.INPUT, 1.0 / times, stage.path, ms(stage.work_ms), bound=bound, spreads=True
    )


def _code(option: str, options: DataOptions) -> str:
    return f"# remove: options.{option} = {options.pool if 'threadpool' in option else False}"


def sick() -> Verdict:
    """Sixteen images decoded one after the other by a pool of one thread, with seven cores idle."""
    return _example({"threading.private_threadpool_size": 1})


def healthy() -> Verdict:
    """The same pipeline with a pool of sixteen threads, which are hardly at work."""
    return _example({"threading.private_threadpool_size": 16})


def _example(values: dict[str, int]) -> Verdict:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    stage = StageTime(
        path="Root::Prefetch::ParallelMapV2",
        kind="ParallelMapV2",
        work_ms=30.0,
        wall_ms=30.0,
        asynchronous=True,
    )
    return check(
        DataOptions(values),
        InputPipeline.of(ahead, stage),
        Breakdown.of(input=22.0, device=10.0),
        Device(DeviceKind.GPU, 1, 1),
        Cores(8.0, busy=1.0),
    )
