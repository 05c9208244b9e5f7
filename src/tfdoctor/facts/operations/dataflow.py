"""Which operation feeds which, in the graphs that the run built."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import Operation, Program

PASSING = frozenset(["Identity", "Reshape", "Cast", "ExpandDims", "Squeeze", "StopGradient"])
"""Operations that pass on the values of their first input, at most in another shape or type."""

LONGEST = 100
"""Operations in a row that only pass on values: a graph with more of them, or with a circle, is damaged."""

GRADIENT_SCOPE = "gradient_tape/"
"""The name scope of a gradient's operations, before the name of the forward operation."""


@dataclass(frozen=True, eq=False)
class Dataflow:
    """The edges between a program's operations, by their names."""

    program: Program

    @classmethod
    def measure(cls, program: Program) -> Self:
        """Read the edges from the program record.

        Raises:
            Unavailable: the record is of a version that did not write them.
        """
        if not any(operation.sources for operation in program.operations):
            raise Unavailable(
                "the recording does not contain the graph's edges; record the run again with this version"
            )
        return cls(program)

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Operation, ...]]:
        """The operations that take an operation's results, by its name."""
        consumers: dict[str, list[Operation]] = {}
        for operation in self.program.by_name.values():
            for source in dict.fromkeys(operation.sources):
                consumers.setdefault(source, []).append(operation)
        return {name: tuple(rows) for name, rows in consumers.items()}

    @cached_property
    def gradients(self) -> Mapping[str, tuple[Operation, ...]]:
        """The operations of gradients, by the forward operation that their scope names."""
        gradients: dict[str, list[Operation]] = {}
        for operation in self.program.by_name.values():
            forward, _, own = operation.name.removeprefix(GRADIENT_SCOPE).rpartition("/")
            if forward and own and operation.name.startswith(GRADIENT_SCOPE):
                gradients.setdefault(forward, []).append(operation)
        return {name: tuple(rows) for name, rows in gradients.items()}

    def source(self, operation: Operation, position: int) -> Operation | None:
        """Return the operation that makes an input, skipping those that only pass values on; None is unknown."""
        seen: Operation | None = operation
        for _ in range(LONGEST):
            if seen is None or position >= len(seen.sources):
                return None
            seen = self.program.by_name.get(seen.sources[position])
            if seen is None or seen.type not in PASSING:
                return seen
            position = 0
        return None

    def users(self, operation: Operation) -> Iterator[Operation]:
        """Yield the operations that take an operation's values, skipping those that only pass them on."""
        waiting, passed = [*reversed(self.consumers.get(operation.name, ()))], {operation.name}
        while waiting:
            user = waiting.pop()
            if user.type not in PASSING:
                yield user
            elif user.name not in passed:
                passed.add(user.name)
                waiting += reversed(self.consumers.get(user.name, ()))

    @staticmethod
    def is_gradient_of(name: str, operation: Operation) -> bool:
        """Say whether the operation called ``name`` computes the gradient of another one, by its scope."""
        return name.startswith(f"{GRADIENT_SCOPE}{operation.name}/")
