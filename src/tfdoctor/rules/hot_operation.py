"""One operation takes much of the step.

## What it checks

The device's time by operation type and line, where no other rule explains it. Each group is compared with the
time that its bytes and FLOPs need on this hardware. Reported are groups of 10 % of the step and 0.2 ms or more
that need less than half of their time, groups whose least time is unknown, and lines that make many operations of a
few microseconds. Matmuls and convolutions are reported only where the peak rate is known.

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
memory's rate on any hardware. The saving is an upper bound.

## Sources

- [Roofline: an insightful visual performance model](https://doi.org/10.1145/1498765.1498785)
- [Optimize TensorFlow performance using the Profiler](https://www.tensorflow.org/guide/profiler)
- [XLA: optimizing compiler for machine learning](https://openxla.org/xla/tf2xla)
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups
from tfdoctor.facts.savings.unexplained import SHARE, Unexplained
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.host_lines import HostLines
from tfdoctor.humanize import location, milliseconds, number, percent
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Cell,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    PartTime,
    Remedy,
    Stage,
    StepWork,
    Table,
    Verdict,
)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
GENERAL = True
"""Speaks only of time that no specific rule explains."""

SHOWN_ROWS = 8
"""Rows of the table: the groups that take most of the time."""

COLUMNS = (
    "operation",
    "your line",
    "layer",
    "calls",
    "time per call",
    "time per step",
    "least time",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """When a group of operations is reported."""

    share: float = limit(
        SHARE,
        "Smallest share of the step in a group of operations that is reported: parts of less need no explanation",
        most=1.0,
    )
    least_ms: float = limit(
        0.2,
        "Shortest time per step, in ms, in a group of operations that is reported: tracing itself added 0.17 ms to "
        "a step of 224 short operations",
    )
    near: float = limit(
        0.5,
        "Smallest ratio of least to measured time at which an operation counts as necessary: well-written "
        "kernels reach 50 to 90 % of a roofline, so that less than half of the time can be saved",
        most=1.0,
    )
    short_ms: float = limit(
        0.01,
        "Longest mean time of a call, in ms, that counts as short: dispatching takes 0.002 ms on a CPU, and an "
        "empty GPU kernel 0.002 to 0.003 ms",
    )


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class HotWork:
    """What one line makes the device do: one group of operations, or many short ones; ms per step."""

    at: Location | None
    groups: tuple[OperationGroup, ...]
    short: bool
    device_ms: float
    host_ms: float = 0.0  # to dispatch short ones, where nothing else explains it

    @property
    def ms(self) -> float:
        """The time of the device and the host."""
        return self.device_ms + self.host_ms

    @property
    def calls(self) -> float:
        """The calls per step."""
        return sum(group.calls for group in self.groups)


def check(
    unexplained: Unexplained,
    breakdown: Breakdown,
    operations: OperationGroups,
    lines: HostLines | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Name the operations that take long for their bytes and FLOPs, where no other finding does."""
    if not {Stage.DEVICE, Stage.HOST} & set(unexplained.parts_ms):
        return Healthy(summary="No large part of the device's time is unexplained")
    groups = [left for group in operations.groups if (left := _without(group, unexplained))]
    hot = [*_short(groups, lines, unexplained, limits), *_slow(groups, unexplained, limits)]
    least_ms = max(limits.least_ms, limits.share * breakdown.step_ms)
    hot = [one for one in hot if one.ms >= least_ms]
    if hot:
        return _finding(sorted(hot, key=lambda one: -one.ms), unexplained, breakdown, limits)
    if operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    return Healthy(
        summary=f"No operation takes {percent(limits.share)} of the step and over twice its least time",
        evidence=(_table(groups),) if groups else (),
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


def _without(group: OperationGroup, unexplained: Unexplained) -> OperationGroup | None:
    """Return a group without the operations that findings are about; None where none is left."""
    named = unexplained.subjects
    rows = tuple(row for row in group.rows if row.name not in named and row.layer not in named)
    if len(rows) == len(group.rows):
        return group
    part = sum(row.ms for row in rows) / group.ms if group.ms else 0.0
    least = None if group.least_ms is None else group.least_ms * part
    return replace(group, rows=rows, least_ms=least) if rows else None


def _slow(
    groups: Iterable[OperationGroup], unexplained: Unexplained, limits: Limits
) -> Iterator[HotWork]:
    """Yield the groups of longer operations that take over twice their least time, or an unknown one."""
    for group in groups if Stage.DEVICE in unexplained.parts_ms else ():
        unknown = group.attained is None and not group.is_matrix
        if group.each_ms > limits.short_ms and (unknown or _far(group, limits)):
            yield HotWork(group.at, (group,), short=False, device_ms=group.ms)


def _far(group: OperationGroup, limits: Limits) -> bool:
    return group.attained is not None and group.attained < limits.near


def _short(
    groups: Iterable[OperationGroup],
    lines: HostLines | None,
    unexplained: Unexplained,
    limits: Limits,
) -> Iterator[HotWork]:
    """Yield the short operations of each loop or line, with their share of the time to dispatch all operations."""
    groups = tuple(groups)
    by_line: dict[tuple[str, Location | None], list[OperationGroup]] = defaultdict(list)
    for group in groups:
        if group.each_ms <= limits.short_ms:
            by_line[group.loop, None if group.loop else group.at].append(group)
    host_ms, total = _dispatching(lines, unexplained), sum(group.calls for group in groups)
    for short in by_line.values():
        part = sum(group.calls for group in short) / total if total else 0.0
        device_ms = (
            sum(group.ms for group in short) if Stage.DEVICE in unexplained.parts_ms else 0.0
        )
        at = short[0].loop_at or short[0].at
        yield HotWork(at, tuple(short), short=True, device_ms=device_ms, host_ms=host_ms * part)


def _dispatching(lines: HostLines | None, unexplained: Unexplained) -> float:
    """Return the host's time between operations, in ms per step, as far as it is unexplained."""
    if lines is None or StepWork.LAUNCHING in unexplained.subjects:
        return 0.0
    return min(lines.dispatching_ms, unexplained.parts_ms.get(Stage.HOST, 0.0))


def _finding(
    hot: list[HotWork], unexplained: Unexplained, breakdown: Breakdown, limits: Limits
) -> Finding:
    first = hot[0]
    share = Measure(
        "share of the step in the operations of the line",
        ratio(first.ms / breakdown.step_ms),
        ratio(limits.share),
    )
    groups = sorted((group for one in hot for group in one.groups), key=lambda group: -group.ms)
    return Finding(
        summary=_summary(first, breakdown),
        evidence=(share, *_distance(first, limits), _table(groups)),
        remedies=tuple(_remedy(one) for one in hot[:SHOWN_ROWS]),
        effects=tuple(_effects(hot, unexplained)),
    )


def _summary(hot: HotWork, breakdown: Breakdown) -> str:
    where = f" at {location(hot.at)}" if hot.at else ""
    if hot.short:
        each = milliseconds(sum(group.ms for group in hot.groups) / hot.calls)
        looped = " in the loop" if hot.groups[0].loop else ""
        return (
            f"{number(round(hot.calls))} operations of {each} each{looped}{where} take "
            f"{milliseconds(hot.ms)} of {breakdown.each_step}, dispatching included"
        )
    group = hot.groups[0]
    took = f"{group.type}{where} takes {milliseconds(group.ms)} of {breakdown.each_step}"
    if group.least_ms is None:
        return f"{took}; how much it needs is unknown ({group.missing})"
    return f"{took}; its bytes and FLOPs need {milliseconds(group.least_ms)}"


def _distance(hot: HotWork, limits: Limits) -> tuple[Measure, ...]:
    group = hot.groups[0]
    if hot.short:
        host = Measure("time to dispatch the operations per step", ms(hot.host_ms))
        each = Measure("mean time of a call", ms(group.each_ms), ms(limits.short_ms))
        return (each, host) if hot.host_ms else (each,)
    if group.attained is None:
        return ()
    label = "least time relative to the measured time"
    return (Measure(label, ratio(group.attained), ratio(limits.near)),)


def _table(groups: Iterable[OperationGroup]) -> Table:
    return Table(COLUMNS, tuple(_row(group) for group in list(groups)[:SHOWN_ROWS]))


def _row(group: OperationGroup) -> tuple[Cell, ...]:
    return (
        group.type,
        group.at or "unknown",
        ", ".join(group.layers[:2]) or "-",
        count(group.calls),
        ms(group.each_ms),
        ms(group.ms),
        f"unknown ({group.missing})" if group.least_ms is None else ms(group.least_ms),
    )


def _effects(hot: Iterable[HotWork], unexplained: Unexplained) -> Iterator[Effect]:
    """Yield each operation's time above its least as a ceiling, and at most what is unexplained."""
    hot = tuple(hot)
    rows = [(row, group) for one in hot for group in one.groups for row in group.rows]
    total = sum(row.ms for row, _ in rows)
    left = unexplained.parts_ms.get(Stage.DEVICE, 0.0)
    part = min(1.0, left / total) if total else 0.0
    for row, group in rows if part else ():
        scales = 0.0 if group.attained is None else group.attained
        yield Effect(Stage.DEVICE, scales, row.name, ms(row.ms * part), bound=Bound.AT_MOST)
    for one in hot:
        if one.host_ms:
            yield Effect(Stage.HOST, 0.0, _dispatched(one), ms(one.host_ms), bound=Bound.AT_MOST)


def _dispatched(hot: HotWork) -> str:
    """Return the name of the work of dispatching the operations of a line."""
    return f"dispatching {location(hot.at)}".strip()


def _remedy(hot: HotWork) -> Remedy:
    compiled = all(row.operation and row.operation.compiled for row in hot.groups[0].rows)
    if hot.short:
        fuse = "" if compiled else ", or can XLA fuse them (jit_compile=True)"
        action = f"Can one operation on the whole batch or sequence replace these{fuse}?"
        return Remedy(action, at=hot.at)
    kind = hot.groups[0].type
    if hot.groups[0].is_matrix:
        action = f"Can {kind} run on larger matrices, on widths that are multiples of 8, or in a 16-bit type?"
        return Remedy(action, at=hot.at)
    return Remedy(
        f"Is {kind} needed in every step, on tensors of this size and type, or can the input pipeline do it?",
        at=hot.at,
    )


def sick() -> Verdict:
    """Sorting takes 20 of 40 ms, where reading and writing the tensor takes 0.4 ms."""
    return _example(least_ms=0.4)


def healthy() -> Verdict:
    """An operation takes half of the step, and its bytes need nearly all of that time."""
    return _example(least_ms=18.0)


def _example(least_ms: float) -> Verdict:
    at = Location("train.py", 14)
    row = OperationTime(name="TopKV2", type="TopKV2", ms=20.0, at=at)
    group = OperationGroup(type="TopKV2", at=at, layers=(), rows=(row,), least_ms=least_ms)
    breakdown = Breakdown.of(device=38.0, host=2.0)
    return check(Unexplained({Stage.DEVICE: 38.0}), breakdown, OperationGroups((group,)), None)
