"""The calls of each layer in a step's graph, by the lines that call it, and which compute the same."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Self

from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import CONSTANT, READS
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.names import GRADIENT

BUILD = "build"  # The scope in which Keras makes the variables of a layer, by calling the layers inside it
SEVERAL = 2  # Layers of one name from which on their calls cannot be told apart
Value = int  # The number of a value: equal for operations that must return equal results


@dataclass(frozen=True, slots=True)
class LayerCall:
    """One call of a layer in the forward pass."""

    scope: str  # of its operations: "sequential_3/dense_1"
    at: Location | None  # the user's innermost line that leads to the call
    by: Location | None  # the user's line that calls the function of ``at``
    ms: float = 0.0  # of its operations that ran, per training step
    operations: tuple[str, ...] = ()  # these operations

    @property
    def place(self) -> Location | None:
        """The outer line, which tells the calls of one function apart; else the inner one."""
        return self.by or self.at


@dataclass(frozen=True, slots=True)
class CalledLayer:
    """A layer that one step calls twice or more; ``equal`` are the calls that compute the same."""

    name: str
    calls: tuple[LayerCall, ...]
    equal: tuple[tuple[LayerCall, ...], ...] = ()

    @property
    def places(self) -> Mapping[Location, int]:
        """How often each line calls it, the most frequent first."""
        return dict(Counter(call.at for call in self.calls if call.at).most_common())

    @property
    def callers(self) -> Mapping[Location, int]:
        """How often each line calls a function that calls it, the most frequent first."""
        return dict(Counter(call.by for call in self.calls if call.by).most_common())

    @property
    def repeated(self) -> tuple[LayerCall, ...]:
        """The calls that compute again what an earlier one did."""
        return tuple(chain.from_iterable(calls[1:] for calls in self.equal))

    @property
    def repeated_ms(self) -> float:
        """The time of their forward operations that ran, per training step."""
        return sum(call.ms for call in self.repeated)


@dataclass(frozen=True, slots=True)
class LayerCalls:
    """The layers that one step calls twice or more, those with most calls first."""

    layers: tuple[CalledLayer, ...] = ()

    @classmethod
    def measure(cls, program: Program, operations: Operations) -> Self:
        """Group the forward operations of each layer by the scopes that its calls got.

        Only functions that take gradients count: Keras also calls layers in graphs that it makes for their shapes,
        and ``predict`` in one of its own. A call of which no operation was recorded does not count either: its
        result may be unused, as that of a cell before its loop. Layers of the same name cannot be told apart.

        Two calls are equal if all their operations have the same type, attributes and equal inputs, and no
        variable that they read is written in between. Recordings of earlier versions do not contain
        the attributes: they have no equal calls.
        """
        times: dict[str, float] = defaultdict(float)
        for row in operations.rows:
            times[row.built] += row.ms
        values = values_of(tuple(program.by_name.values()))
        calls: dict[str, list[LayerCall]] = defaultdict(list)
        equal: dict[str, dict[frozenset[Value], list[LayerCall]]] = defaultdict(lambda: defaultdict(list))
        training = {operation.name for operation in program.training}
        number = Counter(layer.name for layer in program.layers)
        scopes: dict[tuple[str, str], list[Operation]] = defaultdict(list)
        for operation in program.by_name.values():
            known = operation.name in training and number[operation.layer] < SEVERAL
            if known and (scope := _scope(operation)):
                scopes[operation.layer, scope].append(operation)
        for (layer, scope), members in scopes.items():
            ran = tuple(one.name for one in members if one.name in times)
            if ran:
                first = next((one for one in members if one.at), members[0])
                call = LayerCall(scope, first.at, first.by, sum(times[name] for name in ran), ran)
                calls[layer].append(call)
                equal[layer][frozenset(values[one.name] for one in members if one.sources)].append(call)
        found = [
            CalledLayer(name, tuple(made), tuple(tuple(alike) for alike in equal[name].values() if len(alike) > 1))
            for name, made in calls.items()
            if len(made) > 1
        ]
        return cls(tuple(sorted(found, key=lambda layer: -len(layer.calls))))

    def of(self, name: str) -> CalledLayer | None:
        """Return the calls of a layer; None where a step calls it once at most."""
        return next((layer for layer in self.layers if layer.name == name), None)


def _scope(operation: Operation) -> str:
    """Return the scope of the call of its layer that made an operation; "" of gradients, building and others.

    The outermost scope counts: TensorFlow repeats a layer's scope for the loops and branches inside its call.
    """
    if not operation.layer or operation.direct or GRADIENT.search(operation.name):
        return ""
    own = re.compile(rf"{re.escape(operation.layer)}(_\d+)?")
    segments = operation.name.split("/")[:-1]
    for end, segment in enumerate(segments, 1):
        if own.fullmatch(segment):
            return "" if BUILD in segments[:end] else "/".join(segments[:end])
    return ""


def values_of(operations: Iterable[Operation]) -> dict[str, Value]:
    """Number the values of a graph's operations in their order, equal ones alike.

    Values are equal if they are computed by operations of the same type and attributes from equal values, and no
    variable that they read is written in between.
    """
    numbers: dict[object, Value] = {}
    values: dict[str, Value] = {}
    written: dict[str, int] = {}
    for operation in operations:
        reads = bool(READS.search(operation.type))
        for handle in () if reads else operation.sources:
            written[handle] = written.get(handle, 0) + 1
        inputs = [values.get(source) for source in operation.sources]
        computed: object = operation.name  # what it is computed of is unknown, or its value may differ
        if None not in inputs and operation.computes and (inputs or operation.type in CONSTANT):
            epoch = written.get(operation.sources[0], 0) if reads else 0
            computed = operation.computes, operation.ports, tuple(inputs), epoch
        values[operation.name] = numbers.setdefault(computed, len(numbers))
    return values
