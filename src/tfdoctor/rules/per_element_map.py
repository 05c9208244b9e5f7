"""A cheap function is called for each element, and the calls cost more than what it does.

## What it checks

Whether a `map` before `batch` in the part of the pipeline that limits a waiting step spends most of its
time on being called: the time of one call, against what its operations can take for the bytes that
they write.

## Why it matters

Each call of a mapped function costs tens of microseconds, and each operation in it a microsecond or
more, however small its tensors are. On a batch of 256 rows that is paid 256 times.

## How to fix

Batch first, then map a function of whole batches: `tf.io.decode_csv`, `tf.io.parse_example` (for
`parse_single_example`), arithmetic and lookups take many rows as they take one; write axes from the
right (`axis=-1`).

## Holds for

TensorFlow 2.3 and later. The saving is a ceiling. Functions that take one item only (decoding images,
reading files), draw random numbers, branch or loop, multiply matrices or make elements of several shapes
are left out: mapping them over batches is another function, not another order.

## Sources

- [Better performance with the tf.data API: vectorizing mapping](https://www.tensorflow.org/guide/data_performance#vectorizing_mapping)
- [tf.io.parse_example](https://www.tensorflow.org/api_docs/python/tf/io/parse_example)
"""

import re
from dataclasses import dataclass

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.input.map_functions import MapFunction, MapFunctions
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import milliseconds
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, nbytes, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Location,
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

FUSED = "MapAndBatch"
"""A map that is asked for whole batches, and calls its function for each element all the same."""

OTHERWISE = re.compile(
    r"(?:Decode(?!CSV|Raw|PaddedRaw)|Encode|Extract|Sample|NonMax)\w*|\w*(?:File|PyFunc)\w*|\w*Random\w*"
    r"|\w*(?:MatMul|Conv|FFT|Resize|Pool|Einsum|Svd|Qr|Cholesky)\w*|\w*(?:While|If|Case|For)"
    r"|Unique\w*|Where|StringSplit\w*|\w*Dataset\w*|ParseTensor|\w*Call|\w*Multinomial|Rng\w*"
)
"""Operations that take one item, give another number each time, or compute more than they write."""

BYTES_PER_MS = 1e6
"""What one thread writes in a chain of small operations at least: a GB/s, a tenth of a core's bandwidth."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    call_ms: float = limit(
        0.1,
        "ms that a call of the function takes: the calls themselves cost some 0.01 to 0.05 ms (measured)",
    )
    working: float = limit(
        0.3,
        "of a call that its operations can take for the bytes which they write: above it, the work "
        "dominates",
        most=1.0,
    )
    elements: float = limit(
        8.0, "elements per step, up to which calls are too few to matter", least=1.0
    )


LIMITS = Limits()


def check(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    functions: MapFunctions | Unavailable,
    contention: CpuContention,
    limits: Limits = LIMITS,
) -> Verdict:
    """Look for calls that cost more than what they compute, where the pipeline is slowest."""
    if not breakdown.waits_for_input:
        if pipeline.why_idle:
            return NotApplicable(reason=pipeline.why_idle)
        return Healthy(summary=f"Calls of maps keep nobody waiting: {breakdown.little_wait}")
    slowest = pipeline.slowest.stages if pipeline.slowest else {}
    maps = [s for s in pipeline.stages if s.path in slowest and MAP.fullmatch(s.kind) and s.work_ms]
    if not maps:
        return Healthy(summary="No map limits the pipeline")
    if isinstance(functions, Unavailable):
        return NotApplicable(reason=str(functions))
    stage = max(maps, key=lambda one: one.work_ms)
    function = functions.by_dataset.get(stage.dataset.id) if stage.dataset else None
    if function is None:
        return NotApplicable(
            reason=f"what the function of {stage.title} computes could not be told from the record"
        )
    return _judged(stage, function, contention, limits)


def _judged(
    stage: StageTime, function: MapFunction, contention: CpuContention, limits: Limits
) -> Verdict:
    elements = stage.calls * (function.batch if stage.kind.startswith(FUSED) else 1)
    call = stage.work_ms / elements if elements else 0.0
    said = f"{stage.title} takes {milliseconds(call)} for each element"
    if why := _otherwise(stage, function):
        return Healthy(summary=f"{said}, and {why}")
    working = (function.nbytes or 0) / BYTES_PER_MS / call if call else 1.0
    measures = (
        Measure("a call of the function", ms(call), ms(limits.call_ms)),
        Measure("elements per step", count(elements), count(limits.elements)),
        Measure("bytes that its operations write in a call", nbytes(function.nbytes or 0)),
        Measure("of a call that writing them can take", ratio(working), ratio(limits.working)),
    )
    if call > limits.call_ms or elements <= limits.elements or working > limits.working:
        return Healthy(summary=f"{said}, most of it work", evidence=measures)
    left = min(1.0, max(1.0 / function.batch, working))
    effect = Effect(Stage.INPUT, left, stage.path, ms(stage.work_ms), bound=Bound.AT_MOST)
    return Finding(
        summary=f"{said}, {round(elements)} times a step: most of it goes into the calls",
        evidence=measures,
        remedies=(
            Remedy("Batch first, then map whole batches", _code(stage), stage.at, "vectorized-map"),
        ),
        effects=(effect, *contention.relief(stage.work_ms * (1.0 - left))),
    )


def _otherwise(stage: StageTime, function: MapFunction) -> str:
    """Return why a function cannot simply take batches; "" when it can."""
    if stage.python_ms > 0:
        return "runs Python"
    if not function.batch:
        return "no batch takes its results one by one"
    if function.nbytes is None or not function.fixed:
        return "its elements are of several shapes"
    others = sorted(one for one in function.types if OTHERWISE.fullmatch(one))
    return f"what {others[0]} would gain from whole batches is not known" if others else ""


def _code(stage: StageTime) -> str:
    name = stage.dataset.function if stage.dataset else ""
    function = name if name.isidentifier() else "function"
    return f"""\
dataset = dataset.batch(batch_size)
dataset = dataset.map({function}, num_parallel_calls=tf.data.AUTOTUNE)  # of whole batches: axis=-1"""


CSV = Dataset(id=1, kind="_ParallelMapDataset", function="columns", at=Location("train.py", 12))


def sick() -> Verdict:
    """Rows of CSV decoded one by one: 256 calls of 0.03 ms a step."""
    return _example(work=7.7, nbytes_written=300)


def healthy() -> Verdict:
    """As many calls, which write 20 kB each."""
    return _example(work=7.7, nbytes_written=20_000)


def _example(work: float, nbytes_written: int) -> Verdict:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    stage = StageTime(
        path="Root::Prefetch::MapAndBatch",
        kind="MapAndBatch",
        work_ms=work,
        wall_ms=work / 1.4,
        asynchronous=True,
        dataset=CSV,
    )
    decode = MapFunction(frozenset(("DecodeCSV", "Pack")), 2, nbytes_written, batch=256)
    return check(
        InputPipeline.of(ahead, stage),
        Breakdown.of(input=5.8, host=2.3),
        MapFunctions({CSV.id: decode}),
        CpuContention(crowded=False),
    )
