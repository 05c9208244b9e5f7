"""Which loops of the graph pass nothing from one iteration to the next, by the graphs of their bodies."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from tfdoctor.facts.run.program import Operation, Program

PLACEHOLDER, IDENTITY, ADD = "Placeholder", "Identity", "AddV2"

WRITES = frozenset({"TensorListSetItem", "TensorListPushBack"})
"""Operations that put an element into the list that is their first input, and change no other element."""

EFFECTS = ("Assign", "Resource", "PyFunc", "EagerPyFunc")
"""Beginnings of the types of operations by which iterations can depend on each other without an edge: writes of
variables, and Python. Random numbers are drawn in any order."""


@dataclass(frozen=True, slots=True)
class IterationGraph:
    """One iteration: ``entering`` and ``leaving`` are the values of the loop's variables, in the same order."""

    by_name: Mapping[str, Operation]
    entering: tuple[Operation, ...]
    leaving: tuple[Operation, ...]

    @property
    def independent(self) -> bool:
        """Whether no value depends on what another iteration computed.

        A variable of the loop that is neither the same in each iteration nor a counter is its state: no value may
        be computed from it. A list is state as well: each iteration may write an element, and none may read one.
        """
        if any(one.type.startswith(EFFECTS) for one in self.by_name.values()):
            return False
        pairs = [(old, self._made(new)) for old, new in zip(self.entering, self.leaving, strict=True)]
        state = {old.name for old, made in pairs if not self._repeats(old, made)}
        return state.isdisjoint(self._origins(name for old, made in pairs for name in self._values(old, made)))

    def _repeats(self, old: Operation, made: Operation | None) -> bool:
        """Say whether a variable stays the same, or counts."""
        if made is None or made.type != ADD or old.outputs[0][1] != ():
            return made is old
        added = [self.by_name.get(name) for name in made.sources]
        steps = [one for one in added if one is not old]
        return len(added) == len(steps) + 1 and all(one and one.type == "Const" for one in steps)

    def _values(self, old: Operation, made: Operation | None) -> Iterator[str]:
        """Yield what a new value is computed from; of a list, what is written into it and where."""
        while made is not None and made.type in WRITES:
            yield from made.sources[1:]
            made = self._first(made)
        if made is not None and made is not old:
            yield made.name

    def _first(self, user: Operation) -> Operation | None:
        return self.by_name.get(user.sources[0]) if user.sources else None

    def _made(self, made: Operation | None) -> Operation | None:
        """Return the operation that makes a value, skipping those that only pass it on."""
        while made is not None and made.type == IDENTITY:
            made = self._first(made)
        return made

    def _origins(self, names: Iterable[str]) -> set[str]:
        """Return the operations with these names and all that they depend on."""
        seen: set[str] = set()
        ahead = [*names]
        while ahead:
            name = ahead.pop()
            if name in self.by_name and name not in seen:
                seen.add(name)
                ahead += self.by_name[name].sources
        return seen


def independent(program: Program | None, loops: Iterable[Operation]) -> frozenset[str]:
    """Return the names of the loops whose bodies are known and pass nothing to the next iteration."""
    # The graphs of a loop begin with the placeholder of its counter.
    wanted = {f"{loop.name}/{loop.sources[0]}": loop.name for loop in loops if loop.sources}
    found: dict[str, bool] = {}
    for _, group in groupby(program.operations if program else (), lambda one: one.graph):
        operations = tuple(group)
        name = wanted.get(operations[0].name)
        body = _body(operations) if name else None
        if name and body and name not in found:
            found[name] = body.independent
    return frozenset(name for name, alone in found.items() if alone)


def _body(operations: tuple[Operation, ...]) -> IterationGraph | None:
    """Find the loop's variables; None where this graph is the loop's condition, or its results are unknown.

    A body returns its variables by identities that nothing uses, and takes them by its first placeholders.
    """
    used = {name for one in operations for name in one.sources}
    leaving = [one for one in operations if one.type == IDENTITY and one.name not in used]
    entering = [one for one in operations if one.type == PLACEHOLDER][: len(leaving)]
    types = [[one.outputs[0][0] for one in ends if one.outputs] for ends in (entering, leaving)]
    if types[0] != types[1] or len(types[0]) < len(leaving) or not leaving:
        return None
    return IterationGraph({one.name: one for one in operations}, tuple(entering), tuple(leaving))
