"""What compiled functions compute from none of the arguments of a call: the same in one call as in the next."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.operation_types import MATRIX_TYPES, OPAQUE, RANDOM, UPDATES
from tfdoctor.facts.run.program import Places
from tfdoctor.recording.program import RecordedGraph

# Operations that take most of a function's time where it has any.
HEAVY = MATRIX_TYPES | {"SparseTensorDenseMatMul", "SparseMatMul"}
ARGUMENT, VARIABLE = "Placeholder", "resource"


class ConstantPart(Record):
    """Products and convolutions of a function that depend on variables and constants alone, as far as one has them.

    ``lines`` are the user's, with the operation's type; ``share``, 0 to 1, is their number in that of all.
    """

    share: float
    lines: tuple[tuple[Location, str], ...]


class ConstantWork(Record):
    """The functions that have such a part, by name: all of their graphs have it. Those that update nothing."""

    parts: Mapping[str, ConstantPart]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Follow each function's arguments, random numbers and calls through its graph.

        Raises:
            Unavailable: no graph of a function was recorded.
        """
        recorded = recording.program.graphs if recording.program else ()
        graphs = by_key((graph.name, graph) for graph in recorded if graph.kind == "function" and not graph.outer)
        if not graphs:
            raise Unavailable("the graphs of the run's functions were not recorded")
        place, parts = Places.of(recording), dict[str, ConstantPart]()
        for name, own in graphs.items():
            found = [_part(graph, place) for graph in own]
            if all(found) and name:
                parts[name] = min((one for one in found if one), key=lambda part: part.share)
        return cls(parts)


def _part(graph: RecordedGraph, place: Places) -> ConstantPart | None:
    """Return what a graph computes from no argument; None where it updates a variable, or has no such part."""
    varies, heavy, constant = list[bool](), 0, list[tuple[Location, str]]()
    for at, operation in enumerate(graph.operations):
        kind, outputs = operation.type, operation.outputs
        if UPDATES.fullmatch(kind):
            return None
        argument = kind == ARGUMENT and operation.name not in graph.captured
        argument = argument and not (outputs and outputs[0][0] == VARIABLE)
        unknown = RANDOM.search(kind) or OPAQUE.search(kind) or None in operation.sources
        later = any(source is not None and source >= at for source in operation.sources)
        given = any(varies[source] for source in operation.sources if source is not None and source < at)
        varies.append(bool(argument or unknown or later or given))
        if kind in HEAVY:
            heavy += 1
            if not varies[at] and (line := place(operation.at)):
                constant.append((line, kind))
    return ConstantPart(len(constant) / heavy, tuple(constant)) if constant else None
