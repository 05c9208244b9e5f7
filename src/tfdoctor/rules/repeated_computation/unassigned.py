"""Values that depend only on constants and on variables that no operation of the program assigns."""

from functools import cached_property

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.dataflow import of_metric
from tfdoctor.facts.run.operation_types import READS, UPDATES
from tfdoctor.facts.run.program import Tensor

ASSIGN = "AssignVariableOp"  # What ``variable.assign`` runs, in a graph or outside of any
# The beginning of the types of writes that do not show the variable's shape: of parts of it, or by its moments.
ANY = "Resource"
Handle = tuple[int, str]  # A variable, as one graph knows it: the number of the graph, and the name there


@dataclass(frozen=True, eq=False)
class Unassigned:
    """The values of a program that stay the same unless Python assigns a variable between two steps."""

    dataflow: Dataflow
    operations: Operations

    def reads(self, name: str) -> tuple[Operation, ...]:
        """Return the reads of variables that an operation depends on besides constants; () if on anything else.

        Nor may one of the variables be trained.
        """
        reads = self._reads.get(name) or frozenset()
        built = self.dataflow.program.by_name
        trained = any(_handle(built[one]) in self._trained for one in reads)
        return () if trained else tuple(built[one] for one in sorted(reads))

    @cached_property
    def _reads(self) -> Mapping[str, frozenset[str] | None]:
        """The reads that each operation depends on, in the order of the graphs; None if it depends on more."""
        found: dict[str, frozenset[str] | None] = {}
        built = self.dataflow.program.by_name
        for name, one in built.items():
            read = bool(READS.search(one.type))
            values = one.sources[1:] if read else one.sources
            own = self._kept(one) if read else self.dataflow.adds(name) is None
            same = [source for source in values if source in built and built[source].graph == one.graph]
            before = [reads for source in same if (reads := found.get(source)) is not None]
            known = own and len(before) == len(values)
            found[name] = frozenset([name] if read else ()).union(*before) if known else None
        return found

    def _kept(self, read: Operation) -> bool:
        """Say whether nothing assigns a read variable.

        A graph that reads it by the same name at the same line was traced from the same code: TensorFlow traces a
        function twice whose first call creates variables. There, as in its own graph, its handle tells who assigns
        it; in other graphs its type and shape do.
        """
        graph, handle = _handle(read)
        made = self.dataflow.program.by_name.get(handle)
        argument = made is not None and made.type == "Placeholder" and made.graph == graph
        if not argument or not read.outputs or not self._assigns:
            return False
        same = self._traced[read.name, read.sources, read.at]
        if any((graph, handle) in self._used for graph in same):
            return False
        return not any(_may_write(one, read.outputs[0]) for one in self._assigns if one.graph not in same)

    @cached_property
    def _traced(self) -> Mapping[object, set[int]]:
        """The graphs that read a variable by the same names at the same line."""
        graphs: dict[object, set[int]] = defaultdict(set)
        for one in self.dataflow.program.operations:
            if READS.search(one.type):
                graphs[one.name, one.sources, one.at].add(one.graph)
        return graphs

    @cached_property
    def _used(self) -> frozenset[Handle]:
        """The variables that an operation takes that does not only read them: it writes or calls a function."""
        takers = (one for one in self.dataflow.program.operations if not READS.search(one.type))
        return frozenset((one.graph, source) for one in takers for source in one.sources)

    @cached_property
    def _assigns(self) -> tuple[Operation, ...]:
        """The writes of all graphs, but those of metrics; () where Python may assign what is trained.

        Where no graph writes, the optimizer runs between the calls of the step. Where a variable is assigned
        outside of the graphs in the traced steps, it is not known which.
        """
        program = self.dataflow.program
        if any(one.type == ASSIGN and one.name not in program.by_name for one in self.operations.rows):
            return ()
        return tuple(one for one in program.operations if UPDATES.fullmatch(one.type) and not of_metric(one))

    @cached_property
    def _trained(self) -> frozenset[Handle]:
        """The variables with a gradient: of an operation that depends on nothing else."""
        built = self.dataflow.program.by_name
        given = self.dataflow.gradients.keys() & self._reads.keys()
        return frozenset(_handle(built[read]) for name in given for read in self._reads[name] or ())


def _handle(read: Operation) -> Handle:
    return read.graph, read.sources[0] if read.sources else ""


def _may_write(write: Operation, value: Tensor) -> bool:
    """Say whether a write in another graph may assign a variable of this type and shape."""
    values = [tensor for tensor in write.inputs if tensor[0] != "resource"]
    if write.type.startswith(ANY):
        return not values or any(tensor[0] == value[0] for tensor in values)
    return not values or any(_alike(tensor, value) for tensor in values)


def _alike(one: Tensor, other: Tensor) -> bool:
    """Say whether two tensors may have the same type and shape."""
    if one[0] != other[0] or one[1] is None or other[1] is None:
        return one[0] == other[0]
    same_rank = len(one[1]) == len(other[1])
    return same_rank and all(a == b or a is None or b is None for a, b in zip(one[1], other[1], strict=True))
