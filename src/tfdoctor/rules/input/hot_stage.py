from tfdoctor.facts.input.input_pipeline import GENERATOR, stage_table
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
GENERAL = True  # Speaks only of time that no specific rule explains


class Limits(RuleLimits):
    share: float = share_limit(SHARE)


def check(
    unexplained: Unexplained, breakdown: Breakdown, pipeline: InputPipeline, limits: Limits = Limits()
) -> Verdict:
    """Name the stages of the slowest segment, where steps wait and no other finding says why."""
    if Stage.INPUT not in unexplained.parts_ms:
        return Healthy(summary="Findings and necessary work leave no large part of the wait for input")
    stages = [stage for stage in pipeline.limiting if stage.wall_ms and not stage.is_root]
    limiting = sorted(stages, key=lambda stage: -stage.wall_ms)
    if not limiting:
        return NotApplicable(reason="the times of the pipeline's stages do not explain the wait")
    table = stage_table(limiting, "time per step", lambda stage: stage.wall_ms)
    least_ms = limits.share * breakdown.step_ms
    hot = [one for one in limiting if one.path not in unexplained.subjects and one.wall_ms >= least_ms]
    if not hot:
        summary = f"No stage of the input pipeline takes {percent(limits.share)} of the step without a finding"
        return Healthy(summary=summary, evidence=(table,))
    remedies = []
    for stage in hot:
        action, at = f"Let {stage.title} handle fewer or smaller elements", stage.at
        if stage.dataset and stage.dataset.function_at:
            same = f"Cache the output of {stage.title} where it is the same in every epoch"
            action = f"{same}; else let its function work on whole batches, on less data or on more threads"
            at = stage.dataset.function_at
        elif stage.kind == GENERATOR:
            action = "Do less in the Python generator that makes the batches, or make them by operations of tf.data"
        remedies.append(Remedy(action, at=at))
    first = hot[0]
    where = f" at {location(first.at)}" if first.at else ""
    of = min(first.wall_ms, unexplained.parts_ms[Stage.INPUT])  # at most the wait that is unexplained
    return Finding(
        summary=f"{first.title}{where} takes {milliseconds(first.wall_ms)} of {breakdown.each_step} "
        "and limits the input pipeline",
        evidence=(
            Measure.share("share of the step in the stage", first.wall_ms / breakdown.step_ms, limits.share),
            Measure("wait for input per step", ms(breakdown[Stage.INPUT])),
            table,
        ),
        remedies=tuple(remedies),
        effects=(Effect(Stage.INPUT, 1.0 - of / first.wall_ms, first.path, ms(of), bound=Bound.AT_MOST),),
    )
