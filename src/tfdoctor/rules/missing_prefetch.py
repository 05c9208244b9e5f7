"""Batches are made while the step waits, not beside it.

## What it checks

Whether a stage at the end of the pipeline that *ran* makes batches ahead of the trainer (`Prefetch`,
or a parallel stage with a buffer of its own), and how much work happens while the trainer waits.

## Why it matters

Without prefetching, the time to make a batch and the time to train on it add up. With it, the step
takes the longer of the two, as far as a core is free to make batches beside it.

## How to fix

Make `.prefetch(tf.data.AUTOTUNE)` the last transformation. On a run without accelerator the two share
the cores, so the saving is limited by the cores that are free.

## Holds for

TensorFlow 2.3 and later. tf.data adds a prefetch by itself to most pipelines (the stage is called
`inject/prefetch_...`); then nothing is missing, whatever the source says.

## Sources

- [Better performance with the tf.data API: prefetching](https://www.tensorflow.org/guide/data_performance#prefetching)
- [tf.data.experimental.OptimizationOptions](https://www.tensorflow.org/api_docs/python/tf/data/experimental/OptimizationOptions)
"""

from dataclasses import dataclass

from tfdoctor.facts.input.input_pipeline import NEGLIGIBLE_MS, InputPipeline, StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import milliseconds
from tfdoctor.rule import Topic, limit
from tfdoctor.units import ms
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


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    serial_ms: float = limit(
        NEGLIGIBLE_MS,
        "ms of input work per step done while the step waits: handing over a batch that lies ready "
        "takes about 0.1 ms",
    )


LIMITS = Limits()


def check(
    pipeline: InputPipeline, breakdown: Breakdown, cores: Cores | None, limits: Limits = LIMITS
) -> Verdict:
    """Look for a stage that works ahead, and for work that happens while the trainer waits."""
    serial = pipeline.serial_ms
    evidence = (
        Measure("input work while the step waits", ms(serial), ms(limits.serial_ms)),
        Measure("wait for input per step", ms(breakdown["input"])),
    )
    if pipeline.python_kind not in ("", "tf.data"):
        return NotApplicable(
            reason=f"Keras makes the pipeline from {pipeline.python_kind}: there is no dataset to prefetch"
        )
    if pipeline.prefetches:
        return Healthy(
            summary=f"Batches are made ahead of the step by {_ahead(pipeline)}", evidence=evidence
        )
    if not breakdown.waits_for_input or serial < limits.serial_ms:
        return Healthy(
            summary=f"Making a batch costs {milliseconds(serial)} per step", evidence=evidence
        )
    bound = Bound.EXPECTED if cores and cores.certain else Bound.AT_MOST
    last = next((stage for stage in pipeline.stages if stage.at), None)
    return Finding(
        summary=f"No prefetch: the step waits while {milliseconds(serial)} of input work are done",
        evidence=evidence,
        remedies=(
            Remedy(
                "Make prefetch the last transformation",
                "dataset = dataset.prefetch(tf.data.AUTOTUNE)",
                last.at if last else None,
                "prefetch",
            ),
        ),
        effects=(Effect(Stage.INPUT, overlaps=True, bound=bound),),
    )


def _ahead(pipeline: InputPipeline) -> str:
    stage = next(stage for stage in pipeline.stages if stage.asynchronous)
    return f"{stage.kind}, which tf.data added by itself" if stage.injected else f"{stage.kind}"


def sick() -> Verdict:
    """A map of 10 ms right before the trainer."""
    stage = StageTime(path="Root::Map", kind="Map", work_ms=10.0, wall_ms=10.0)
    parts = Breakdown.of(input=10.0, device=20.0)
    return check(InputPipeline.of(stage), parts, Cores(4.0, busy=1.0))


def healthy() -> Verdict:
    """The same map behind the prefetch that tf.data injects."""
    ahead = StageTime(
        path="Root::Prefetch",
        kind="Prefetch",
        name="inject/prefetch_MapDataset/_3",
        asynchronous=True,
    )
    stage = StageTime(path="Root::Prefetch::Map", kind="Map", work_ms=10.0, wall_ms=10.0)
    return check(InputPipeline.of(ahead, stage), Breakdown.of(device=20.0), None)
