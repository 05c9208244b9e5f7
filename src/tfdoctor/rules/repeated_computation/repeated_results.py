"""Work that a step does again: results that it has already, or that are the same in every step."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Self

from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE, Dataflow
from tfdoctor.facts.operations.dependence import VARIABLE, Dependence
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.facts.savings.layer_calls import values_of
from tfdoctor.rules.repeated_computation.unassigned import Unassigned
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.names import GRADIENT

FILLS = frozenset(("Fill", "ZerosLike", "OnesLike", "Const", "HostConst", "Identity"))
"""Operations that take no longer than reading their stored result."""

MOVES = frozenset((
    "MatrixBandPart", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "Transpose", "Reshape",
    "ExpandDims", "Squeeze", "Slice", "StridedSlice", "GatherV2", "ConcatV2", "Pack", "Unpack", "Cast",
))  # fmt: skip
"""Operations that only move elements, as the methods of a library do with the result that the user keeps."""

SUM = "AddN"
"""The operation that adds up the gradients of one tensor, or of one weight."""


@dataclass(frozen=True, slots=True)
class GradientSum:
    """A sum of gradients, of which some are those of later computations."""

    row: OperationTime
    spared: float  # the share of its operands that go, 0 to 1; 1 where a single one remains

    @property
    def ms(self) -> float:
        """The time that these operands take, in ms per step."""
        return self.row.ms * self.spared


@dataclass(frozen=True, slots=True)
class Repeat:
    """Operations that compute again what the ones of another line have computed in the same step."""

    first: Location | None
    again: Location | None
    rows: tuple[OperationTime, ...]  # of the later computation, forward
    gradients: tuple[OperationTime, ...] = ()  # of these
    sums: tuple[GradientSum, ...] = ()  # of these gradients and others

    @property
    def forward_ms(self) -> float:
        """The time of the repeated operations, in ms per step."""
        return sum(row.ms for row in self.rows)

    @property
    def ms(self) -> float:
        """Their time with that of their gradients, and of adding these up."""
        backward_ms = sum(row.ms for row in self.gradients) + sum(one.ms for one in self.sums)
        return self.forward_ms + backward_ms

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that are called again, those of most time first."""
        return tuple(dict.fromkeys(row.layer for row in self.rows if row.layer))


@dataclass(frozen=True, slots=True)
class Constant(OperationRows):
    """The operations of a line whose results are the same in every step.

    ``reads`` are the lines that read the variables that they depend on: no operation assigns these, but Python may.
    """

    at: Location | None
    rows: tuple[OperationTime, ...]
    reads: tuple[Location, ...] = ()


@dataclass(frozen=True, slots=True)
class RepeatedResults:
    """What is computed twice in a step, and what is computed in each step from constants; most time first."""

    repeats: tuple[Repeat, ...] = ()
    constants: tuple[Constant, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, program: Program, dependence: Dependence) -> Self:
        """Number the values of each graph, and compare those of the operations that ran.

        TensorFlow merges equal operations by itself where they read no variable. Gradients that compute a forward
        result again do so to save memory (tf.recompute_grad): they are no repetition.
        """
        ran: dict[str, list[OperationTime]] = defaultdict(list)
        for row in operations.rows:  # without instructions of XLA's
            if row.name in program.by_name and not (row.operation and row.operation.compiled):
                ran[row.name].append(row)
        repeats = tuple(_repeats(ran, dependence.flow, operations))
        constants = _constants(ran, dependence, Unassigned(dependence, operations))
        return cls(
            tuple(sorted(repeats, key=lambda one: -one.ms)), tuple(sorted(constants, key=lambda one: -one.ms))
        )

    @property
    def ms(self) -> float:
        """The time of all of it, in ms per step."""
        return sum(one.ms for one in self.repeats) + sum(one.ms for one in self.constants)


Lines = tuple[Location | None, Location | None]

Ran = Mapping[str, Sequence[OperationTime]]
"""The operations that ran, by their name in the graph. One that was fused with others has the name of the last."""


def _constants(ran: Ran, dependence: Dependence, kept: Unassigned) -> Iterator[Constant]:
    """Yield the operations that depend on nothing that changes, by their lines.

    Of those that depend on variables only the ones count that the user's line calls itself, and that compute: what
    a layer of Keras or an optimizer computes of its variables cannot be moved.
    """
    lines: dict[Location | None, list[Operation]] = defaultdict(list)
    for name in ran:
        made = dependence.flow.program.by_name[name]
        computes = made.type not in FILLS and not VARIABLE.search(made.type)
        if computes and not GRADIENT.search(name):
            own = made.direct and not made.origin and made.type not in MOVES
            if (own and kept.reads(name)) or not dependence.sources(name):
                lines[made.at].append(made)
    for at, operations in lines.items():
        names = [one.name for one in operations]
        yield Constant(at, tuple(row for name in names for row in ran[name]), kept.lines(names))


def _repeats(ran: Ran, flow: Dataflow, operations: Operations) -> Iterator[Repeat]:
    """Yield the operations that compute again, by the lines of the first and the later computation.

    Operations of one line are told apart by those that call its function. Gradients of later computations go where
    the first one has such gradients, too. One gradient remains: that of a discriminator's generated images is
    needed, if only the generator's step has it.
    """
    lines: dict[Lines, list[tuple[str, str]]] = defaultdict(list)
    for first, *later in _equal(ran, flow.program):
        for one in later:
            alike = first.at == one.at
            at = (first.by or first.at, one.by or one.at) if alike else (first.at, one.at)
            lines[at].append((first.name, one.name))
    gradients = _gradients(operations)
    for (first_at, again), pairs in lines.items():
        rows = tuple(row for _, name in pairs for row in ran[name])
        both = [later for one, later in pairs if not gradients.keys().isdisjoint(_names(one, ran))]
        names = [name for later in both for name in _names(later, ran)]
        spared = tuple(row for name in names for row in gradients.get(name, ()))
        yield Repeat(first_at, again, rows, spared, tuple(_sums(spared, flow, operations)))


def _sums(spared: Iterable[OperationTime], flow: Dataflow, operations: Operations) -> Iterator[GradientSum]:
    """Yield the sums of which gradients that go are operands, directly or in another shape."""
    names = {row.operation.name if row.operation else row.name for row in spared}
    for row in operations.rows if names else ():
        added = row.operation.sources if row.operation and row.type == SUM else ()
        sources = (flow.source(row.operation, at) for at in range(len(added)) if row.operation)
        number = sum(source is not None and source.name in names for source in sources)
        if number:
            yield GradientSum(row, 1.0 if len(added) - number <= 1 else number / len(added))


def _names(name: str, ran: Ran) -> set[str]:
    """Return the names of an operation, and of those that were fused with it."""
    return {name, *(row.operation.name for row in ran[name] if row.operation)}


def _equal(ran: Ran, program: Program) -> Iterator[Sequence[Operation]]:
    """Yield the forward operations of one graph that ran and have equal values, in the order of the graph.

    Those that only read a variable compute nothing.
    """
    for _, graph in groupby(program.operations, key=lambda operation: operation.graph):
        members = tuple(graph)
        values = values_of(members)
        found: dict[int, list[Operation]] = defaultdict(list)
        for one in members:
            computes = one.sources and not VARIABLE.search(one.type)
            in_step = program.by_name[one.name] is one and one.name in ran
            if in_step and computes and not GRADIENT.search(one.name):
                found[values[one.name]].append(one)
        yield from (same for same in found.values() if len(same) > 1)


def _gradients(operations: Operations) -> Ran:
    """Return the operations of gradients by the forward operation that their scope names."""
    found: dict[str, list[OperationTime]] = defaultdict(list)
    for row in operations.rows:
        before, scope, name = row.name.partition(GRADIENT_SCOPE)
        parts = name.split("/") if scope and not before else []
        for end in range(1, len(parts)):
            found["/".join(parts[:end])].append(row)
    return found
