"""Work that a step does again: results that it has already, or that are the same in every step."""

from itertools import groupby
from typing import NamedTuple

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE
from tfdoctor.facts.run.operation_types import READS
from tfdoctor.facts.savings.layer_work import values_of
from tfdoctor.rules.repeated_computation.unassigned import Unassigned
from tfdoctor.trace.names import GRADIENT

# Operations that take no longer than reading their stored result.
FILLS = frozenset(("Fill", "ZerosLike", "OnesLike", "Const", "HostConst", "Identity"))

# Operations that only move elements, as the methods of a library do with the result that the user keeps.
MOVES = frozenset((
    "MatrixBandPart", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "Transpose", "Reshape",
    "ExpandDims", "Squeeze", "Slice", "StridedSlice", "GatherV2", "ConcatV2", "Pack", "Unpack", "Cast",
))  # fmt: skip

SUM = "AddN"  # The operation that adds up the gradients of one tensor, or of one weight


class GradientSum(NamedTuple):
    """A sum of gradients, of which some are those of later computations."""

    row: OperationTime
    spared: float  # the share of its operands that go, 0 to 1; 1 where a single one remains


@dataclass(frozen=True, slots=True)
class Repeat:
    """Operations that compute again what the ones of another line have computed in the same step."""

    first: Location | None
    again: Location | None
    rows: tuple[OperationTime, ...]  # of the later computation, forward
    gradients: tuple[OperationTime, ...] = ()  # of these
    sums: tuple[GradientSum, ...] = ()  # of these gradients and others

    @property
    def ms(self) -> float:
        """Their time with that of their gradients, and of adding these up, in ms per step."""
        sums_ms = sum(row.ms * spared for row, spared in self.sums)
        return sum(row.ms for row in self.rows) + (sum(row.ms for row in self.gradients) + sums_ms)

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
    def measure(cls, operations: Operations, program: Program, dataflow: Dataflow) -> Self:
        """Number the values of each graph, and compare those of the operations that ran.

        TensorFlow merges equal operations by itself where they read no variable. Gradients that compute a forward
        result again do so to save memory (tf.recompute_grad): they are no repetition.
        """
        ran: dict[str, list[OperationTime]] = defaultdict(list)
        for row in operations.rows:  # without instructions of XLA's
            if row.name in program.by_name and not (row.operation and row.operation.compiled):
                ran[row.name].append(row)
        repeats = _repeats(ran, dataflow, operations)
        constants = _constants(ran, dataflow, Unassigned(dataflow, operations))
        return cls(
            tuple(sorted(repeats, key=lambda one: -one.ms)), tuple(sorted(constants, key=lambda one: -one.ms))
        )

    @property
    def ms(self) -> float:
        """The time of all of it, in ms per step."""
        return sum(one.ms for one in self.repeats) + sum(one.ms for one in self.constants)


# The operations that ran, by their name in the graph. One that was fused with others has the name of the last.
Ran = Mapping[str, Sequence[OperationTime]]


def _constants(ran: Ran, dataflow: Dataflow, kept: Unassigned) -> Iterator[Constant]:
    """Yield the operations that depend on nothing that changes, by their lines.

    Of those that depend on variables only the ones count that the user's line calls itself, and that compute: what
    a layer of Keras or an optimizer computes of its variables cannot be moved.
    """
    lines: dict[Location | None, list[str]] = defaultdict(list)
    for name in ran:
        made = dataflow.program.by_name[name]
        if made.type not in FILLS and not READS.search(made.type) and not GRADIENT.search(name):
            own = made.direct and not made.origin and made.type not in MOVES
            if (own and kept.reads(name)) or not dataflow.sources(name):
                lines[made.at].append(name)
    for at, names in lines.items():
        reads = dict.fromkeys(read.at for name in names for read in kept.reads(name) if read.at)
        yield Constant(at, tuple(row for name in names for row in ran[name]), tuple(reads))


def _repeats(ran: Ran, dataflow: Dataflow, operations: Operations) -> Iterator[Repeat]:
    """Yield the operations that compute again, by the lines of the first and the later computation.

    Operations of one line are told apart by those that call its function. Gradients of later computations go where
    the first one has such gradients, too. One gradient remains: that of a discriminator's generated images is
    needed, if only the generator's step has it.
    """
    lines: dict[tuple[Location | None, Location | None], list[tuple[str, str]]] = defaultdict(list)
    for first, *later in _equal(ran, dataflow.program):
        for one in later:
            alike = first.at == one.at
            at = (first.by or first.at, one.by or one.at) if alike else (first.at, one.at)
            lines[at].append((first.name, one.name))
    gradients: dict[str, list[OperationTime]] = defaultdict(list)  # by each scope that they are in
    for row in operations.rows:
        parts = row.name.removeprefix(GRADIENT_SCOPE).split("/") if row.name.startswith(GRADIENT_SCOPE) else []
        for end in range(1, len(parts)):
            gradients["/".join(parts[:end])].append(row)

    def named(name: str) -> set[str]:  # with those that were fused with it
        return {name, *(row.operation.name for row in ran[name] if row.operation)}

    for (first_at, again), pairs in lines.items():
        rows = tuple(row for _, name in pairs for row in ran[name])
        both = [later for one, later in pairs if not gradients.keys().isdisjoint(named(one))]
        spared = tuple(row for later in both for name in named(later) for row in gradients.get(name, ()))
        yield Repeat(first_at, again, rows, spared, tuple(_sums(spared, dataflow, operations)))


def _sums(spared: Iterable[OperationTime], dataflow: Dataflow, operations: Operations) -> Iterator[GradientSum]:
    """Yield the sums of which gradients that go are operands, directly or in another shape."""
    names = {row.operation.name if row.operation else row.name for row in spared}
    for row in operations.rows if names else ():
        added = row.operation.sources if row.operation and row.type == SUM else ()
        sources = (dataflow.source(row.operation, at) for at in range(len(added)) if row.operation)
        number = sum(source is not None and source.name in names for source in sources)
        if number:
            yield GradientSum(row, 1.0 if len(added) - number <= 1 else number / len(added))


def _equal(ran: Ran, program: Program) -> Iterator[Sequence[Operation]]:
    """Yield the forward operations of one graph that ran and have equal values, in the order of the graph.

    Those that only read a variable compute nothing.
    """
    for _, graph in groupby(program.operations, key=lambda operation: operation.graph):
        members = tuple(graph)
        values = values_of(members)
        found: dict[int, list[Operation]] = defaultdict(list)
        for one in members:
            in_step = program.by_name[one.name] is one and one.name in ran
            if in_step and one.sources and not READS.search(one.type) and not GRADIENT.search(one.name):
                found[values[one.name]].append(one)
        yield from (same for same in found.values() if len(same) > 1)
