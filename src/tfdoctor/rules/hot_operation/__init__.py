"""One operation takes much of the step.

## What it checks

The device's time by operation type and line, where no other rule explains it. Each group is compared with the
time that its bytes and FLOPs need on this hardware. Reported are groups of 10 % of the step and 0.2 ms or more
that need less than half of their time, groups whose least time is unknown, and lines that make many operations of a
few microseconds. Where single types take less, all types of a line or layer count together, and at last all
lines. Operations that only Keras metrics use, or that depend on constants only, are reported from 5 % of the
step. Where a step calls the layer that made the operations several times, the report has the lines of the
calls, and which calls compute the same: all their operations have equal inputs.

Matmuls and convolutions of unknown peak rate are a question: their rate is compared with the best one that this run
reaches for the type. What only takes long, or has an unknown least time, is a note, and so are the short operations
of Keras layers, which the user's line did not choose. A kernel far from the
hardware's rate is rated one level lower than its ceiling, for nothing shows how to make it faster.

## Why it matters

Some operations are slow out of proportion to their data: sorting, unique values, cumulative sums, loops over single
elements, kernels without a fast implementation for the type. No rule knows what this one is for, so the report
can only name the place, the time and the distance from the hardware's rates.

## How to fix

Ask of the operation: is it needed in every step? Can it run in the input pipeline, where it overlaps with the step?
Is a smaller type or tensor possible? Does an equivalent exist that reads its input once? For many short operations:
can one operation on the whole batch replace the loop, or can XLA fuse them (`jit_compile=True`)?

## Holds for

All devices. On a CPU the memory's rate is the one that this run's own elementwise operations reach, and the peak
FLOP/s are unknown. Operations that compute much per byte (exponentials, random numbers) stay below the
memory's rate on any hardware. The saving is an upper bound. Which metric made an operation is known with Keras
2 and 3.

## Sources

- [Roofline: an insightful visual performance model](https://doi.org/10.1145/1498765.1498785)
- [Optimize TensorFlow performance using the Profiler](https://www.tensorflow.org/guide/profiler)
- [XLA: optimizing compiler for machine learning](https://openxla.org/xla/tf2xla)
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.operations.loop_work import LoopWork
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.savings.dispatch import Dispatch
from tfdoctor.facts.savings.layer_calls import LayerCalls
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.savings.unexplained import SHARE, Unexplained
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.host_lines import HostLines
from tfdoctor.rules.hot_operation.called_layers import again, call_tables, layers, repeats
from tfdoctor.rules.hot_operation.hot_work import HotWork, Least, Stated, called, scale_of, without
from tfdoctor.rules.hot_operation.questions import remedies
from tfdoctor.rules.hot_operation.search import Marks, find
from tfdoctor.rules.hot_operation.sentences import SHOWN_ROWS, summary, table
from tfdoctor.terms.humanize import counted, location, percent
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    PartTime,
    Severity,
    Stage,
    Verdict,
)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
BY_HAND = "it shows where the time goes, but no change that saves it"
GENERAL = True
"""Speaks only of time that no specific rule explains."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a group of operations is reported."""

    share: float = share_limit(
        SHARE,
        "Smallest share of the step in a group of operations that is reported: parts of less need no explanation",
    )
    least_ms: float = limit(
        0.2,
        "Shortest time per step, in ms, in a group of operations that is reported: tracing itself added 0.17 ms to "
        "a step of 224 short operations",
    )
    avoidable_share: float = share_limit(
        0.05,
        "Smallest share of the step in operations that the training does not need in every step: a change that "
        "saves this much is a warning",
    )
    near: float = share_limit(
        0.5,
        "Smallest ratio of least to measured time at which an operation counts as necessary: well-written "
        "kernels reach 50 to 90 % of a roofline, so that less than half of the time can be saved",
    )
    short_ms: float = limit(
        0.01,
        "Longest mean time of a call, in ms, that counts as short: dispatching takes 0.002 ms on a CPU, and an "
        "empty GPU kernel 0.002 to 0.003 ms",
    )


def check(  # noqa: PLR0913, PLR0917 - what is unexplained, and the facts that divide it
    unexplained: Unexplained,
    breakdown: Breakdown,
    operations: OperationGroups,
    lines: HostLines | None,
    calls: LayerCalls | None,
    loops: LoopWork | None,
    model: StepModel | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Name the operations that take long for their bytes and FLOPs, where no other finding does."""
    if not {Stage.DEVICE, Stage.HOST} & set(unexplained.parts_ms):
        return Healthy(summary="No large part of the device's time is unexplained")
    groups = [left for group in operations.groups if (left := without(group, unexplained))]
    shares = (limits.share, limits.avoidable_share)
    least = Least(*(max(limits.least_ms, share * breakdown.step_ms) for share in shares))
    dispatch = Dispatch.of(operations.groups, lines, loops).at_most(groups, unexplained)
    found = find(groups, dispatch, unexplained, least, Marks(limits.near, limits.short_ms))
    stated = Stated.of(model, breakdown, unexplained)  # less: the profiler takes much of short ones
    least = Least(*(share * stated.step_ms for share in shares))
    hot = [called(one, calls) for one in found if stated.ms_of(one) >= least.of(one)]
    if hot:
        return _finding(hot, stated, unexplained, breakdown, limits)
    if operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    return Healthy(
        summary=f"No operation takes {percent(limits.share)} of the step and over twice its least time",
        evidence=(table(groups, stated),) if groups else (),
        necessary=tuple(_necessary(groups, limits)),
    )


def _necessary(groups: Iterable[OperationGroup], limits: Limits) -> Iterator[PartTime]:
    """Yield the time of the operations that run near the rates of the hardware."""
    near = [
        group for group in groups if group.attained is not None and group.attained >= limits.near
    ]
    total_ms = sum(group.ms for group in near)
    if total_ms:
        attained = sum((group.attained or 0.0) * group.ms for group in near) / total_ms
        why = f"the operations reach {percent(attained)} of what this hardware allows for their bytes and FLOPs"
        yield PartTime(Stage.DEVICE, ms(total_ms), why)


def _finding(
    found: list[HotWork],
    stated: Stated,
    unexplained: Unexplained,
    breakdown: Breakdown,
    limits: Limits,
) -> Finding:
    """Return what to ask of the first, with one time of it; the others are evidence.

    What less is possible of comes before questions, each by time.
    """
    hot = sorted(found, key=lambda one: (one.is_question and not one.repeated_ms, -one.ms))
    first = hot[0]
    takes = stated.ms_of(first)
    label = "share of the step in the operations of the line"
    groups = sorted((group for one in hot for group in one.groups), key=lambda group: -group.ms)
    return Finding(
        summary=summary(first, stated) + again(first, stated),
        evidence=(
            Measure.share(label, takes / stated.step_ms, limits.share),
            *_measures(hot, stated, limits),
            *repeats(hot, stated),
            table(groups, stated),
            *call_tables(hot),
        ),
        remedies=tuple(remedies(hot[:SHOWN_ROWS])),
        effects=tuple(_effects(found, unexplained)),
        severity=max(_severity(one, breakdown) for one in found),
        takes=ms(takes),
    )


def _measures(hot: list[HotWork], stated: Stated, limits: Limits) -> Iterator[Measure]:
    """Yield how far the first is from what it needs, and how long all groups take where there are several."""
    first, group = hot[0], hot[0].groups[0]
    if first.short:
        each = stated.device * group.each_ms
        yield Measure("mean time of a call", ms(each), ms(limits.short_ms))
        if first.host_ms:
            label = f"time to dispatch the operations {stated.per_step}"
            yield Measure(label, ms(stated.host * first.host_ms))
    elif not first.title and group.attained is not None:
        yield Measure.share("least time relative to the measured time", group.attained, limits.near)
    if len(hot) > 1:
        label = f"time in this and {counted(len(hot) - 1, 'more group')} of operations, "
        yield Measure(f"{label}{stated.per_step}", ms(stated.ms_of(*hot)))


def _severity(hot: HotWork, breakdown: Breakdown) -> Severity:
    """Return how severe it is: one level less than its ceiling, unless all of it is avoidable.

    A kernel far from the hardware's rate shows that less time is possible, not how. Computing the same again is as
    severe as its time.
    """
    repeated = Severity.of(hot.repeated_ms / breakdown.step_ms)
    if hot.is_question:
        return repeated
    severity = Severity.of(hot.ceiling_ms / breakdown.step_ms)
    return severity if hot.avoidable else Severity(max(Severity.NOTE, severity - 1, repeated))


def _effects(hot: list[HotWork], unexplained: Unexplained) -> Iterator[Effect]:
    """Yield the time of each operation that may take less, as a ceiling, and at most what is unexplained.

    It has the groups that are evidence besides the one of the summary.
    """
    rows = [(row, group) for one in hot for group in one.groups for row in group.rows]
    total = sum(row.ms for row, _ in rows)
    left = unexplained.parts_ms.get(Stage.DEVICE, 0.0)
    part = min(1.0, left / total) if total else 0.0
    calls = [call for layer in layers(hot) for call in layer.repeated]
    repeated = {name for call in calls for name in call.operations}
    for row, group in rows if part else ():
        is_repeat = row.operation is not None and row.operation.name in repeated
        least = 0.0 if is_repeat or scale_of(group) < 1.0 else 1.0
        yield Effect(Stage.DEVICE, least, row.name, ms(row.ms * part), bound=Bound.AT_MOST)
    for one in hot:
        if one.host_ms:  # of a loop or of a line: a line may make two loops
            work = f"dispatching {one.groups[0].loop or location(one.at)}".strip()
            yield Effect(Stage.HOST, 0.0, work, ms(one.host_ms), bound=Bound.AT_MOST)


def group(
    kind: str = "TopKV2",
    time_ms: float = 20.0,
    least: float | None = 0.4,
    calls: float = 1.0,
    at: Location = Location("train.py", 14),
    **more: Any,  # noqa: ANN401 - of the group
) -> OperationGroup:
    """Build the group of one operation."""
    row = OperationTime(name=kind, type=kind, ms=time_ms, calls=calls, at=at)
    missing = "" if least is not None else "shapes unknown"
    parts: dict[str, Any] = {"layers": (), "rows": (row,), "missing": missing}
    return OperationGroup(type=kind, at=at, least_ms=least, **(parts | more))


def example(  # noqa: PLR0913 - one argument for each fact of the rule
    *groups: OperationGroup,
    step: Breakdown | None = None,
    left: Mapping[str, float] | None = None,
    subjects: frozenset[str] = frozenset(),
    lines: HostLines | None = None,
    unnamed: str = "",
    calls: LayerCalls | None = None,
    loops: LoopWork | None = None,
    model: StepModel | None = None,
) -> Verdict:
    """Sorting takes 20 of 40 ms, where reading and writing the tensor takes 0.4 ms."""
    return check(
        Unexplained({Stage.DEVICE: 38.0} if left is None else left, subjects),
        step or Breakdown.of(device=38.0, host=2.0),
        OperationGroups(groups or (() if unnamed else (group(),)), unnamed),
        lines,
        calls,
        loops,
        model,
    )


sick = example


def healthy() -> Verdict:
    """An operation takes half of the step, and its bytes need nearly all of that time."""
    return example(group(least=18.0))
