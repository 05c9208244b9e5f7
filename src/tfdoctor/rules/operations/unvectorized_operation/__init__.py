from tfdoctor.families.kit import *
from tfdoctor.rules.operations.unvectorized_operation.fallback_loops import FallbackLoops

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    share: float = share_limit(0.05)


def check(
    found: FallbackLoops, breakdown: Breakdown, device: Device, pipeline: InputPipeline | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Add up the loops of the step, and those of the stages that limit the pipeline."""
    loops = found.loops
    if not loops:
        return Healthy(summary="No operation of a vectorized_map is seen to run in a loop")
    measured = (row for one in loops if one.loop for row in one.loop.rows)  # on a CPU
    in_step = [row.scaled(0.0, Bound.AT_MOST) for row in measured if row.ms]
    in_step += Effect.of_stages({Stage.HOST: found.scheduling_ms}, StepWork.SCHEDULING)
    in_stages = []
    if pipeline and (breakdown.waits_for_input or in_step):  # else the step does not end earlier
        stages = {one.stage.path: one for one in loops if one.stage and one.stage in pipeline.limiting}
        in_stages = [
            one.stage.scaled(1.0 - one.stage_ms / one.stage.work_ms, Bound.AT_MOST)
            for one in stages.values()
            if one.stage and one.stage.work_ms
        ]
    seen = [*in_step, *in_stages] if breakdown.waits_for_input else in_step
    taken = sum(effect.of.value * (1.0 - effect.scales) for effect in seen if effect.of)
    share = breakdown.share(taken)
    names = ", ".join(dict.fromkeys(one.type for one in loops))
    summary = f"vectorized_map runs {names} once for each element, in {counted(len(loops), 'loop')}"
    table = Table.of(
        loops,
        ("operation", lambda one: one.type),
        ("your line", lambda one: one.at),
        ("runs in", lambda one: one.stage.title if one.stage else one.layer or "the step"),
        ("iterations per step", lambda one: count(one.loop.iterations) if one.loop else None),
        most=10,
    )
    on_gpu = device.kind != DeviceKind.CPU and any(one.rows for one in loops)
    at = next((one.at for one in loops if one.at), None)
    return judged(
        Measure("time in such loops, per step", ms(taken)),
        Measure.share("share of the step in such loops", share, limits.share),
        table,
        healthy=f"{summary}; this takes {percent(share)} of the step",
        finding=summary,
        wrong=share >= limits.share or on_gpu,
        remedies=[Remedy("Write the function for a whole batch", CODE["batched"], at)],
        effects=(*in_step, *in_stages),
    )
