from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.map_functions import MapFunction, MapFunctions
from tfdoctor.facts.machine.cpu_contention import CpuContention

__doc__, CODE = page(__file__)

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
    remedy = Remedy(BATCH_FIRST, CODE["whole"].format(stage.function), stage.at, "vectorized-map")
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
