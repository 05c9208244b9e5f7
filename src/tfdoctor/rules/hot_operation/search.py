"""Divides the operations that may take less time by what they have in common, as finely as is worth a name."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tfdoctor.facts.savings.dispatch import Dispatch
from tfdoctor.facts.savings.operation_groups import OperationGroup
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.rules.hot_operation.hot_work import HotWork, Least
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.verdict import Location, Stage

NAMED = 0.5
"""Share of the unexplained time from which the small operations beside it need not be named."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What counts as near the hardware's rate, and as a short call."""

    near: float  # least over measured time
    short_ms: float  # mean time of a call


def find(
    groups: list[OperationGroup],
    dispatch: Dispatch,
    unexplained: Unexplained,
    least: Least,
    marks: Marks,
) -> list[HotWork]:
    """Return what takes long enough, divided as finely as reaches that: each operation belongs to one."""
    on_device = Stage.DEVICE in unexplained.parts_ms
    ways: list[Callable[[list[OperationGroup]], Iterable[HotWork]]] = [
        lambda left: _metrics(left) if on_device else (),
        lambda left: _constant(left) if on_device else (),
        lambda left: _slow(left, unexplained, marks),
        lambda left: _short(left, dispatch, unexplained, marks),
        lambda left: _products(left, marks) if on_device else (),
        lambda left: _by_line(left, marks) if on_device else (),
    ]
    found: list[HotWork] = []
    left = groups
    for way in ways:
        new = [one for one in way(left) if least.reached(one)]
        taken = {id(group) for one in new for group in one.groups}
        left = [group for group in left if id(group) not in taken]
        found += new
    much = sum(one.ms for one in found) >= NAMED * unexplained.parts_ms.get(Stage.DEVICE, 0.0)
    rest = [] if much or not on_device else _rest(left, marks)
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


def _by_line(groups: Iterable[OperationGroup], marks: Marks) -> Iterator[HotWork]:
    """Yield the operations of each line that have two types or more, else of each layer."""
    places: dict[Location | str, list[OperationGroup]] = defaultdict(list)
    for group in groups:
        place = group.at or ", ".join(group.layers[:1])
        if place and _doubtful(group, marks):
            places[place].append(group)
    for place, found in places.items():
        if len(found) > 1:
            of = f" of layer {place}" if isinstance(place, str) else ""
            yield _together(found, f"operations of {len(found)} types{of}")


def _rest(groups: Iterable[OperationGroup], marks: Marks) -> list[HotWork]:
    """Return all remaining operations together."""
    found = [group for group in groups if _doubtful(group, marks)]
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


def _doubtful(group: OperationGroup, marks: Marks) -> bool:
    """Say whether a group may take longer than it must: products of unknown peak are not."""
    return _is_far(group, marks) or (group.attained is None and not group.is_matrix)


def _products(groups: Iterable[OperationGroup], marks: Marks) -> Iterator[HotWork]:
    """Yield the matmuls and convolutions of each line whose least time is unknown."""
    by_line: dict[tuple[str, Location | None], list[OperationGroup]] = defaultdict(list)
    for group in groups:
        if group.is_matrix and group.attained is None and group.each_ms > marks.short_ms:
            by_line[group.type, group.at].append(group)
    for (_, at), found in by_line.items():
        yield HotWork(at, tuple(found), device_ms=sum(group.ms for group in found))


def _slow(
    groups: Iterable[OperationGroup], unexplained: Unexplained, marks: Marks
) -> Iterator[HotWork]:
    """Yield the groups of longer operations that take over twice their least time, or an unknown one."""
    for group in groups if Stage.DEVICE in unexplained.parts_ms else ():
        unknown = group.attained is None and not group.is_matrix
        if group.each_ms > marks.short_ms and (unknown or _is_far(group, marks)):
            yield HotWork(group.at, (group,), device_ms=group.ms)


def _is_far(group: OperationGroup, marks: Marks) -> bool:
    """Say whether a group is known to take much longer than its bytes and FLOPs need."""
    return group.attained is not None and group.attained < marks.near


def _short(
    groups: Iterable[OperationGroup], dispatch: Dispatch, unexplained: Unexplained, marks: Marks
) -> Iterator[HotWork]:
    """Yield the short operations of each loop or line, with the time to dispatch them."""
    by_line: dict[tuple[str, Location | None], list[OperationGroup]] = defaultdict(list)
    for group in groups:
        if group.each_ms <= marks.short_ms:
            by_line[group.loop, None if group.loop else group.at].append(group)
    on_device = Stage.DEVICE in unexplained.parts_ms
    for short in by_line.values():
        device_ms = sum(group.ms for group in short) if on_device else 0.0
        host_ms = sum(map(dispatch.of_group, short))
        at = short[0].loop_at or short[0].at
        yield HotWork(at, tuple(short), short=True, device_ms=device_ms, host_ms=host_ms)
