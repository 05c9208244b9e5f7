"""The recorded graphs of the functions that the pipeline's maps run, by dataset."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.program import Dataset, Places, Program
from tfdoctor.recording.program import RecordedGraph, RecordedOperation

NAMED = "Dataset_map_"  # The prefix of tf.data's name for the graph of a map's function
MOST = 0.5  # Share of the time of a function's operations from which one of them stands for it


class FunctionGraphs(Record):
    """The graphs by the id of their dataset, without those whose names are ambiguous."""

    by_dataset: Mapping[int, RecordedGraph] = field(default_factory=dict)
    place: Places = field(default_factory=Places)

    @classmethod
    def measure(cls, program: Program, recording: Recording) -> Self:
        """Match the recorded graphs of maps with the datasets, by the function's name.

        Raises:
            Unavailable: the record has no such graph.
        """
        recorded = recording.program.graphs if recording.program else ()
        of_maps = (one for one in recorded if one.kind == "dataset" and one.name.startswith(NAMED))
        graphs = by_key((graph.name.removeprefix(NAMED), graph) for graph in of_maps)
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

    def slowest(self, dataset: Dataset | None, times: Mapping[str, float]) -> tuple[str, Location] | None:
        """Return the type of a function's operation that takes most of its operations' times, and its line."""
        graph = self.of(dataset)
        known = [(one, times[one.name]) for one in graph.operations if one.name in times] if graph else []
        operation, most = max(known, key=lambda one: one[1], default=(None, 0.0))
        at = self.at(operation) if operation and most > MOST * sum(times.values()) else None
        return (operation.type, at) if operation and at else None
