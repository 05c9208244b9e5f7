"""What an operation depends on, and what depends on it: the batch, variables, metrics, gradients."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Self

from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.run.program import Operation
from tfdoctor.trace.names import GRADIENT

METRIC = "metric"
"""The kind of origin of operations that Keras's metrics made."""

CONSTANT = frozenset(["Const", "HostConst"])
"""Operations without inputs whose result is always the same."""

VARIABLE = re.compile(
    r"(?:Read(?:(?!Read)\w)*VariableOp|ResourceGather(?:(?!ResourceGather)\w)*|VarHandleOp|VariableV2)$"
)
"""Operations that read variables."""

WRITES = ("Assign", "ResourceApply", "ResourceScatter")
"""Beginnings of the types of operations that write variables."""

SHAPES = frozenset(("Shape", "ShapeN", "Rank", "Size"))
"""Operations that use only the shape of their input."""

RANDOM = re.compile(r"Random|Rng|Multinomial|ParameterizedTruncatedNormal")
"""Operations whose results differ from step to step without an input that does."""


HIDDEN = re.compile(r"PyFunc|PartitionedCall|While|If$|Case$|Timestamp")
"""Operations whose inputs do not say all that they depend on: they run functions or read a clock."""


class Source(StrEnum):
    """What a value is computed from."""

    BATCH = "batch"  # or another argument of the step
    VARIABLES = "variables"
    RANDOM = "random numbers"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Dependence:
    """What operations are computed from, and what is computed from them, by their names."""

    flow: Dataflow

    @classmethod
    def measure(cls, flow: Dataflow) -> Self:
        """Follow the edges of the program's graphs."""
        return cls(flow)

    @cached_property
    def _found(self) -> dict[str, frozenset[Source]]:
        """What each operation is computed from, by one pass over the graph; without those before their inputs."""
        found: dict[str, frozenset[Source]] = {}
        operations = self.flow.program.by_name
        for name in operations:
            before, own = self._before(name), self._own(name)
            if all(one in found or one not in operations for one in before):
                inputs = (found.get(one, frozenset((Source.UNKNOWN,))) for one in before)
                found[name] = frozenset(() if own is None else (own,)).union(*inputs)
        return found

    def sources(self, name: str) -> frozenset[Source]:
        """Return what an operation is computed from; empty is constants only."""
        if name not in self._found:
            own = map(self._own, _reached((name,), self._before))
            self._found[name] = frozenset(source for source in own if source is not None)
        return self._found[name]

    def adds_nothing(self, name: str) -> bool:
        """Say whether an operation's result is the same wherever its inputs are; constants included."""
        return self._own(name) is None

    def is_fixed(self, name: str) -> bool:
        """Say whether an operation's values are the same in every step as long as the shapes are."""
        reached = _reached((name,), self._values_before)
        operations = self.flow.program.by_name
        return all(
            self._own(one) is None for one in reached if one not in operations or operations[one].type not in SHAPES
        )

    def _values_before(self, name: str) -> tuple[str, ...]:
        operation = self.flow.program.by_name.get(name)
        return () if operation and operation.type in SHAPES else self._before(name)

    def _before(self, name: str) -> tuple[str, ...]:
        operation = self.flow.program.by_name.get(name)
        return operation.sources if operation and not VARIABLE.search(operation.type) else ()

    def _own(self, name: str) -> Source | None:
        """Return what an operation adds itself to its inputs."""
        operation = self.flow.program.by_name.get(name)
        if operation is None or HIDDEN.search(operation.type):
            return Source.UNKNOWN
        handle = operation.outputs and operation.outputs[0][0] == "resource"  # of a variable
        if VARIABLE.search(operation.type) or handle:
            return Source.VARIABLES
        if RANDOM.search(operation.type):
            return Source.RANDOM
        if operation.sources or operation.captured or operation.type in CONSTANT:
            return None
        return Source.BATCH

    def feeds_gradients(self, name: str) -> bool:
        """Say whether gradients are computed from an operation; an optimizer's reads come after its writes."""
        return name in self._to_gradients

    @cached_property
    def _to_gradients(self) -> frozenset[str]:
        operations = self.flow.program.by_name
        return self._ancestors(name for name in operations if GRADIENT.search(name))

    def only_metrics(self, name: str) -> bool:
        """Say whether metrics take an operation's results, and no gradient does."""
        operation = self.flow.program.by_name.get(name)
        if operation is None or GRADIENT.search(name):
            return False
        return _is_metric(operation) or (name in self._to_metrics and name not in self._to_training)

    @cached_property
    def _to_metrics(self) -> frozenset[str]:
        operations = self.flow.program.by_name
        return self._ancestors(name for name, one in operations.items() if _is_metric(one))

    @cached_property
    def _to_training(self) -> frozenset[str]:
        operations: Mapping[str, Operation] = self.flow.program.by_name
        return self._ancestors(
            name
            for name, one in operations.items()
            if GRADIENT.search(name) or (one.type.startswith(WRITES) and not _is_metric(one))
        )

    def _ancestors(self, names: Iterable[str]) -> frozenset[str]:
        operations = self.flow.program.by_name
        return _reached(names, lambda name: operations[name].sources if name in operations else ())


def _is_metric(operation: Operation) -> bool:
    return operation.origin is not None and operation.origin.kind == METRIC


def _reached(names: Iterable[str], then: Callable[[str], Iterable[str]]) -> frozenset[str]:
    """Return all names that lead from these ones, themselves included."""
    ahead = list(names)
    reached = set(ahead)
    while ahead:
        new = {name for name in then(ahead.pop()) if name not in reached}
        reached |= new
        ahead.extend(new)
    return frozenset(reached)
