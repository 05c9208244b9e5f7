"""Divides the operations by what shows that they may take less time, as finely as is worth a name."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.savings.dispatch import Dispatch
from tfdoctor.facts.savings.layer_calls import LayerCalls
from tfdoctor.facts.savings.operation_groups import OperationGroup
from tfdoctor.rules.hot_operation.cheaper_forms import CheaperForms
from tfdoctor.rules.hot_operation.hot_work import Departure, HotWork, Least, part_of, without
from tfdoctor.rules.hot_operation.sentences import PYTHON


@dataclass(frozen=True, slots=True)
class Marks:
    """What counts as near the hardware's rate, as a short call, and as many of them."""

    near: float  # least over measured time
    short_ms: float  # mean time of a call
    many: float  # calls per step


@dataclass(frozen=True, slots=True)
class Search:
    """What operations are divided by; ``on_device`` says that the device's time is not explained."""

    marks: Marks
    least: Least
    dispatch: Dispatch
    on_device: bool
    forms: CheaperForms
    calls: LayerCalls
    optimizer: frozenset[str]  # the names of its operations

    def find(self, groups: list[OperationGroup]) -> list[HotWork]:
        """Return what takes long enough and departs from what is needed: each operation belongs to one."""
        ways: list[Callable[[list[OperationGroup]], Iterable[HotWork]]] = [
            _metrics,
            _constant,
            self._repeated,
            self._cheaper,
            _python,
            self._far,
        ]
        found: list[HotWork] = []
        left = groups
        for way in [*ways, self._short] if self.on_device else [self._short]:
            new = [one for one in way(left) if one.ms >= self.least.of(one)]
            taken = frozenset(row.name for one in new for group in one.groups for row in group.rows)
            left = [rest for group in left if (rest := without(group, taken))]
            found += new
        return found

    def _repeated(self, groups: list[OperationGroup]) -> Iterator[HotWork]:
        """Yield the calls of layers that compute again what an earlier call did, by the line of the last."""
        again = {call.place: call for layer in self.calls.layers for call in layer.repeated}
        for at in again:
            layers = tuple(one for one in self.calls.layers if any(call.place == at for call in one.repeated))
            calls = [call for one in layers for call in one.repeated if call.place == at]
            names = [name for call in calls for name in call.operations]
            yield from _of_names(groups, names, HotWork(at, (), Departure.REPEATED, layers=layers))

    def _cheaper(self, groups: list[OperationGroup]) -> Iterator[HotWork]:
        """Yield the operations that have a cheaper form."""
        for form in self.forms.forms:
            yield from _of_names(groups, form.names, HotWork(form.at, (), Departure.CHEAPER, form=form))

    def _far(self, groups: list[OperationGroup]) -> Iterator[HotWork]:
        """Yield the groups of longer operations that take over twice their least time."""
        for group in groups:
            far = group.attained is not None and group.attained < self.marks.near
            if far and group.each_ms > self.marks.short_ms:
                yield HotWork(group.at, (group,), Departure.FAR, group.ms)

    def _short(self, groups: list[OperationGroup]) -> Iterator[HotWork]:
        """Yield the many short operations of each loop or line of the user's, with the time to dispatch them."""
        by_line: dict[object, list[OperationGroup]] = defaultdict(list)
        for group in groups:
            if group.each_ms <= self.marks.short_ms:
                by_line[group.loop, None if group.loop else group.at].append(group)
        for short in by_line.values():
            hot = HotWork(
                short[0].loop_at or short[0].at,
                tuple(short),
                Departure.SHORT,
                sum(group.ms for group in short) if self.on_device else 0.0,
                sum(map(self.dispatch.of_group, short)),
            )
            if hot.calls >= self.marks.many and self._is_direct(short):
                yield hot

    def _is_direct(self, groups: Iterable[OperationGroup]) -> bool:
        """Say whether the user's lines choose at least half of the operations, by their time.

        A layer's, an optimizer's and a metric's operations are Keras' choice.
        """
        rows = [row for group in groups for row in group.rows]
        theirs = (row for row in rows if row.name not in self.optimizer)
        made = ((row.ms, row.operation) for row in theirs)
        own = sum(time for time, one in made if one is None or (one.direct and one.origin is None))
        return 2.0 * own >= sum(row.ms for row in rows)


def _metrics(groups: list[OperationGroup]) -> Iterator[HotWork]:
    """Yield the operations that only metrics use, together."""
    used = tuple(group for group in groups if group.only_metrics)
    if used:
        at = max(used, key=lambda group: group.ms).at
        yield HotWork(at, used, Departure.METRICS, sum(group.ms for group in used))


def _constant(groups: list[OperationGroup]) -> Iterator[HotWork]:
    """Yield the groups that depend on constants only."""
    for group in groups:
        if group.inputs == frozenset():
            yield HotWork(group.at, (group,), Departure.CONSTANT, group.ms)


def _python(groups: list[OperationGroup]) -> Iterator[HotWork]:
    """Yield the operations that run Python."""
    for group in groups:
        if PYTHON.fullmatch(group.type):
            yield HotWork(group.at, (group,), Departure.PYTHON, group.ms)


def _of_names(groups: list[OperationGroup], names: Iterable[str], hot: HotWork) -> Iterator[HotWork]:
    """Yield work with the operations of these names, the longest first; nothing where none is left."""
    wanted = frozenset(names)
    picked = (part_of(group, tuple(row for row in group.rows if _name(row) in wanted)) for group in groups)
    parts = sorted(filter(None, picked), key=lambda group: -group.ms)
    if parts:
        total_ms = sum(group.ms for group in parts)
        yield HotWork(hot.at, tuple(parts), hot.departure, total_ms, form=hot.form, layers=hot.layers)


def _name(row: OperationTime) -> str:
    """Return the name that the program has for an operation: fusing renames what runs."""
    return row.operation.name if row.operation else row.name
