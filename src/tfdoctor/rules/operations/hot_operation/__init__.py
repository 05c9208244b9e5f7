from tfdoctor.facts.savings.operation_groups import OperationGroups
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.families.kit import *
from tfdoctor.rules.operations.hot_operation import hot_work
from tfdoctor.rules.operations.hot_operation.hot_work import Departure, Groups, HotWork

__doc__, _ = page(__file__)

GENERAL = True  # Speaks only of time that no specific rule explains
SHOWN_ROWS = 8  # Groups in the table: those that take most of the time
PYTHON = re.compile(r"(?:Eager)?PyFunc(?:Stateless)?")  # The types of tf.py_function and tf.numpy_function


class Limits(RuleLimits):
    share: float = share_limit(SHARE)
    least_ms: float = limit(0.2)
    avoidable_share: float = share_limit(0.05)
    near: float = share_limit(0.5)
    many: float = limit(100.0)
    short_ms: float = limit(0.01)


class Stated(Record):
    """The step that times are of, and the shares of traced time, 0 to 1, that are not the profiler's.

    ``left_ms`` is what no specific finding names of the device's traced time: together, hot work takes no more.
    """

    step_ms: float
    each_step: str
    left_ms: float
    per_step: str = "per step"  # the end of a label of a time
    device: float = 1.0
    host: float = 1.0

    def ms_of(self, *hot: HotWork) -> float:
        """Return the time of hot work, in ms per step."""
        device_ms = min(self.left_ms, sum(one.device_ms for one in hot))
        return self.device * device_ms + self.host * sum(one.host_ms for one in hot)

    def ceiling_of(self, hot: HotWork) -> float:
        """Return what a change saves at most, in ms per step: no more than the operations take of it."""
        return self.ms_of(hot) * (hot.ceiling_ms / hot.ms if hot.ms else 0.0)


def check(  # noqa: PLR0913, PLR0917 - what is unexplained, and the facts that divide it
    unexplained: Unexplained, breakdown: Breakdown, operations: OperationGroups, lines: HostLines | None,
    loops: LoopWork | None, model: StepModel | None, optimizer: OptimizerWork | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Name the operations that were measured to need less, where no other finding does."""
    on_device = Stage.DEVICE in unexplained.parts_ms
    if not on_device and Stage.HOST not in unexplained.parts_ms:
        return Healthy(summary="Findings and necessary work leave no large part of the device's time")
    groups = hot_work.without(operations.groups, unexplained.subjects)
    dispatch = Dispatch.measure(operations, lines, loops).at_most(groups, unexplained)
    updates = {row.name for row in optimizer.rows} if optimizer else set[str]()

    def is_far(group: OperationGroup) -> bool:
        far = group.attained is not None and group.attained < limits.near
        return far and group.each_ms > limits.short_ms

    ways: list[Callable[[Groups], Iterable[HotWork]]] = [
        hot_work.metrics,
        lambda left: (HotWork(Departure.PYTHON, one.at, (one,)) for one in left if PYTHON.fullmatch(one.type)),
        lambda left: (HotWork(Departure.FAR, one.at, (one,)) for one in left if is_far(one)),
        lambda left: hot_work.short(left, limits.short_ms, limits.many, dispatch, updates, on_device=on_device),
    ]
    traced = breakdown.step_ms
    found = hot_work.find(
        groups, ways if on_device else ways[-1:], lambda one: _least(one, traced, limits, limits.least_ms)
    )
    stated = Stated(traced, breakdown.each_step, unexplained.parts_ms.get(Stage.DEVICE, 0.0))
    if model is not None and model.tracing is not None:  # less: the profiler takes much of short ones
        kept = model.kept(Stage.DEVICE), model.kept(Stage.HOST)
        stated = Stated(model.step_ms, "each untraced step", stated.left_ms, "per untraced step", *kept)
    hot = [one for one in found if stated.ms_of(one) >= _least(one, stated.step_ms, limits)]
    if hot:
        return _finding(hot, stated, unexplained, limits)
    if operations.why_unnamed or not groups:
        return nothing("No operation takes time that is not explained", operations.why_unnamed)
    return _healthy(groups, stated, limits)


def _least(hot: HotWork, step_ms: float, limits: Limits, least_ms: float = 0.0) -> float:
    """Return the shortest time from which such work is named."""
    return max(least_ms, step_ms * _share(hot, limits))


def _share(hot: HotWork, limits: Limits) -> float:
    return limits.avoidable_share if hot.departure is Departure.METRICS else limits.share


def _healthy(groups: Groups, stated: Stated, limits: Limits) -> Healthy:
    """Say of the longest group how far it is from the hardware's rates, and how long all take that are near."""
    longest, allowed = max(groups, key=lambda group: group.ms), "of what this hardware allows"
    share = percent(stated.device * longest.ms / stated.step_ms)
    why = ", and nothing measured shows that less is possible"
    if longest.attained is not None:
        why = f" at {percent(longest.attained)} {allowed}"
    near = [(one.ms, one.attained) for one in groups if one.attained is not None and one.attained >= limits.near]
    necessary: list[PartTime] = []
    if total_ms := sum(time for time, _ in near):
        attained = percent(sum(time * reached for time, reached in near) / total_ms)
        of = f"{milliseconds(stated.device * total_ms)} are operations at {attained} {allowed}"
        necessary.append(PartTime(Stage.DEVICE, ms(total_ms), f"{of} for their bytes and FLOPs"))
    return Healthy(
        summary=f"{longest.type}{_at(longest.at)} takes {share} of the step{why}",
        evidence=(_table(groups, stated),),
        necessary=tuple(necessary),
    )


def _at(place: Location | None) -> str:
    return f" at {location(place)}" if place else ""


def _finding(found: list[HotWork], stated: Stated, unexplained: Unexplained, limits: Limits) -> Finding:
    """Return the change of the one that takes most, with one time of it; the others are evidence."""
    hot = sorted(found, key=lambda one: -one.ms)
    first, group, takes = hot[0], hot[0].groups[0], stated.ms_of(hot[0])
    label = "share of the step in the operations of the line"
    measures = [Measure.share(label, takes / stated.step_ms, _share(first, limits))]
    if first.departure is Departure.SHORT:
        each_ms, dispatch_ms = ms(stated.device * group.each_ms), ms(stated.host * first.host_ms)
        measures.append(Measure("mean time of a call", each_ms, ms(limits.short_ms)))
        if first.host_ms:
            measures.append(Measure(f"time to dispatch the operations {stated.per_step}", dispatch_ms))
    elif first.departure is Departure.FAR and group.attained is not None:
        label = "least time relative to the measured time"
        measures.append(Measure.share(label, group.attained, limits.near))
    label = f"time that the change saves at most, {stated.per_step}"
    measures.append(Measure(label, ms(stated.ceiling_of(first))))
    if len(hot) > 1:
        label = f"time in this and {counted(len(hot) - 1, 'more group')} of operations, {stated.per_step}"
        measures.append(Measure(label, ms(stated.ms_of(*hot))))
    groups = sorted((group for one in hot for group in one.groups), key=lambda group: -group.ms)
    remedies: dict[Location | str, Remedy] = {}  # one for each line, about what takes most of it
    said = [_said(one, stated) for one in hot[:SHOWN_ROWS]]
    for _, remedy in said:
        remedies.setdefault(remedy.at or remedy.action, remedy)
    # The time of each operation, evidence too, is a ceiling: together they spare at most what is unexplained.
    rows = [row for one in found if one.device_ms for row in one.rows]
    total = sum(row.ms for row in rows)
    part = min(1.0, unexplained.parts_ms.get(Stage.DEVICE, 0.0) / total) if total else 0.0
    times = [(Stage.DEVICE, row.name, row.ms * part) for row in rows if part]
    named = [(one, f"dispatching {one.groups[0].loop or location(one.at)}".strip()) for one in found if one.host_ms]
    times += [(Stage.HOST, work, one.host_ms) for one, work in named]  # a line may make two loops
    return Finding(
        summary=said[0][0],
        evidence=(*measures, _table(groups, stated)),
        remedies=tuple(remedies.values()),
        effects=tuple(Effect(stage, 0.0, work, ms(time), bound=Bound.AT_MOST) for stage, work, time in times),
        severity=max(Severity.of(stated.ceiling_of(one) / stated.step_ms) for one in found),
        takes=ms(takes),
    )


def _said(hot: HotWork, stated: Stated) -> tuple[str, Remedy]:
    """Return where it is, how long it takes of a step and what shows that less is possible, and what to change."""
    where, group, kind = _at(hot.at), hot.groups[0], hot.groups[0].type
    time = f"{milliseconds(stated.ms_of(hot))} of {stated.each_step}"
    compiled = all(row.operation and row.operation.compiled for row in group.rows)
    fused = "" if compiled else ", or let XLA fuse {} (jit_compile=True)"
    metrics = ", ".join(dict.fromkeys(name for one in hot.groups for name in one.metrics))
    title = f"{metrics} (metrics)" if metrics else "Metrics"
    each = milliseconds(stated.device * sum(one.ms for one in hot.groups) / hot.calls if hot.calls else 0.0)
    many = f"{number(round(hot.calls))} operations of {each} each{' in the loop' if group.loop else ''}"
    least = milliseconds(stated.device * (group.least_ms or 0.0))
    said, action = {
        Departure.METRICS: (
            f"{title}{where} take {time}, and no gradient uses the results",
            "Compute these metrics on validation data once an epoch, not in every training step",
        ),
        Departure.PYTHON: (
            f"{kind}{where} takes {time} with Python inside the step",
            f"{kind} runs Python in each step: compute this by TensorFlow operations",
        ),
        Departure.FAR: (
            f"{kind}{where} takes {time}; its bytes and FLOPs need {least}",
            f"Give {kind} a smaller tensor or type{fused.format('it with what is beside it')}",
        ),
        Departure.SHORT: (
            f"{many}{where} take {time}, dispatching included",
            f"Replace these by one operation on the whole batch or sequence{fused.format('them')}",
        ),
    }[hot.departure]
    return said, Remedy(action, at=hot.at)


def _table(groups: Iterable[OperationGroup], stated: Stated) -> Table:
    return Table.of(
        groups,
        ("operation", lambda group: group.type),
        ("your line", lambda group: group.at),
        ("layer", lambda group: ", ".join(group.layers[:2]) or "-"),
        ("calls", lambda group: count(group.calls)),
        ("time per call", lambda group: ms(stated.device * group.each_ms)),
        (f"time {stated.per_step}", lambda group: ms(stated.device * group.ms)),
        ("least time", lambda group: None if group.least_ms is None else ms(group.least_ms)),
        ("result", lambda group: group.makes or "unknown"),
        most=SHOWN_ROWS,
    )
