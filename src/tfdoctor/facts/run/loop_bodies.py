"""Which loops of the graph pass nothing from one iteration to the next, by the graphs of their bodies."""

import re
from collections.abc import Iterable
from itertools import groupby

from tfdoctor.facts.run.operation_types import UPDATES
from tfdoctor.facts.run.program import Operation, Program

PLACEHOLDER, IDENTITY, ADD = "Placeholder", "Identity", "AddV2"
# Operations that put an element into the list that is their first input, and change no other element.
WRITES = frozenset({"TensorListSetItem", "TensorListPushBack"})
# Operations by which iterations can depend on each other without an edge: writes of variables, and Python. Random
# numbers are drawn in any order.
EFFECTS = re.compile(rf"{UPDATES.pattern}|(?:Eager)?PyFunc\w*|Resource(?:Accumulator|CountUpTo)\w*")


def independent(program: Program | None, loops: Iterable[Operation]) -> frozenset[str]:
    """Return the names of the loops whose bodies are known and pass nothing to the next iteration."""
    # The graphs of a loop begin with the placeholder of its counter.
    wanted = {f"{loop.name}/{loop.sources[0]}": loop.name for loop in loops if loop.sources}
    found: dict[str, bool] = {}
    for _, group in groupby(program.operations if program else (), lambda one: one.graph):
        operations = tuple(group)
        name = wanted.get(operations[0].name)
        alone = _passes_nothing(operations) if name and name not in found else None
        if name and alone is not None:
            found[name] = alone
    return frozenset(name for name, alone in found.items() if alone)


def _passes_nothing(operations: tuple[Operation, ...]) -> bool | None:
    """Return whether no value of an iteration depends on what another one computed.

    A body returns its variables by identities that nothing uses, and takes them by its first placeholders: None
    where this graph is the loop's condition, or its results are unknown. A variable that is neither the same in
    each iteration nor a counter is the loop's state: no value may be computed from it. A list is state as well:
    each iteration may write an element, and none may read one.
    """
    used = {name for one in operations for name in one.sources}
    leaving = [one for one in operations if one.type == IDENTITY and one.name not in used]
    entering = [one for one in operations if one.type == PLACEHOLDER][: len(leaving)]
    types = [[one.outputs[0][0] for one in ends if one.outputs] for ends in (entering, leaving)]
    if types[0] != types[1] or len(types[0]) < len(leaving) or not leaving:
        return None
    if any(EFFECTS.fullmatch(one.type) for one in operations):
        return False
    by_name = {one.name: one for one in operations}
    state, ahead, seen = set[str](), list[str](), set[str]()
    for old, new in zip(entering, leaving, strict=True):
        made: Operation | None = new
        while made is not None and made.type == IDENTITY:  # it only passes a value on
            made = by_name.get(made.sources[0]) if made.sources else None
        same = made is old
        if made is not None and made.type == ADD and old.outputs[0][1] == ():
            added = [by_name.get(name) for name in made.sources]  # a counter is itself and constants
            steps = [one for one in added if one is not old]
            same = len(added) == len(steps) + 1 and all(one and one.type == "Const" for one in steps)
        state |= set() if same else {old.name}
        while made is not None and made.type in WRITES:  # of a list, what is written into it and where
            ahead += made.sources[1:]
            made = by_name.get(made.sources[0]) if made.sources else None
        ahead += [made.name] if made is not None and made is not old else []
    while ahead:
        name = ahead.pop()
        if name in by_name and name not in seen:
            seen.add(name)
            ahead += by_name[name].sources
    return state.isdisjoint(seen)
