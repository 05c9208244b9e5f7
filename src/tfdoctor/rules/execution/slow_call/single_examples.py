"""The tf.functions that were traced for one example."""

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording


class SingleExamples(Record):
    """The names of tf.functions that were traced for one example, for no batch, and update no variable.

    The first dimensions of all their array arguments are 1, or open in some of the graphs: an open one alone serves
    both. What updates variables is left out, since the next call needs this one's result.
    """

    names: frozenset[str] = frozenset()

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Read the graphs that were recorded."""
        firsts, types = defaultdict[str, list[set[int | None]]](list), defaultdict[str, set[str]](set)
        for graph in recording.program.graphs if recording.program else ():
            if graph.kind == "function" and graph.name and not graph.outer:
                types[graph.name] |= {operation.type for operation in graph.operations}
                given = (
                    one for one in graph.operations if one.type == "Placeholder" and one.name not in graph.captured
                )
                shapes = [shape for one in given if one.outputs and (shape := one.outputs[0][1])]
                # A vector may be anything.
                firsts[graph.name].append({s[0] if len(s) > 1 or s[0] in {1, None} else 0 for s in shapes})
        return cls(
            frozenset(
                name
                for name, found in firsts.items()
                if {1} in found and set[int | None]().union(*found) <= {1, None}
                if not any(map(UPDATES.fullmatch, types[name]))
            )
        )
