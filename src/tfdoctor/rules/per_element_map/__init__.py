"""Per-element function calls cost more than their work.

## What it checks

Whether a `map` before `batch`, in the part of the pipeline that limits a waiting step, spends most of its time
on call overhead: the time of one call is compared with the time that its operations need for the bytes that
they write.

## Why it matters

Each call of a mapped function costs tens of microseconds, and each operation in it a microsecond or
more, however small its tensors are. A batch of 256 rows pays this 256 times.

## How to fix

Batch first, then map a function that takes whole batches: `tf.io.decode_csv`, `tf.io.parse_example` (for
`parse_single_example`), arithmetic and lookups take many rows as well as one. Count axes from the
right (`axis=-1`).

## Holds for

TensorFlow 2.3 and later. The saving is an upper bound. Functions are left out if they take single items only
(decoding images, reading files), draw random numbers, branch or loop, multiply matrices or produce elements of
several shapes: on batches they would need a different function, not only a different order.

## Sources

- [Better performance with the tf.data API: vectorizing mapping](https://www.tensorflow.org/guide/data_performance#vectorizing_mapping)
- [tf.io.parse_example](https://www.tensorflow.org/api_docs/python/tf/io/parse_example)
"""

import re
from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import pipeline_ran
from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.map_functions import MapFunction, MapFunctions
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.units import count, ms, nbytes
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Measure, NotApplicable, Remedy, Verdict

TOPIC = Topic.INPUT
SINCE = "0.1.0"
PRECONDITIONS = (pipeline_ran,)

MAP = re.compile(r"(?:Parallel)?Map(?:V\d)?|MapAndBatch(?:V\d)?")
"""The stages that a ``.map()`` runs as."""

FUSED = "MapAndBatch"
"""A map that produces whole batches, and still calls its function for each element."""

BYTES_PER_MS = 1e6
"""Least that one thread writes in a chain of small operations: 1 GB/s, a tenth of a core's bandwidth."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When call overhead is called the main cost of a map."""

    call_ms: float = limit(
        0.1, "Longest call in ms that can be mostly overhead; the overhead is 0.01 to 0.05 ms (measured)"
    )
    working: float = share_limit(
        0.3, "Largest share of a call spent writing its outputs; above it, the work dominates"
    )
    elements: float = limit(8.0, "Elements per step up to which the calls are too few to matter", least=1.0)


def check(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    functions: MapFunctions | Unavailable,
    contention: CpuContention,
    limits: Limits = Limits(),
) -> Verdict:
    """Look for calls whose overhead exceeds their work in the slowest part of the pipeline."""
    if not breakdown.waits_for_input:
        return Healthy(summary=f"Map functions do not slow training: {breakdown.little_wait}")
    maps = [one for one in pipeline.limiting if MAP.fullmatch(one.kind) and one.work_ms]
    stage = max(maps, key=lambda stage: stage.work_ms, default=None)
    if stage is None:
        return Healthy(summary="No map limits the pipeline")
    if isinstance(functions, Unavailable):
        return NotApplicable(reason=str(functions))
    function = functions.by_dataset.get(stage.dataset.id) if stage.dataset else None
    if function is None:
        return NotApplicable(reason=f"the recording does not show what the function of {stage.title} computes")
    return _judged(stage, function, contention, limits)


def _judged(stage: StageTime, function: MapFunction, contention: CpuContention, limits: Limits) -> Verdict:
    """Compare a call's time with what its operations need for the bytes that they write."""
    elements = stage.calls * (function.batch if stage.kind.startswith(FUSED) else 1)
    call = stage.work_ms / elements if elements else 0.0
    summary = f"{stage.title} takes {milliseconds(call)} per element"
    if why := _why_not_batches(stage, function):
        return Healthy(summary=f"{summary}; batching first may not help: {why}")
    written = function.nbytes or 0
    working = written / BYTES_PER_MS / call if call else 1.0
    measures = (
        Measure("time per call of the function", ms(call), ms(limits.call_ms)),
        Measure("elements per step", count(elements), count(limits.elements)),
        Measure("bytes written by the operations of one call", nbytes(written)),
        Measure.share("maximum share of a call spent writing outputs", working, limits.working),
    )
    if call > limits.call_ms or elements <= limits.elements or working > limits.working:
        return Healthy(summary=f"{summary}; call overhead takes little time", evidence=measures)
    remaining = min(1.0, max(1.0 / function.batch, working))
    spared_ms = stage.work_ms * (1.0 - remaining)
    remedy = Remedy(BATCH_FIRST, WHOLE.format(stage.function), stage.at, "vectorized-map")
    return Finding(
        summary=f"{summary}, {round(elements)} times per step, mostly call overhead",
        evidence=measures,
        remedies=(remedy,),
        effects=(stage.scaled(remaining, Bound.AT_MOST), *contention.relief(spared_ms)),
    )


def _why_not_batches(stage: StageTime, function: MapFunction) -> str:
    """Return why a function cannot simply take batches; "" when it can."""
    if stage.python_ms > 0:
        return "it runs Python"
    if not function.batch:
        return "no later batch takes its single elements"
    if function.nbytes is None or not function.fixed:
        return "its elements differ in shape"
    others = function.single
    return f"{others[0]} may gain nothing from whole batches" if others else ""


BATCH_FIRST = "Batch first, then map whole batches"

WHOLE = """\
dataset = dataset.batch(batch_size)
dataset = dataset.map({}, num_parallel_calls=tf.data.AUTOTUNE)  # takes whole batches: axis=-1"""


CSV = Dataset(id=1, kind="_ParallelMapDataset", function="columns", at=Location("train.py", 12))
CHEAP = frozenset(("DecodeCSV", "Pack"))


def example(  # noqa: PLR0913 - what a call costs, and what needs it
    stage: StageTime = StageTime.of("Root::Prefetch::MapAndBatch", 7.7, 1.4, dataset=CSV),
    types: frozenset[str] = CHEAP,
    nbytes: int | None = 300,
    batch: int = 256,
    *,
    fixed: bool = True,
    wait: float = 5.8,
    contention: CpuContention = CpuContention(crowded=False),
) -> Verdict:
    """CSV rows are decoded one by one: 256 calls of 0.03 ms per step."""
    return check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), stage),
        Breakdown.of(input=wait, host=2.3),
        MapFunctions({CSV.id: MapFunction(types, 2, nbytes, batch, fixed)}),
        contention,
    )


sick = example


def healthy() -> Verdict:
    """The same number of calls, each of which writes 20 kB."""
    return example(nbytes=20_000)
