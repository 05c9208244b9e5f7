from typing import Any

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.loop_work import LoopWork
from tfdoctor.facts.operations.optimizer_work import OptimizerWork
from tfdoctor.facts.savings.dispatch import Dispatch
from tfdoctor.facts.savings.layer_calls import LayerCalls
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.savings.unexplained import SHARE, Unexplained
from tfdoctor.facts.step_time.host_lines import HostLines
from tfdoctor.rules.hot_operation.called_layers import call_tables
from tfdoctor.rules.hot_operation.changes import remedies
from tfdoctor.rules.hot_operation.cheaper_forms import CheaperForms
from tfdoctor.rules.hot_operation.hot_work import Departure, HotWork, Least, Stated, without
from tfdoctor.rules.hot_operation.search import Marks, Search
from tfdoctor.rules.hot_operation.sentences import SHOWN_ROWS, necessary, summary, table

__doc__, CODE = page(__file__)

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
    many: float = limit(
        100.0,
        "Fewest short operations of a line, per step, that count as many: one Keras layer with its gradient makes "
        "ten to thirty",
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
    forms: CheaperForms | None,
    optimizer: OptimizerWork | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Name the operations that were measured to need less, where no other finding does."""
    if not {Stage.DEVICE, Stage.HOST} & set(unexplained.parts_ms):
        return Healthy(summary="Findings and necessary work leave no large part of the device's time")
    named = unexplained.subjects
    groups = [left for group in operations.groups if (left := without(group, named))]
    shares = (limits.share, limits.avoidable_share)
    search = Search(
        Marks(limits.near, limits.short_ms, limits.many),
        Least.of_step(breakdown.step_ms, *shares, limits.least_ms),
        Dispatch.of(operations.groups, lines, loops).at_most(groups, unexplained),
        Stage.DEVICE in unexplained.parts_ms,
        forms or CheaperForms(),
        calls or LayerCalls(),
        frozenset(row.name for row in optimizer.rows) if optimizer else frozenset(),
    )
    stated = Stated.of(model, breakdown, unexplained)  # less: the profiler takes much of short ones
    least = Least.of_step(stated.step_ms, *shares)
    hot = [one for one in search.find(groups) if stated.ms_of(one) >= least.of(one)]
    if hot:
        return _finding(hot, stated, unexplained, limits)
    if operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    return Healthy(
        summary=necessary(groups, stated),
        evidence=(table(groups, stated),) if groups else (),
        necessary=tuple(_necessary(groups, stated, limits)),
    )


def _necessary(groups: Iterable[OperationGroup], stated: Stated, limits: Limits) -> Iterator[PartTime]:
    """Yield the time of the operations that run near the rates of the hardware."""
    near = [group for group in groups if group.attained is not None and group.attained >= limits.near]
    total_ms = sum(group.ms for group in near)
    if total_ms:
        attained = sum((group.attained or 0.0) * group.ms for group in near) / total_ms
        of = f"{percent(attained)} of what this hardware allows for their bytes and FLOPs"
        why = f"{milliseconds(stated.device * total_ms)} are operations at {of}"
        yield PartTime(Stage.DEVICE, ms(total_ms), why)


def _finding(found: list[HotWork], stated: Stated, unexplained: Unexplained, limits: Limits) -> Finding:
    """Return the change of the one that takes most, with one time of it; the others are evidence."""
    hot = sorted(found, key=lambda one: -one.ms)
    takes = stated.ms_of(hot[0])
    label = "share of the step in the operations of the line"
    least = limits.avoidable_share if hot[0].avoidable else limits.share
    groups = sorted((group for one in hot for group in one.groups), key=lambda group: -group.ms)
    return Finding(
        summary=summary(hot[0], stated),
        evidence=(
            Measure.share(label, takes / stated.step_ms, least),
            *_measures(hot, stated, limits),
            table(groups, stated),
            *call_tables(hot),
        ),
        remedies=tuple(remedies(hot[:SHOWN_ROWS])),
        effects=tuple(_effects(found, unexplained)),
        severity=max(Severity.of(_ceiling(one, stated) / stated.step_ms) for one in found),
        takes=ms(takes),
    )


def _ceiling(hot: HotWork, stated: Stated) -> float:
    """Return what a change saves at most, in ms of the stated step: no more than the operations take of it."""
    return stated.ms_of(hot) * (hot.ceiling_ms / hot.ms if hot.ms else 0.0)


def _measures(hot: list[HotWork], stated: Stated, limits: Limits) -> Iterator[Measure]:
    """Yield how far the first is from what it needs, and how long all groups take where there are several."""
    first, group = hot[0], hot[0].groups[0]
    if first.departure is Departure.SHORT:
        each = stated.device * group.each_ms
        yield Measure("mean time of a call", ms(each), ms(limits.short_ms))
        if first.host_ms:
            label = f"time to dispatch the operations {stated.per_step}"
            yield Measure(label, ms(stated.host * first.host_ms))
    elif first.departure is Departure.FAR and group.attained is not None:
        yield Measure.share("least time relative to the measured time", group.attained, limits.near)
    yield Measure(f"time that the change saves at most, {stated.per_step}", ms(_ceiling(first, stated)))
    if len(hot) > 1:
        label = f"time in this and {counted(len(hot) - 1, 'more group')} of operations, "
        yield Measure(f"{label}{stated.per_step}", ms(stated.ms_of(*hot)))


def _effects(hot: list[HotWork], unexplained: Unexplained) -> Iterator[Effect]:
    """Yield the time of each operation as a ceiling, and at most what is unexplained.

    It has the groups that are evidence besides the one of the summary.
    """
    rows = [row for one in hot if one.device_ms for group in one.groups for row in group.rows]
    total = sum(row.ms for row in rows)
    left = unexplained.parts_ms.get(Stage.DEVICE, 0.0)
    part = min(1.0, left / total) if total else 0.0
    for row in rows if part else ():
        yield Effect(Stage.DEVICE, 0.0, row.name, ms(row.ms * part), bound=Bound.AT_MOST)
    for one in hot:
        if one.host_ms:  # of a loop or of a line: a line may make two loops
            work = f"dispatching {one.groups[0].loop or location(one.at)}".strip()
            yield Effect(Stage.HOST, 0.0, work, ms(one.host_ms), bound=Bound.AT_MOST)


def group(
    kind: str = "Tile",
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
