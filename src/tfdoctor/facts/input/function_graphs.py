"""The graphs of the functions that the pipeline's maps run, by their dataset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import WIDTHS, Dataset, Places, Program
from tfdoctor.recording import Recording
from tfdoctor.recording.program import RecordedGraph, RecordedOperation
from tfdoctor.terms.verdict import Location

NAMED = "Dataset_map_"  # The prefix of tf.data's name for the graph of a map's function


@dataclass(frozen=True, slots=True)
class FunctionGraphs:
    """The graphs by the id of their dataset, without those whose names are ambiguous."""

    by_dataset: Mapping[int, RecordedGraph] = field(default_factory=dict)
    place: Places = field(default_factory=Places)

    @classmethod
    def measure(cls, program: Program, recording: Recording) -> Self:
        """Match the recorded graphs of maps with the datasets, by the function's name.

        Raises:
            Unavailable: the record has no such graph.
        """
        graphs: dict[str, list[RecordedGraph]] = {}
        for graph in recording.program.graphs if recording.program else ():
            if graph.kind == "dataset" and graph.name.startswith(NAMED):
                graphs.setdefault(graph.name.removeprefix(NAMED), []).append(graph)
        if not graphs:
            raise Unavailable("the functions of the pipeline's maps were not recorded")
        names = {dataset.id: dataset.function.strip("<>") for dataset in program.datasets}
        # A function may be mapped over training and test data: then its graphs compute the same.
        forms = {
            name: {tuple((op.name, op.type, op.at, op.outputs) for op in graph.operations) for graph in found}
            for name, found in graphs.items()
        }
        matched = {number: graphs[name][0] for number, name in names.items() if len(forms.get(name, ())) == 1}
        return cls(matched, Places.of(recording))

    def of(self, dataset: Dataset | None) -> RecordedGraph | None:
        """Return the graph of a dataset's function; None is unknown."""
        return self.by_dataset.get(dataset.id) if dataset else None

    def at(self, operation: RecordedOperation) -> Location | None:
        """Return the user's line of an operation."""
        return self.place(operation.at)


def tensor_bytes(dtype: str, shape: Sequence[int | None] | None) -> int | None:
    """Return a tensor's bytes; texts and handles count nothing, open shapes are None."""
    if dtype not in WIDTHS:
        return 0
    if shape is None or None in shape:
        return None
    return WIDTHS[dtype] * prod(size or 0 for size in shape)


# Operations that call functions, whose operations are recorded with the function only as types.
CONTROL = frozenset(
    ("If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase", "PartitionedCall",
     "StatefulPartitionedCall", "MapDefun")
)  # fmt: skip
