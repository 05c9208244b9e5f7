from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (pipeline_ran, awaited("Map functions do"))

FUSED = "MapAndBatch"  # A map that produces whole batches, and still calls its function for each element


class Limits(RuleLimits):
    call_ms: float = limit(0.1)
    working: float = share_limit(0.3)
    elements: float = limit(8.0, least=1.0)


def check(
    pipeline: InputPipeline, functions: MapFunctions | Unavailable, contention: CpuContention,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare a call's time, in the slowest part of the pipeline, with what its operations need to write bytes."""
    stage = heaviest(pipeline.limiting, MAPS)
    if stage is None:
        return Healthy(summary="No map limits the pipeline")
    if isinstance(functions, Unavailable):
        return NotApplicable(reason=str(functions))
    function = functions.by_dataset.get(stage.dataset.id) if stage.dataset else None
    if function is None:
        return NotApplicable(reason=f"the recording does not show what the function of {stage.title} computes")
    elements = stage.calls * (function.batch if stage.kind.startswith(FUSED) else 1)
    call = stage.work_ms / elements if elements else 0.0
    summary = f"{stage.title} takes {milliseconds(call)} per element"
    single, fixed = function.single, function.nbytes is not None and function.fixed
    why = why_not(
        (stage.python_ms > 0, "it runs Python"),
        (not function.batch, "no later batch takes its single elements"),
        (not fixed, "its elements differ in shape"),
        (single, f"{single[0]} may gain nothing from whole batches" if single else ""),
    )
    if why:
        return Healthy(summary=f"{summary}; batching first may not help: {why}")
    written = function.nbytes or 0
    working = written / BYTES_PER_MS / call if call else 1.0
    left = min(1.0, max(1.0 / function.batch, working))
    code = CODE["whole"].format(stage.function)
    return judged(
        Measure("time per call of the function", ms(call), ms(limits.call_ms)),
        Measure("elements per step", count(elements), count(limits.elements)),
        Measure("bytes written by the operations of one call", nbytes(written)),
        Measure.share("maximum share of a call spent writing outputs", working, limits.working),
        healthy=f"{summary}; call overhead takes little time",
        finding=f"{summary}, {round(elements)} times per step, mostly call overhead",
        wrong=call <= limits.call_ms and elements > limits.elements and working <= limits.working,
        remedies=[Remedy("Batch first, then map whole batches", code, stage.at, "vectorized-map")],
        effects=(stage.scaled(left, Bound.AT_MOST), *contention.relief(stage.work_ms * (1.0 - left))),
    )
