"""One stage of the input pipeline limits training.

## What it checks

The stages of the input pipeline by time, where training steps wait for input and no other rule explains the wait.
Only stages of the slowest segment count: others work in parallel with it, so that a change saves nothing.

## Why it matters

A pipeline is as fast as its slowest segment, and steps wait for it. No rule knows what this stage is for, so the
report names the stage, its function and line, and its time. Stages that no step waits for are rows of the report's
profile. `input-bound`, which measures the wait, is one entry with this finding: its ceiling is that of both.

## How to fix

Where the stage's work is the same in every epoch, cache it or do it once before training. Otherwise let its
function work on whole batches, on smaller data or on more threads.

## Holds for

TensorFlow 2.3 and later, on CPU, GPU and TPU. Batches made outside tf.data do not appear. The saving is an upper
bound: the next slowest segment limits it.

## Sources

- [Better performance with the tf.data API](https://www.tensorflow.org/guide/data_performance)
- [Analyze tf.data performance with the TF Profiler](https://www.tensorflow.org/guide/data_performance_analysis)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.input.input_pipeline import GENERATOR, InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime, stage_table
from tfdoctor.facts.savings.unexplained import SHARE, Unexplained
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import location, milliseconds, percent
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Finding, Healthy, Measure, NotApplicable, Remedy, Stage, Verdict

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "it shows where the time goes, but no change that saves it"
GENERAL = True
"""Speaks only of time that no specific rule explains."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a stage is reported."""

    share: float = share_limit(
        SHARE, "Smallest share of the step in a stage that is reported: parts of less need no explanation"
    )


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
    least_ms = limits.share * breakdown.step_ms
    hot = [s for s in limiting if s.path not in unexplained.subjects and s.wall_ms >= least_ms]
    if hot:
        return _finding(hot, limiting, unexplained, breakdown, limits)
    summary = f"No stage of the input pipeline takes {percent(limits.share)} of the step without a finding"
    return Healthy(summary=summary, evidence=(stage_table(limiting, "time per step", lambda stage: stage.wall_ms),))


def _finding(
    hot: Sequence[StageTime],
    limiting: Sequence[StageTime],
    unexplained: Unexplained,
    breakdown: Breakdown,
    limits: Limits,
) -> Finding:
    """State the time of the first as a ceiling, and at most the wait that is unexplained."""
    first = hot[0]
    where = f" at {location(first.at)}" if first.at else ""
    share = first.wall_ms / breakdown.step_ms
    of = min(first.wall_ms, unexplained.parts_ms[Stage.INPUT])
    scales = 1.0 - of / first.wall_ms
    return Finding(
        summary=f"{first.title}{where} takes {milliseconds(first.wall_ms)} of {breakdown.each_step} "
        "and limits the input pipeline",
        evidence=(
            Measure.share("share of the step in the stage", share, limits.share),
            Measure("wait for input per step", ms(breakdown[Stage.INPUT])),
            stage_table(limiting, "time per step", lambda stage: stage.wall_ms),
        ),
        remedies=tuple(_remedy(stage) for stage in hot),
        effects=(Effect(Stage.INPUT, scales, first.path, ms(of), bound=Bound.AT_MOST),),
    )


def _remedy(stage: StageTime) -> Remedy:
    if stage.dataset and stage.dataset.function_at:
        return Remedy(
            f"Cache the output of {stage.title} where it is the same in every epoch; else let its function work on "
            "whole batches, on less data or on more threads",
            at=stage.dataset.function_at,
        )
    if stage.kind == GENERATOR:
        return Remedy(
            "Do less in the Python generator that makes the batches, or make them by operations of tf.data",
            at=stage.at,
        )
    return Remedy(f"Let {stage.title} handle fewer or smaller elements", at=stage.at)


def example(
    *stages: StageTime, wait: float = 30.0, left: float | None = None, subjects: frozenset[str] = frozenset()
) -> Verdict:
    """A function takes 40 ms per step, and steps wait 30 ms for it."""
    slow = StageTime.of("Root::Prefetch::Map", 40.0)
    unexplained = wait if left is None else left
    return check(
        Unexplained({Stage.INPUT: unexplained} if unexplained else {}, subjects),
        Breakdown.of(input=wait, device=40.0 - wait),
        InputPipeline.of(StageTime.of("Root::Prefetch"), *(stages or [slow])),
    )


sick = example


def healthy() -> Verdict:
    """Steps do not wait."""
    return example(StageTime.of("Root::Prefetch::Map", 0.5), wait=0.1, left=0.0)
