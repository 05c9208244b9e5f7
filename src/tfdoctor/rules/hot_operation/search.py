"""Divides the operations that may take less time by what they have in common, as finely as is worth a name."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

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


Way = Callable[[list[OperationGroup], Marks], Iterable[HotWork]]
"""A way to divide operations into work that may take long enough."""


def find(
    groups: list[OperationGroup],
    dispatch: Dispatch,
    unexplained: Unexplained,
    least: Least,
    marks: Marks,
) -> list[HotWork]:
    """Return what takes long enough, divided as finely as reaches that: each operation belongs to one."""
    on_device = Stage.DEVICE in unexplained.parts_ms
    short = partial(_short, dispatch=dispatch, on_device=on_device)
    ways: list[Way] = [_metrics, _constant, _slow, short, _products, _by_line]
    found: list[HotWork] = []
    left = groups
    for way in ways if on_device else [short]:
        new = [one for one in way(left, marks) if one.ms >= least.of(one)]
        taken = {id(group) for one in new for group in one.groups}
        left = [group for group in left if id(group) not in taken]
        found += new
    much = sum(one.ms for one in found) >= NAMED * unexplained.parts_ms.get(Stage.DEVICE, 0.0)
    doubtful = [group for group in left if _doubtful(group, marks)]
    lines = {group.at for group in doubtful if group.at}
    if lines and on_device and not much:
        rest = _together(doubtful, f"small operations of {counted(len(lines), 'line')}, most")
        found += [rest] if rest.ms >= least.of(rest) else []
    return found


def _metrics(groups: Iterable[OperationGroup], _: Marks) -> Iterator[HotWork]:
    """Yield the operations that only metrics use, together."""
    used = tuple(group for group in groups if group.only_metrics)
    names = list(dict.fromkeys(name for group in used for name in group.metrics))
    if not used:
        return
    at = max(used, key=lambda group: group.ms).at
    title = f"{', '.join(names)} (metrics)" if names else "metrics"
    yield HotWork(at, used, title=title, device_ms=sum(group.ms for group in used))


def _constant(groups: Iterable[OperationGroup], _: Marks) -> Iterator[HotWork]:
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


def _together(groups: list[OperationGroup], title: str) -> HotWork:
    groups = sorted(groups, key=lambda group: -group.ms)
    total = sum(group.ms for group in groups)
    return HotWork(groups[0].at, tuple(groups), title=title, device_ms=total)


def _doubtful(group: OperationGroup, marks: Marks) -> bool:
    """Say whether a group may take much longer than its bytes and FLOPs need: products of unknown peak are not."""
    if group.attained is None:
        return not group.is_matrix
    return group.attained < marks.near


def _products(groups: Iterable[OperationGroup], marks: Marks) -> Iterator[HotWork]:
    """Yield the matmuls and convolutions of each line whose least time is unknown."""
    by_line: dict[tuple[str, Location | None], list[OperationGroup]] = defaultdict(list)
    for group in groups:
        if group.is_matrix and group.attained is None and group.each_ms > marks.short_ms:
            by_line[group.type, group.at].append(group)
    for (_, at), found in by_line.items():
        yield HotWork(at, tuple(found), device_ms=sum(group.ms for group in found))


def _slow(groups: Iterable[OperationGroup], marks: Marks) -> Iterator[HotWork]:
    """Yield the groups of longer operations that take over twice their least time, or an unknown one."""
    for group in groups:
        if group.each_ms > marks.short_ms and _doubtful(group, marks):
            yield HotWork(group.at, (group,), device_ms=group.ms)


def _short(
    groups: Iterable[OperationGroup], marks: Marks, *, dispatch: Dispatch, on_device: bool
) -> Iterator[HotWork]:
    """Yield the short operations of each loop or line, with the time to dispatch them."""
    by_line: dict[tuple[str, Location | None], list[OperationGroup]] = defaultdict(list)
    for group in groups:
        if group.each_ms <= marks.short_ms:
            by_line[group.loop, None if group.loop else group.at].append(group)
    for short in by_line.values():
        device_ms = sum(group.ms for group in short) if on_device else 0.0
        host_ms = sum(map(dispatch.of_group, short))
        at = short[0].loop_at or short[0].at
        yield HotWork(at, tuple(short), short=True, device_ms=device_ms, host_ms=host_ms)
