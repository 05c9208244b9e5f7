from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.unvectorized_operation.fallback_loops import FallbackLoop, FallbackLoops

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.2.0"
BY_HAND = "which form of the function takes a whole batch is not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """When such loops are reported."""

    share: float = share_limit(
        0.05, "Smallest share of the step in such loops that is reported, as of other savings"
    )


def check(
    found: FallbackLoops,
    breakdown: Breakdown,
    device: Device,
    pipeline: InputPipeline | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Add up the loops of the step, and those of the stages that limit the pipeline."""
    if not found.loops:
        return Healthy(summary="No operation of a vectorized_map is seen to run in a loop")
    in_step = tuple(_of_step(found))
    in_stages = tuple(_of_stages(found, pipeline.limiting)) if pipeline else ()
    if not breakdown.waits_for_input and not in_step:
        in_stages = ()  # the step does not end earlier
    effects = (*in_step, *in_stages)
    on_gpu = device.kind != DeviceKind.CPU and any(loop.rows for loop in found.loops)
    seen = effects if breakdown.waits_for_input else in_step
    taken = sum(effect.of.value * (1.0 - effect.scales) for effect in seen if effect.of)
    share = breakdown.share(taken)
    names = ", ".join(dict.fromkeys(loop.type for loop in found.loops))
    summary = f"vectorized_map runs {names} once for each element, in {counted(len(found.loops), 'loop')}"
    evidence = (
        Measure("time in such loops, per step", ms(taken)),
        Measure.share("share of the step in such loops", share, limits.share),
        _table(found.loops),
    )
    if share < limits.share and not on_gpu:
        return Healthy(summary=f"{summary}, which take little of the step", evidence=evidence)
    at = next((loop.at for loop in found.loops if loop.at), None)
    return Finding(
        summary=summary,
        evidence=evidence,
        remedies=(Remedy("Write the function for a whole batch", CODE["batched"], at),),
        effects=effects,
    )


def _of_step(found: FallbackLoops) -> Iterator[Effect]:
    """Yield what a CPU's step saves without its loops."""
    for loop in found.loops:
        if loop.loop:
            yield from (row.scaled(0.0, Bound.AT_MOST) for row in loop.loop.rows if row.ms)
    if found.scheduling_ms:
        yield from Effect.of_stages({Stage.HOST: found.scheduling_ms}, StepWork.SCHEDULING)


def _of_stages(found: FallbackLoops, limiting: tuple[StageTime, ...]) -> Iterator[Effect]:
    """Yield what the stages that limit the pipeline save; without its own loops the step may wait for them."""
    stages = {loop.stage.path: loop for loop in found.loops if loop.stage in limiting}
    for loop in stages.values():
        if loop.stage and loop.stage.work_ms:
            yield loop.stage.scaled(1.0 - loop.stage_ms / loop.stage.work_ms, Bound.AT_MOST)


def _table(loops: tuple[FallbackLoop, ...]) -> Table:
    return Table.of(
        loops,
        ("operation", lambda loop: loop.type),
        ("your line", lambda loop: loop.at),
        ("runs in", lambda loop: loop.stage.title if loop.stage else loop.layer or "the step"),
        ("iterations per step", lambda loop: count(loop.loop.iterations) if loop.loop else None),
        most=10,
    )
