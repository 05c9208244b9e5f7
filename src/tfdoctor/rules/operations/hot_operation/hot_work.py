"""What a line makes the device do that takes more time than it has to, and the ways to find it."""

from collections.abc import Collection

from tfdoctor.families.kit import *


class Departure(Enum):
    """What was measured that shows that less time is possible."""

    METRICS = auto()  # no gradient uses the results
    PYTHON = auto()  # it runs Python
    FAR = auto()  # its bytes and FLOPs need much less time at the rates of the hardware
    SHORT = auto()  # many operations of a few microseconds on a line of the user's


class HotWork(Record):
    """What one line makes the device do that takes more time than it has to; ms per step."""

    departure: Departure
    at: Location | None
    groups: tuple[OperationGroup, ...]
    on_device: bool = True  # its time counts, and not that of dispatching alone
    host_ms: float = 0.0  # to dispatch short ones, where nothing else explains it

    @property
    def device_ms(self) -> float:
        """The time of the operations."""
        return sum(group.ms for group in self.groups) if self.on_device else 0.0

    @property
    def ms(self) -> float:
        """The time of the device and the host."""
        return self.device_ms + self.host_ms

    @property
    def calls(self) -> float:
        """The calls per step."""
        return sum(group.calls for group in self.groups)

    @property
    def rows(self) -> tuple[OperationTime, ...]:
        """All operations."""
        return tuple(row for group in self.groups for row in group.rows)

    @property
    def ceiling_ms(self) -> float:
        """The time above the least, as far as that is known."""
        if self.departure is not Departure.FAR:
            return self.ms
        return sum(group.ms * (1.0 - (group.attained or 0.0)) for group in self.groups)


Groups = Sequence[OperationGroup]


def find(
    groups: Groups, ways: Iterable[Callable[[Groups], Iterable[HotWork]]], least: Callable[[HotWork], float]
) -> list[HotWork]:
    """Return what takes long enough and departs from what is needed: each operation belongs to one way."""
    found: list[HotWork] = []
    for way in ways:
        new = [one for one in way(groups) if one.ms >= least(one)]
        groups = without(groups, frozenset(row.name for one in new for row in one.rows))
        found += new
    return found


def without(groups: Groups, names: frozenset[str]) -> Groups:
    """Return the groups without the operations and layers of these names."""
    return _parts(groups, lambda row: names.isdisjoint((row.name, row.layer)))


def _parts(groups: Groups, wanted: Callable[[OperationTime], bool]) -> Groups:
    found = []
    for group in groups:
        rows = tuple(filter(wanted, group.rows))
        part = sum(row.ms for row in rows) / group.ms if group.ms else 0.0
        least = None if group.least_ms is None else group.least_ms * part
        if rows:
            found.append(group if len(rows) == len(group.rows) else replace(group, rows=rows, least_ms=least))
    return found


def metrics(groups: Groups) -> Iterator[HotWork]:
    """Yield the operations that only metrics use, together."""
    used = tuple(group for group in groups if group.only_metrics)
    if used:
        at = max(used, key=lambda group: group.ms).at
        yield HotWork(Departure.METRICS, at, used)


def short(
    groups: Groups, short_ms: float, many: float, dispatch: Dispatch, optimizer: Collection[str], *, on_device: bool
) -> Iterator[HotWork]:
    """Yield the many short operations of each loop or line of the user's, with the time to dispatch them.

    The lines have to choose at least half of them, by their time: a layer's, a metric's and the optimizer's are
    Keras' choice.
    """
    by_line: dict[object, list[OperationGroup]] = defaultdict(list)
    for group in groups:
        if group.each_ms <= short_ms:
            by_line[group.loop, None if group.loop else group.at].append(group)
    for some in by_line.values():
        rows = [row for group in some for row in group.rows]
        made = [(row.ms, row.operation) for row in rows if row.name not in optimizer]
        own_ms = sum(time for time, one in made if one is None or (one.direct and one.origin is None))
        at, host_ms = some[0].loop_at or some[0].at, sum(map(dispatch.of_group, some))
        hot = HotWork(Departure.SHORT, at, tuple(some), on_device, host_ms)
        if hot.calls >= many and 2.0 * own_ms >= sum(row.ms for row in rows):
            yield hot
