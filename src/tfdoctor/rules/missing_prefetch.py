"""Batches are not prefetched while the step runs.

## What it checks

Whether a stage at the end of the pipeline that *ran* produces batches ahead of the training loop (`Prefetch`,
or a parallel stage with its own buffer), and how much input work is done while the training loop waits.

## Why it matters

Without prefetching, the time to produce a batch and the time to train on it add up. With prefetching, the step
takes the longer of the two, provided that a core is free to produce batches at the same time.

## How to fix

Make `.prefetch(tf.data.AUTOTUNE)` the last transformation. On a run without an accelerator, input and
compute share the cores, so the free cores limit the saving.

## Holds for

TensorFlow 2.3 and later. tf.data adds a prefetch to most pipelines by itself (a stage called
`inject/prefetch_...`). Such a pipeline is not reported, even if the script has no `prefetch`.

## Sources

- [Better performance with the tf.data API: prefetching](https://www.tensorflow.org/guide/data_performance#prefetching)
- [tf.data.experimental.OptimizationOptions](https://www.tensorflow.org/api_docs/python/tf/data/experimental/OptimizationOptions)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit
from tfdoctor.facts.input.input_pipeline import NEGLIGIBLE_MS, InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.kinds import InputKind
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Finding, Healthy, Measure, NotApplicable, Remedy, Stage, Verdict

TOPIC = Topic.INPUT
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much work without prefetching is reported."""

    serial_ms: float = limit(
        NEGLIGIBLE_MS,
        "Smallest time in ms per step that the step waits for input work which a prefetch would do ahead; "
        "handing over a batch that is ready takes about 0.1 ms",
    )


def check(pipeline: InputPipeline, breakdown: Breakdown, cores: Cores | None, limits: Limits = Limits()) -> Verdict:
    """Look for a stage that works ahead, and for work that is done while the training loop waits."""
    serial = pipeline.serial_ms
    evidence = (
        Measure("input work while the step waits", ms(serial), ms(limits.serial_ms)),
        Measure("wait for input per step", ms(breakdown["input"])),
    )
    if pipeline.python_kind not in ("", InputKind.TF_DATA):
        return NotApplicable(
            reason=f"Keras builds the pipeline from {pipeline.python_kind}: there is no dataset to prefetch"
        )
    if pipeline.prefetches:
        ahead = next(stage for stage in pipeline.stages if stage.asynchronous)
        added = ", added by tf.data itself," if ahead.injected else ""
        summary = f"{ahead.kind}{added} produces batches ahead of the step"
        return Healthy(summary=summary, evidence=evidence)
    if not breakdown.waits_for_input or serial < limits.serial_ms:
        summary = f"Producing a batch takes {milliseconds(serial)} per step"
        return Healthy(summary=summary, evidence=evidence)
    last = next((stage for stage in pipeline.stages if stage.at), None)
    bound = Bound.EXPECTED if cores and cores.certain else Bound.AT_MOST
    return Finding(
        summary=f"No prefetch: the step waits for {milliseconds(serial)} of input work",
        evidence=evidence,
        remedies=(Remedy(ACTION, PREFETCH, last.at if last else None, "prefetch"),),
        effects=(Effect(Stage.INPUT, overlaps=True, bound=bound),),
    )


ACTION = "Make prefetch the last transformation"

PREFETCH = "dataset = dataset.prefetch(tf.data.AUTOTUNE)"


def example(*stages: StageTime, wait: float = 10.0, cores: Cores | None = Cores(4.0, busy=1.0)) -> Verdict:
    """A map of 10 ms runs right before the training loop, without prefetch."""
    pipeline = InputPipeline.of(*(stages or [StageTime.of("Root::Map", 10.0)]))
    return check(pipeline, Breakdown.of(input=wait, device=30.0 - wait), cores)


sick = example


def healthy() -> Verdict:
    """The same map, with a prefetch that tf.data adds by itself."""
    ahead = StageTime.of("Root::Prefetch", name="inject/prefetch_MapDataset/_3")
    return example(ahead, StageTime.of("Root::Prefetch::Map", 10.0), wait=0.0, cores=None)
