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

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.facts.operations.dependence import Source
from tfdoctor.facts.operations.loop_work import LoopWork
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.savings.layer_calls import CalledLayer, LayerCalls
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups
from tfdoctor.facts.savings.unexplained import SHARE, Unexplained
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.host_lines import HostLines
from tfdoctor.humanize import counted, location, milliseconds, number, percent
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
    Severity,
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

SHOWN_LINES = 3
"""Lines of each layer in the table of calls: those that call it most often."""

SHOWN_LAYERS = 3
"""Layers in the table of calls: those whose operations take most of the time."""

COLUMNS = (
    "operation",
    "your line",
    "layer",
    "calls",
    "time per call",
    "time per step",
    "least time",
    "result",
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
    avoidable_share: float = limit(
        0.05,
        "Smallest share of the step in operations that the training does not need in every step: a change that "
        "saves this much is a warning",
        most=1.0,
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


NAMED = 0.5
"""Share of the unexplained time from which the small operations beside it need not be named."""


@dataclass(frozen=True, slots=True)
class HotWork:
    """What one line makes the device do: one group of operations, or several together; ms per step."""

    at: Location | None
    groups: tuple[OperationGroup, ...]
    short: bool = False
    title: str = ""  # of several types together: "Operations of 12 types"; "" is one type
    device_ms: float = 0.0
    host_ms: float = 0.0  # to dispatch short ones, where nothing else explains it
    layers: tuple[CalledLayer, ...] = ()  # that made them, where a step calls these several times

    @property
    def ms(self) -> float:
        """The time of the device and the host."""
        return self.device_ms + self.host_ms

    @property
    def calls(self) -> float:
        """The calls per step."""
        return sum(group.calls for group in self.groups)

    @property
    def only_metrics(self) -> bool:
        """Whether no gradient uses any result."""
        return all(group.only_metrics for group in self.groups)

    @property
    def constant(self) -> bool:
        """Whether every result is the same in every step."""
        return all(group.inputs == frozenset() for group in self.groups)

    @property
    def is_question(self) -> bool:
        """Whether only its time is known, and nothing says that less is possible."""
        if self.only_metrics or self.constant:
            return False
        first = self.groups[0]
        if self.short and not self.is_direct:
            return True
        unknown = first.attained is None and first.inputs != frozenset((Source.VARIABLES,))
        return bool(self.title) or (unknown and not self.short)

    @property
    def is_direct(self) -> bool:
        """Whether the user's lines call at least half of the operations, by their time, and no layer does."""
        rows = [row for group in self.groups for row in group.rows]
        chosen = sum(row.ms for row in rows if row.operation is None or row.operation.direct)
        return 2.0 * chosen >= sum(row.ms for row in rows)

    def ms_of(self, layer: CalledLayer) -> float:
        """The device's time of a layer's operations."""
        rows = (row for group in self.groups for row in group.rows)
        return sum(row.ms for row in rows if row.layer == layer.name)

    @property
    def repeated_ms(self) -> float:
        """The time of the layers' calls that compute again what an earlier one did, forward."""
        return sum(layer.repeated_ms for layer in self.layers)

    @property
    def ceiling_ms(self) -> float:
        """The time above the least."""
        return self.host_ms + sum(group.ms * (1.0 - _scales(group)) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Least:
    """The shortest times, in ms per step, from which work is named."""

    ms: float
    avoidable_ms: float

    def reached(self, hot: HotWork) -> bool:
        """Say whether work takes long enough."""
        return hot.ms >= (self.avoidable_ms if hot.only_metrics or hot.constant else self.ms)


def check(  # noqa: PLR0913, PLR0917 - what is unexplained, and the facts that divide it
    unexplained: Unexplained,
    breakdown: Breakdown,
    operations: OperationGroups,
    lines: HostLines | None,
    calls: LayerCalls | None,
    loops: LoopWork | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Name the operations that take long for their bytes and FLOPs, where no other finding does."""
    if not {Stage.DEVICE, Stage.HOST} & set(unexplained.parts_ms):
        return Healthy(summary="No large part of the device's time is unexplained")
    groups = [left for group in operations.groups if (left := _without(group, unexplained))]
    least_ms = max(limits.least_ms, limits.share * breakdown.step_ms)
    least = Least(least_ms, max(limits.least_ms, limits.avoidable_share * breakdown.step_ms))
    dispatch = Dispatch.of(operations.groups, lines, loops).at_most(groups, unexplained)
    hot = [_called(one, calls) for one in _hot(groups, dispatch, unexplained, least, limits)]
    if hot:
        return _finding(sorted(hot, key=_order), unexplained, breakdown, limits)
    if operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    return Healthy(
        summary=f"No operation takes {percent(limits.share)} of the step and over twice its least time",
        evidence=(_table(groups),) if groups else (),
        necessary=tuple(_necessary(groups, limits)),
    )


def _called(hot: HotWork, calls: LayerCalls | None) -> HotWork:
    """Add the calls of the layers that made the work, those of most time first."""
    times: dict[str, float] = defaultdict(float)
    for group in hot.groups:
        for row in group.rows:
            times[row.layer] += row.ms
    names = sorted(times, key=lambda name: -times[name])
    found = (calls.of(name) for name in names if name) if calls else ()
    return replace(
        hot, layers=tuple(_that_ran(layer) for layer in found if layer and _runs(layer) > 1)
    )


def _runs(layer: CalledLayer) -> int:
    """Return how many calls of a layer ran operations: the body of a loop is a scope of its own, and no call."""
    return sum(bool(call.operations) for call in layer.calls)


def _that_ran(layer: CalledLayer) -> CalledLayer:
    return replace(layer, calls=tuple(call for call in layer.calls if call.operations))


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


def _order(hot: HotWork) -> tuple[bool, float]:
    """Order what less is possible of before questions, each by time."""
    return hot.is_question and not hot.repeated_ms, -hot.ms


def _hot(
    groups: list[OperationGroup],
    dispatch: "Dispatch",
    unexplained: Unexplained,
    least: Least,
    limits: Limits,
) -> list[HotWork]:
    """Return what takes long enough, divided as finely as reaches that: each operation belongs to one."""
    on_device = Stage.DEVICE in unexplained.parts_ms
    ways: list[Callable[[list[OperationGroup]], Iterable[HotWork]]] = [
        lambda left: _metrics(left) if on_device else (),
        lambda left: _constant(left) if on_device else (),
        lambda left: _slow(left, unexplained, limits),
        lambda left: _short(left, dispatch, unexplained, limits),
        lambda left: _products(left, limits) if on_device else (),
        lambda left: _by_line(left, limits) if on_device else (),
    ]
    found: list[HotWork] = []
    left = groups
    for way in ways:
        new = [one for one in way(left) if least.reached(one)]
        taken = {id(group) for one in new for group in one.groups}
        left = [group for group in left if id(group) not in taken]
        found += new
    much = sum(one.ms for one in found) >= NAMED * unexplained.parts_ms.get(Stage.DEVICE, 0.0)
    rest = [] if much or not on_device else _rest(left, limits)
    return found + [one for one in rest if least.reached(one)]


def _metrics(groups: Iterable[OperationGroup]) -> Iterator[HotWork]:
    """Yield the operations that only metrics use, together."""
    used = tuple(group for group in groups if group.only_metrics)
    names = list(dict.fromkeys(name for group in used for name in group.metrics))
    if not used:
        return
    at = max(used, key=lambda group: group.ms).at
    title = f"{', '.join(names)} (metrics)" if names else "metrics"
    yield HotWork(at, used, title=title, device_ms=sum(group.ms for group in used))


def _constant(groups: Iterable[OperationGroup]) -> Iterator[HotWork]:
    """Yield the groups that depend on constants only."""
    for group in groups:
        if group.inputs == frozenset():
            yield HotWork(group.at, (group,), device_ms=group.ms)


def _by_line(groups: Iterable[OperationGroup], limits: Limits) -> Iterator[HotWork]:
    """Yield the operations of each line that have two types or more, else of each layer."""
    places: dict[Location | str, list[OperationGroup]] = defaultdict(list)
    for group in groups:
        place = group.at or ", ".join(group.layers[:1])
        if place and _doubtful(group, limits):
            places[place].append(group)
    for place, found in places.items():
        if len(found) > 1:
            of = f" of layer {place}" if isinstance(place, str) else ""
            yield _together(found, f"operations of {len(found)} types{of}")


def _rest(groups: Iterable[OperationGroup], limits: Limits) -> list[HotWork]:
    """Return all remaining operations together."""
    found = [group for group in groups if _doubtful(group, limits)]
    lines = dict.fromkeys(group.at for group in found if group.at)
    return (
        [_together(found, f"small operations of {counted(len(lines), 'line')}, most")]
        if lines
        else []
    )


def _together(groups: list[OperationGroup], title: str) -> HotWork:
    groups = sorted(groups, key=lambda group: -group.ms)
    total = sum(group.ms for group in groups)
    return HotWork(groups[0].at, tuple(groups), title=title, device_ms=total)


def _doubtful(group: OperationGroup, limits: Limits) -> bool:
    """Say whether a group may take longer than it must: products of unknown peak are not."""
    return _far(group, limits) or (group.attained is None and not group.is_matrix)


def _products(groups: Iterable[OperationGroup], limits: Limits) -> Iterator[HotWork]:
    """Yield the matmuls and convolutions of each line whose least time is unknown."""
    by_line: dict[tuple[str, Location | None], list[OperationGroup]] = defaultdict(list)
    for group in groups:
        if group.is_matrix and group.attained is None and group.each_ms > limits.short_ms:
            by_line[group.type, group.at].append(group)
    for (_, at), found in by_line.items():
        yield HotWork(at, tuple(found), device_ms=sum(group.ms for group in found))


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
            yield HotWork(group.at, (group,), device_ms=group.ms)


def _far(group: OperationGroup, limits: Limits) -> bool:
    return group.attained is not None and group.attained < limits.near


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The host's time per call of an operation between the operations of functions, in ms.

    An iteration of a loop waits for the one before it, so that the executor's time in loops is that of their
    operations only: an optimizer's operations have no part in it.
    """

    in_loops_ms: float = 0.0
    outside_ms: float = 0.0

    @classmethod
    def of(
        cls, groups: Iterable[OperationGroup], lines: HostLines | None, loops: LoopWork | None
    ) -> Self:
        """Divide it by the executor's time in loops, then by the calls of all operations."""
        total_ms = lines.dispatching_ms if lines else 0.0
        calls = dict.fromkeys((True, False), 0.0)
        for group in groups:
            calls[bool(group.loop)] += group.calls
        number_of = sum(calls.values())
        if not number_of or not total_ms:
            return cls()
        if loops is None or not calls[True]:
            return cls(total_ms / number_of, total_ms / number_of)
        looped_ms = min(total_ms, loops.scheduling_ms)
        outside_ms = (total_ms - looped_ms) / calls[False] if calls[False] else 0.0
        return cls(looped_ms / calls[True], outside_ms)

    def at_most(self, groups: Iterable[OperationGroup], unexplained: Unexplained) -> Self:
        """Limit what these groups get to what is unexplained."""
        if StepWork.LAUNCHING in unexplained.subjects:
            return replace(self, in_loops_ms=0.0, outside_ms=0.0)
        given = sum(map(self.of_group, groups))
        left = unexplained.parts_ms.get(Stage.HOST, 0.0)
        part = min(1.0, left / given) if given else 0.0
        return replace(self, in_loops_ms=part * self.in_loops_ms, outside_ms=part * self.outside_ms)

    def of_group(self, group: OperationGroup) -> float:
        """Return the ms per step to dispatch the operations of a group."""
        return group.calls * (self.in_loops_ms if group.loop else self.outside_ms)


def _short(
    groups: Iterable[OperationGroup], dispatch: Dispatch, unexplained: Unexplained, limits: Limits
) -> Iterator[HotWork]:
    """Yield the short operations of each loop or line, with the time to dispatch them."""
    by_line: dict[tuple[str, Location | None], list[OperationGroup]] = defaultdict(list)
    for group in groups:
        if group.each_ms <= limits.short_ms:
            by_line[group.loop, None if group.loop else group.at].append(group)
    on_device = Stage.DEVICE in unexplained.parts_ms
    for short in by_line.values():
        device_ms = sum(group.ms for group in short) if on_device else 0.0
        host_ms = sum(map(dispatch.of_group, short))
        at = short[0].loop_at or short[0].at
        yield HotWork(at, tuple(short), short=True, device_ms=device_ms, host_ms=host_ms)


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
        summary=_summary(first, breakdown) + _again(first) + _others(hot),
        evidence=(share, *_distance(first, limits), *_repeats(hot), _table(groups), *_calls(hot)),
        remedies=tuple(_remedies(hot[:SHOWN_ROWS])),
        effects=tuple(_effects(hot, unexplained)),
        severity=max(_severity(one, breakdown) for one in hot),
    )


def _others(hot: list[HotWork]) -> str:
    """Say how long all of the work takes that the finding names."""
    if len(hot) == 1:
        return ""
    total = milliseconds(sum(one.ms for one in hot))
    return f"; with {counted(len(hot) - 1, 'more group')} of operations, {total}"


def _remedies(hot: Iterable[HotWork]) -> Iterator[Remedy]:
    """Yield one question for each line, about what takes most of it."""
    asked: set[Location | str] = set()
    for remedy in map(_remedy, hot):
        key = remedy.at or remedy.action
        if key not in asked:
            asked.add(key)
            yield remedy


def _layers(hot: Iterable[HotWork]) -> list[CalledLayer]:
    """Return the layers that are called several times, each once."""
    return list({layer.name: layer for one in hot for layer in one.layers}.values())


def _again(hot: HotWork) -> str:
    """Say how long the calls take that compute the same again."""
    if not hot.repeated_ms:
        return ""
    return f"; repeated calls of a layer on the same input take {milliseconds(hot.repeated_ms)}"


def _repeats(hot: Iterable[HotWork]) -> Iterator[Measure]:
    """Yield the time of the calls that compute the same again."""
    time_ms = sum(layer.repeated_ms for layer in _layers(hot))
    if time_ms:
        yield Measure(
            "time in layers called again on the same input, forward, per step", ms(time_ms)
        )


def _calls(hot: Iterable[HotWork]) -> Iterator[Table]:
    """Yield the table of the lines that call layers several times in a step."""
    layers = sorted(_layers(hot), key=lambda layer: (-layer.repeated_ms, -len(layer.calls)))
    rows = [row for layer in layers[:SHOWN_LAYERS] for row in _call_rows(layer)]
    if rows:
        yield Table(
            ("layer", "called at", "function called at", "calls per step", "same input"),
            tuple(rows),
        )


def _call_rows(layer: CalledLayer) -> Iterator[tuple[Cell, ...]]:
    """Yield the lines that call a layer most often, those of repeated calls first."""
    number_of = Counter((call.at, call.by) for call in layer.calls)
    again = Counter((call.at, call.by) for calls in layer.equal for call in calls)
    lines = sorted(number_of, key=lambda line: (-again[line], -number_of[line]))
    shown = SHOWN_LINES if not layer.equal else max(SHOWN_LINES, len(again))
    for at, by in lines[:shown]:
        known = count(again[at, by]) if layer.equal else "-"
        yield layer.name, at or "unknown", by or "-", count(number_of[at, by]), known


def _severity(hot: HotWork, breakdown: Breakdown) -> Severity:
    """Return how severe it is: one level less than its ceiling, unless all of it is avoidable.

    A kernel far from the hardware's rate shows that less time is possible, not how. Computing the same again is as
    severe as its time.
    """
    repeated = Severity.of(hot.repeated_ms / breakdown.step_ms)
    if hot.is_question:
        return repeated
    severity = Severity.of(hot.ceiling_ms / breakdown.step_ms)
    if hot.only_metrics or hot.constant:
        return severity
    return Severity(max(Severity.NOTE, severity - 1, repeated))


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
    if hot.title:
        return f"{_sentence(hot.title)}{where} take {milliseconds(hot.ms)} of {breakdown.each_step}{_use(hot)}"
    took = f"{group.type}{where} takes {milliseconds(group.ms)} of {breakdown.each_step}{_use(hot)}"
    if group.attained is None and group.is_matrix:
        return f"{took}; how much it needs is unknown{_rate(group)}"
    if hot.only_metrics or hot.constant:
        return took
    if group.least_ms is None:
        return f"{took}; how much it needs is unknown ({group.missing})"
    return f"{took}; its bytes and FLOPs need {milliseconds(group.least_ms)}"


def _sentence(text: str) -> str:
    return (
        text[0].upper() + text[1:] if text.startswith(("operations", "small", "metrics")) else text
    )


def _use(hot: HotWork) -> str:
    if hot.only_metrics:
        return ", and no gradient uses the results"
    return ", and depends on no input and no variable" if hot.constant else ""


def _rate(group: OperationGroup) -> str:
    """Return the rate of a product and the best of this run, in words."""
    if group.gflop_s is None:
        return f" ({group.missing})"
    rate = f"{number(round(group.gflop_s))} GFLOP/s"
    best = group.best_gflop_s if group.best_gflop_s != group.gflop_s else None
    more = f", where this run's fastest reaches {number(round(best))}" if best else ""
    return f" ({group.missing}); it runs at {rate}{more}"


def _distance(hot: HotWork, limits: Limits) -> tuple[Measure, ...]:
    group = hot.groups[0]
    if hot.short:
        host = Measure("time to dispatch the operations per step", ms(hot.host_ms))
        each = Measure("mean time of a call", ms(group.each_ms), ms(limits.short_ms))
        return (each, host) if hot.host_ms else (each,)
    if hot.title or group.attained is None:
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
        _least(group),
        group.makes or "unknown",
    )


def _least(group: OperationGroup) -> Cell:
    if group.least_ms is not None:
        return ms(group.least_ms)
    return f"unknown{_rate(group)}" if group.is_matrix else f"unknown ({group.missing})"


def _scales(group: OperationGroup) -> float:
    """Return the share of its time that a group keeps at least, as far as is known."""
    if group.only_metrics or group.inputs == frozenset():
        return 0.0
    if group.attained is None and group.gflop_s and group.best_gflop_s:
        return min(1.0, group.gflop_s / group.best_gflop_s)
    return group.attained or 0.0


def _effects(hot: Iterable[HotWork], unexplained: Unexplained) -> Iterator[Effect]:
    """Yield the time of each operation that may take less, as a ceiling, and at most what is unexplained.

    It is the time that the summary states; what of it is necessary is the summary's least time.
    """
    hot = tuple(hot)
    rows = [(row, group) for one in hot for group in one.groups for row in group.rows]
    total = sum(row.ms for row, _ in rows)
    left = unexplained.parts_ms.get(Stage.DEVICE, 0.0)
    part = min(1.0, left / total) if total else 0.0
    again = {name for layer in _layers(hot) for call in layer.repeated for name in call.operations}
    for row, group in rows if part else ():
        repeats = row.operation is not None and row.operation.name in again
        least = 0.0 if repeats or _scales(group) < 1.0 else 1.0
        yield Effect(Stage.DEVICE, least, row.name, ms(row.ms * part), bound=Bound.AT_MOST)
    for one in hot:
        if one.host_ms:
            yield Effect(Stage.HOST, 0.0, _dispatched(one), ms(one.host_ms), bound=Bound.AT_MOST)


def _dispatched(hot: HotWork) -> str:
    """Return the name of the work of dispatching the operations of a loop or a line: a line may make two loops."""
    return f"dispatching {hot.groups[0].loop or location(hot.at)}".strip()


def _remedy(hot: HotWork) -> Remedy:
    if hot.layers and not (hot.only_metrics or hot.constant):
        if hot.repeated_ms:
            return _reuse(hot.layers)
        if 2.0 * hot.ms_of(hot.layers[0]) >= hot.ms - hot.host_ms:
            return _call_less(hot.layers[0])
    compiled = all(row.operation and row.operation.compiled for row in hot.groups[0].rows)
    if hot.short:
        fuse = "" if compiled else ", or can XLA fuse them (jit_compile=True)"
        action = f"Can one operation on the whole batch or sequence replace these{fuse}?"
        return Remedy(action, at=hot.at)
    return Remedy(_question(hot), at=hot.at)


def _call_less(layer: CalledLayer) -> Remedy:
    """Return what to ask of a layer that one step calls several times, at the line that does it most."""
    number_of = counted(len(layer.calls), "time")
    question = "is the same computed again, or can one call on a larger tensor replace these?"
    by = ", ".join(location(line) for line in list(layer.callers)[:SHOWN_LINES])
    through = f" (by a function that is called at {by})" if by else ""
    action = f"Layer {layer.name} is called {number_of} in each step{through}: {question}"
    return Remedy(action, at=next(iter(layer.places), None))


def _reuse(layers: Iterable[CalledLayer]) -> Remedy:
    """Return where layers compute the same again: those of most time, and all lines that call them."""
    repeated = [layer for layer in layers if layer.repeated_ms]
    longest = max(repeated, key=lambda layer: layer.repeated_ms)
    same = max(longest.equal, key=lambda calls: sum(call.ms for call in calls))
    lines = ", ".join(dict.fromkeys(location(call.place) for call in same if call.place))
    others = f" (and {counted(len(repeated) - 1, 'more layer')})" if len(repeated) > 1 else ""
    number_of = counted(len(same), "time")
    action = (
        f"Layer {longest.name}{others} computes the same {number_of} in each step ({lines}): "
        "call it once and reuse the result"
    )
    return Remedy(action, at=same[-1].place)


def _question(hot: HotWork) -> str:
    """Return what to ask, by what the operations are computed from."""
    group = hot.groups[0]
    kind = "this" if hot.title else group.type
    if PYTHON.fullmatch(group.type) and not hot.title:
        return f"{group.type} runs Python in each step: can TensorFlow operations compute this?"
    if hot.only_metrics:
        return "Are these metrics needed in every training step? Compute them on validation data once an epoch"
    if hot.constant:
        return f"Compute {kind} once, before the training loop"
    if hot.title:
        return "Are these needed in every step, on tensors of this size and type, or can XLA fuse them?"
    if group.is_matrix:
        return f"Is a {kind} of this size needed ({group.makes or 'shapes unknown'})?"
    asked = ASKED.get(group.inputs) if group.inputs and not group.loop else None
    return f"{kind} {asked}" if asked else f"Is {kind} {SIZE}"


PYTHON = re.compile(r"(?:Eager)?PyFunc(?:Stateless)?")
"""The types of tf.py_function and tf.numpy_function."""

SIZE = "needed in every step, on tensors of this size and type?"
"""The question about operations that depend on both, or on what is unknown."""

ASKED = {
    frozenset(
        (Source.VARIABLES,)
    ): "depends on variables only: is it needed in every step, or is every few steps enough?",
    frozenset(
        (Source.BATCH,)
    ): "reads no variable: can the input pipeline do it, or is a smaller tensor or type possible?",
}
"""The questions about other operations, by what they are computed from."""


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
    return check(
        Unexplained({Stage.DEVICE: 38.0}), breakdown, OperationGroups((group,)), None, None, None
    )
