"""The time of a stage, and of the segments of the input, after effects."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from tfdoctor.facts.input.input_pipeline import PipelineSegment
from tfdoctor.terms.verdict import Effect, Stage


def by_stage_of(effects: Iterable[Effect]) -> dict[Stage, list[Effect]]:
    """Group effects by their stage."""
    by_stage: dict[Stage, list[Effect]] = defaultdict(list)
    for effect in effects:
        by_stage[effect.stage].append(effect)
    return by_stage


def stretched(segment: PipelineSegment, factor: float) -> PipelineSegment:
    """Return a segment that takes so many times as long."""
    return PipelineSegment({path: ms * factor for path, ms in segment.stages.items()}, segment.overlapped)


def segment_ms(segment: PipelineSegment, effects: Iterable[Effect]) -> float:
    """Return the time of a segment after the effects on the input or on stages of it, in ms."""
    concerning = [effect for effect in effects if not effect.subject or effect.subject in segment.stages]
    return sum(
        ms * factor_of(effect for effect in concerning if effect.subject in ("", path))
        for path, ms in segment.stages.items()
    )


def factor_of(effects: Iterable[Effect]) -> float:
    """Return the product of what effects scale by, the same in whichever order they come."""
    factor = 1.0
    for effect in sorted(effects, key=lambda effect: effect.scales):
        factor *= effect.scales
    return factor


def stage_ms(work: float, effects: Iterable[Effect], floors: Mapping[str, float], kept: float = 1.0) -> float:
    """Return a stage's work after effects on the whole stage or on subjects within it.

    Effects on one subject multiply, so that two of them never save the same milliseconds twice. They do
    not go below the subject's floor, which is zero where an effect removes it, and lower where its tensors
    shrink. ``kept`` is the share of the subjects' traced time that is not the profiler's.
    """
    subjects: dict[str, list[Effect]] = defaultdict(list)
    for effect in effects:
        subjects[effect.subject].append(effect)
    whole = factor_of(subjects.pop("", []))
    saved = 0.0
    for subject, subject_effects in subjects.items():
        traced = max((effect.of.value for effect in subject_effects if effect.of), default=0.0)
        taken = kept * traced
        left = taken * factor_of(subject_effects)
        reduced = factor_of(effect for effect in subject_effects if effect.narrows)
        removed = any(effect.scales == 0.0 for effect in subject_effects)  # left may underflow to 0
        least = 0.0 if removed else floors.get(subject, 0.0) * reduced
        saved += taken - max(left, min(taken, least))
    return max(0.0, work - saved) * whole
