"""A map that limits the pipeline runs on one thread.

## What it checks

Whether the pipeline's slowest segment holds a `map` that *ran* sequentially while the step waits for
input. What ran is read from the trace: tf.data runs many a plain `.map(f)` in parallel by itself
(`ParallelMapV2`, `MapAndBatch`), and such a map is not reported. Where map and batch were fused the
name does not tell, so the number of threads that were seen at work in the function decides.

## Why it matters

One thread makes one element after the other. With n free cores the same map makes up to n at a time.

## How to fix

Add `num_parallel_calls=tf.data.AUTOTUNE`; add `deterministic=False` where the order of elements does
not matter. A function that runs Python (`tf.py_function`, `tf.numpy_function`) gains nothing from
threads, because Python runs on one at a time: see python-input.

## Holds for

TensorFlow 2.3 and later. The saving is bounded by the cores that were free while the steps ran: on a run
without accelerator a map on more threads takes cores from the compute, and saves nothing when none is free.

## Sources

- [Better performance with the tf.data API: parallelizing data transformation](https://www.tensorflow.org/guide/data_performance#parallelizing_data_transformation)
- [tf.data.Dataset.map](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#map)
"""

import math
import re
from dataclasses import dataclass

from tfdoctor.facts.input.data_options import DataOptions
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import counted
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms
from tfdoctor.verdict import (
    Bound,
    Effect,
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

MAP = re.compile(r"(?:Parallel)?Map(?:V\d)?|MapAndBatch(?:V\d)?")
"""The stages that a ``.map()`` runs as."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    threads: float = limit(
        1.2,
        "threads at work in a map, on average, up to which it counts as sequential: hand-overs "
        "overlap a little",
    )


LIMITS = Limits()


def check(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    device: Device,
    cores: Cores | None,
    options: DataOptions | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Look for a sequential map in the segment that limits the pipeline."""
    maps = [stage for stage in _limiting(pipeline) if MAP.fullmatch(stage.kind) and stage.work_ms]
    waiting = breakdown.waits_for_input
    stage = max(maps, key=lambda stage: stage.work_ms, default=None)
    if not waiting and pipeline.why_idle:
        return NotApplicable(reason=pipeline.why_idle)
    if stage is None or not waiting or stage.concurrency > limits.threads:
        return Healthy(summary=_fine(pipeline, limits, breakdown))
    if stage.python_ms > stage.work_ms / 2:
        return NotApplicable(
            reason=f"{stage.title} runs sequentially, but it runs Python, which more threads do not "
            "speed up; python-input tells what does"
        )
    if options is not None and options.pool == 1:
        return NotApplicable(
            reason=f"{stage.title} runs sequentially in a private pool of one thread, whatever its "
            "num_parallel_calls; disabled-autotune tells of it"
        )
    return _finding(stage, limits, *_speedup(device, cores))


def _limiting(pipeline: InputPipeline) -> list[StageTime]:
    slowest = pipeline.slowest
    return [stage for stage in pipeline.stages if slowest and stage.path in slowest.stages]


def _fine(pipeline: InputPipeline, limits: Limits, breakdown: Breakdown) -> str:
    maps = [stage for stage in pipeline.stages if MAP.fullmatch(stage.kind)]
    parallel = [stage for stage in maps if stage.concurrency > limits.threads or stage.asynchronous]
    if not breakdown.waits_for_input:
        return (
            f"{counted(len(maps), 'map').capitalize()} in the pipeline, and {breakdown.little_wait}"
        )
    return f"No sequential map limits the pipeline ({len(parallel)} of {len(maps)} maps ran in parallel)"


def _speedup(device: Device, cores: Cores | None) -> tuple[float, Bound]:
    """Return how many times as fast the map gets on all cores that it can have; inf is unknown.

    Beside an accelerator those are its own and the free ones. On a CPU run compute and input take
    turns or share the cores: the step model keeps account of them.
    """
    if cores is None:
        return math.inf, Bound.AT_MOST
    usable = cores.usable if device.kind == DeviceKind.CPU else 1.0 + cores.free
    return max(1.0, usable), Bound.EXPECTED if cores.certain else Bound.AT_MOST


def _finding(stage: StageTime, limits: Limits, speedup: float, bound: Bound) -> Finding:
    return Finding(
        summary=f"{stage.title} limits the pipeline and runs on one thread",
        evidence=(
            Measure("its work per step", ms(stage.work_ms)),
            Measure("threads at work in it", count(stage.concurrency), count(limits.threads)),
            *_cores_evidence(speedup),
        ),
        remedies=(
            Remedy(
                "Let tf.data choose how many threads run it",
                f"dataset = dataset.map({_function(stage)}, num_parallel_calls=tf.data.AUTOTUNE)",
                stage.at,
                "parallel-map",
            ),
        ),
        effects=(
            Effect(
                Stage.INPUT,
                1.0 / speedup,
                stage.path,
                ms(stage.work_ms),
                bound=bound,
                spreads=True,
            ),
        ),
    )


def _cores_evidence(speedup: float) -> tuple[Measure, ...]:
    if math.isinf(speedup):
        return ()
    return (Measure("times as fast with all cores that are free for it", count(speedup)),)


def _function(stage: StageTime) -> str:
    name = stage.dataset.function if stage.dataset else ""
    return name if name.isidentifier() else "function"


def sick() -> Verdict:
    """A map of 40 ms on one thread, with three of four cores idle."""
    return check(
        _pipeline("Map", threads=1),
        Breakdown.of(input=30.0, device=10.0),
        Device(DeviceKind.GPU, 1, 1),
        Cores(4.0, busy=1.0),
        None,
    )


def healthy() -> Verdict:
    """The same map, which tf.data ran on three threads."""
    return check(
        _pipeline("ParallelMapV2", threads=3),
        Breakdown.of(input=3.0, device=10.0),
        Device(DeviceKind.GPU, 1, 1),
        Cores(4.0, busy=3.0),
        None,
    )


def _pipeline(kind: str, threads: int) -> InputPipeline:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    stage = StageTime(
        path=f"Root::Prefetch::{kind}",
        kind=kind,
        work_ms=40.0,
        wall_ms=40.0 / threads,
        asynchronous=threads > 1,
    )
    return InputPipeline.of(ahead, stage)
