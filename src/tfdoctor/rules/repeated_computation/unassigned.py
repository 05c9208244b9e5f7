"""Values that depend only on constants and on variables that no operation of the program assigns."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tfdoctor.facts.operations.dependence import METRIC, VARIABLE, WRITES, Dependence
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Operation, Program, Tensor
from tfdoctor.terms.verdict import Location

RESOURCE = "resource"
"""The type of a tensor that is a variable's handle, not its value."""

ASSIGN = "AssignVariableOp"
"""What ``variable.assign`` runs, in a graph or outside of any."""

ANY = ("Resource",)
"""Beginnings of the types of writes whose inputs do not show the variable's shape: parts of it, or its moments."""

Reads = frozenset[str]
"""The names of the reads of variables that a value depends on."""


Code = tuple[str, tuple[str, ...], Location | None]
"""A read of a variable in the code: its name, its inputs and its line."""


class Handle(NamedTuple):
    """A variable, as one graph knows it."""

    graph: int
    name: str


@dataclass(frozen=True, eq=False)
class Unassigned:
    """The values of a program that stay the same unless Python assigns a variable between two steps."""

    dependence: Dependence
    operations: Operations

    def reads(self, name: str) -> tuple[Operation, ...]:
        """Return the reads of variables that an operation depends on besides constants; () if on anything else."""
        reads = self._reads.get(name) or frozenset()
        built = self.dependence.flow.program.by_name
        trained = any(self._handle(built[one]) in self._trained for one in reads)
        return () if trained else tuple(built[one] for one in sorted(reads))

    def lines(self, names: Iterable[str]) -> tuple[Location, ...]:
        """Return the lines that read the variables that operations depend on, each once."""
        places = (read.at for name in names for read in self.reads(name))
        return tuple(dict.fromkeys(place for place in places if place))

    @cached_property
    def _reads(self) -> Mapping[str, Reads | None]:
        """The reads that each operation depends on, in the order of the graphs; None if it depends on more."""
        found: dict[str, Reads | None] = {}
        built = self.dependence.flow.program.by_name
        for name, one in built.items():
            read = bool(VARIABLE.search(one.type))
            own = self._kept(one) if read else self.dependence.adds_nothing(name)
            values = one.sources[1:] if read else one.sources
            before = [found.get(value) for value in values if self._same_graph(one, value)]
            known = own and len(before) == len(values)
            start = frozenset((name,)) if read else frozenset()
            found[name] = _union(start, before) if known else None
        return found

    def _same_graph(self, one: Operation, source: str) -> bool:
        made = self.dependence.flow.program.by_name.get(source)
        return made is not None and made.graph == one.graph

    @staticmethod
    def _handle(read: Operation) -> Handle:
        return Handle(read.graph, read.sources[0] if read.sources else "")

    def _kept(self, read: Operation) -> bool:
        """Say whether nothing assigns a read variable.

        A graph that reads it by the same name at the same line was traced from the same code: TensorFlow traces a
        function twice whose first call creates variables. There, as in its own graph, its handle tells who assigns
        it; in other graphs its type and shape do.
        """
        handle = self._handle(read)
        made = self.dependence.flow.program.by_name.get(handle.name)
        argument = made is not None and made.type == "Placeholder" and made.graph == read.graph
        if not argument or not read.outputs or not self._assigns:
            return False
        same = self._traced[_code(read)]
        if any(Handle(graph, handle.name) in self._used for graph in same):
            return False
        others = (one for one in self._assigns if one.graph not in same)
        return not any(_may_write(one, read.outputs[0]) for one in others)

    @cached_property
    def _traced(self) -> Mapping[Code, frozenset[int]]:
        """The graphs that read a variable by the same names at the same line."""
        graphs: dict[Code, set[int]] = defaultdict(set)
        for one in self.dependence.flow.program.operations:
            if VARIABLE.search(one.type):
                graphs[_code(one)].add(one.graph)
        return {code: frozenset(found) for code, found in graphs.items()}

    @cached_property
    def _used(self) -> frozenset[Handle]:
        """The variables that an operation takes that does not only read them: it writes or calls a function."""
        return frozenset(
            Handle(one.graph, source)
            for one in self.dependence.flow.program.operations
            if not VARIABLE.search(one.type)
            for source in one.sources
        )

    @cached_property
    def _assigns(self) -> tuple[Operation, ...]:
        """The writes of all graphs, but those of metrics; () where Python may assign what is trained.

        Where no graph writes, the optimizer runs between the calls of the step. Where a variable is assigned
        outside of the graphs in the traced steps, it is not known which.
        """
        program = self.dependence.flow.program
        outside = (one.name not in program.by_name for one in self.operations.rows if one.type == ASSIGN)
        return () if any(outside) else tuple(_writes(program))

    @cached_property
    def _trained(self) -> frozenset[Handle]:
        """The variables with a gradient: of an operation that depends on nothing else."""
        built = self.dependence.flow.program.by_name
        gradients = self.dependence.flow.gradients
        return frozenset(
            self._handle(built[read])
            for name, reads in self._reads.items()
            if name in gradients
            for read in reads or ()
        )


def _code(read: Operation) -> Code:
    return read.name, read.sources, read.at


def _union(start: Reads, sets: Iterable[Reads | None]) -> Reads | None:
    for one in sets:
        if one is None:
            return None
        start |= one
    return start


def _writes(program: Program) -> Iterator[Operation]:
    for one in program.operations:
        if one.type.startswith(WRITES) and not (one.origin and one.origin.kind == METRIC):
            yield one


def _may_write(write: Operation, value: Tensor) -> bool:
    """Say whether a write in another graph may assign a variable of this type and shape."""
    values = [tensor for tensor in write.inputs if tensor[0] != RESOURCE]
    if write.type.startswith(ANY):
        return not values or any(tensor[0] == value[0] for tensor in values)
    return not values or any(_alike(tensor, value) for tensor in values)


def _alike(one: Tensor, other: Tensor) -> bool:
    """Say whether two tensors may have the same type and shape."""
    if one[0] != other[0] or one[1] is None or other[1] is None:
        return one[0] == other[0]
    same_rank = len(one[1]) == len(other[1])
    return same_rank and all(a == b or a is None or b is None for a, b in zip(one[1], other[1], strict=True))
