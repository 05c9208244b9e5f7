"""The run's program: operations, layers, datasets and settings, as the agent recorded them.

Rules may not see the recording: they get, and build in cases, lines as reports show them and operations by name.
"""

from dataclasses import fields
from graphlib import CycleError, TopologicalSorter
from itertools import islice

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording import program as recorded
from tfdoctor.recording.manifest import MissingPart
from tfdoctor.recording.program import (
    Attributes,
    DatasetParameters,
    FileList,
    LayerConfig,
    RecurrentArguments,
    RunSettings,
    SourceLine,
    TensorType,
    Zeros,
)
from tfdoctor.trace.names import GRADIENT

__all__ = [
    "Attributes", "Dataset", "DatasetParameters", "FileList", "KerasPart", "Layer", "LayerConfig", "Metric",
    "Operation", "Places", "Program", "RecurrentArguments", "RunSettings", "Zeros",
]  # fmt: skip

Shape = tuple[int | None, ...]
Tensor = TensorType
Layer = recorded.AnyLayer[Location]
Metric = recorded.AnyMetric[Location]

MOST_DATASETS = 200  # Stages of a pipeline that are read: a long one has 20
# Bytes of one element.
WIDTHS = {
    "float64": 8, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16,
    "float32": 4, "int32": 4, "uint32": 4,
    "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2,
    "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
FOREVER = -1  # tf.data's cardinality of an infinite dataset
# Kinds that yield at most as many elements as they take.
NON_EXPANDING = frozenset(
    ("Map", "ParallelMap", "Shuffle", "Prefetch", "Cache", "Options", "Filter", "Take", "Shard", "Skip")
)  # fmt: skip


class KerasPart(Record):
    """A part of Keras that is no layer: a metric, a loss, an optimizer, a regularizer, gradient clipping."""

    kind: str
    name: str = ""  # its class or function: "AUC"; "" is unknown


class Operation(recorded.AnyOperation[Location]):
    """One operation of a traced graph; ``sources`` name those that make its inputs, () when not recorded."""

    sources: tuple[str, ...] = ()
    compiled: bool = False  # an instruction of XLA's, which may hold several of the program's
    zeros: Zeros | None = None  # of the matrix that it holds, where it is a captured one
    separable: bool = False  # a constant kernel, each channel of which is a column times a row
    origin: KerasPart | None = None  # the part of Keras that made it, where no layer did
    graph: int = 0  # the number of its graph in the program: names are of one graph
    captured: bool = False  # a placeholder whose tensor is the same in every call


class Dataset(recorded.AnyDataset[Location]):
    """One dataset as the user wrote it."""

    function: str = ""
    function_at: Location | None = None
    python: bool = False  # its function runs Python for every element
    types: frozenset[str] | None = None  # of its function's operations; None: not recorded
    stateful: frozenset[str] | None = None  # those of them whose result may change each time
    element: str = ""  # its element_spec

    @classmethod
    def of(cls, one: recorded.RecordedDataset, place: "Places") -> Self:
        """Take it from the record."""
        same, function = _shown(one, place), one.function or recorded.RecordedFunction()
        same |= {"function": function.name, "function_at": place(function.at)}
        same |= {name: getattr(function, name) for name in ("python", "types", "stateful")}
        return cls(element=same.pop("element_spec"), **same)


class Program(Record, eq=False, dict=True):
    """The operations, layers and datasets that the run built, and its settings."""

    operations: tuple[Operation, ...] = ()
    layers: tuple[Layer, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    feeds: int | None = None
    input_kind: str = ""
    zeros_recorded: bool = False  # whether captured matrices were looked at
    settings: RunSettings = RunSettings()
    metrics: tuple[Metric, ...] = ()
    trains: int | None = None  # how many of the first operations belong to functions that take gradients
    batches_at: Location | None = None  # defines how the PyDataset that feeds fit makes a batch
    fit_at: Location | None = None  # calls fit

    @classmethod
    def measure(cls, recording: Recording, framework: Framework) -> Self:
        """Read the program record.

        Raises:
            Unavailable: the trace was not recorded by tfdoctor, or the hook could not record it.
        """
        record = recording.program
        if record is None and framework.foreign:
            raise Unavailable(f"the program of a run of {framework.title} is not recorded")
        if record is None and recording.run is not None:
            missing = recording.manifest.missing if recording.manifest else ()
            said = (gap.why for gap in missing if gap.what == MissingPart.PROGRAM)
            raise Unavailable(next(said, "the run built no operations, layers or datasets of TensorFlow"))
        if record is None:
            why = "the trace does not contain the program (shapes, layers, lines)"
            raise Unavailable(why + "; record with `tfdoctor profile`")
        training, place = _training(record), Places.of(recording)
        datasets = [Dataset.of(one, place) for one in record.datasets]
        circular = False  # as in a damaged record
        try:
            TopologicalSorter({dataset.id: dataset.inputs for dataset in datasets}).prepare()
        except CycleError:
            circular = True
        # Evaluation repeats names: the graphs of gradients come first, then those around and inside them.
        graphs = sorted(
            (graph for graph in record.graphs if graph.kind != "dataset"),
            key=lambda graph: (not _has_gradients(graph), graph.name not in training),
        )
        return cls(
            operations=tuple(_operations(graphs, place, record.run.fit_at)),
            layers=tuple(Layer(**_shown(layer, place)) for layer in record.layers or ()),
            datasets=tuple(replace(one, inputs=()) if circular else one for one in datasets),
            metrics=tuple(Metric(**_shown(metric, place)) for metric in record.metrics),
            feeds=record.feeds, input_kind=record.input_kind, settings=record.run,
            zeros_recorded=any(graph.zeros is not None for graph in record.graphs),
            trains=sum(len(graph.operations) for graph in graphs if graph.name in training),
            batches_at=place(record.run.batches_at), fit_at=place(record.run.fit_at),
        )  # fmt: skip

    @property
    def training(self) -> tuple[Operation, ...]:
        """The operations of the functions that take gradients; all where no function does."""
        return self.operations[: self.trains] if self.trains else self.operations

    @cached_property
    def by_name(self) -> Mapping[str, Operation]:
        """The operations by name; where graphs share a name, the training graph's comes first."""
        return {name: self.operations[at] for name, at in self.position.items()}

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The index in ``operations`` of each name; neighbours there are neighbours in the graph."""
        positions: dict[str, int] = {}
        for at, operation in enumerate(self.operations):
            positions.setdefault(operation.name, at)
        return positions

    @cached_property
    def layer_by_name(self) -> Mapping[str, Layer]:
        """The layers by name, without names that layers of different lines share."""
        layers = {layer.name: layer for layer in self.layers[::-1]}
        shared = {layer.name for layer in self.layers if layer.at != layers[layer.name].at}
        return {layer.name: layers[layer.name] for layer in self.layers if layer.name not in shared}

    @property
    def first_line(self) -> Location | None:
        """The line of the first layer: what holds for all layers has to be set before it."""
        return next((layer.at for layer in self.layers if layer.at), None)

    def line_of(self, operation: Operation | None) -> Location | None:
        """Return the line that chose an operation: its own where it calls no layer, else its layer's."""
        if operation is None or (operation.direct and operation.at):
            return operation.at if operation else None
        layer = self.layer_by_name.get(operation.layer)
        return (layer.at if layer else None) or operation.at

    def lines_of(self, operation: Operation | None) -> tuple[Location, ...]:
        """Return the lines that lead to an operation: the one that chose it, and then from the inside outwards."""
        if operation is None:
            return ()
        lines = self.line_of(operation), operation.at, operation.by, *operation.around
        return tuple(dict.fromkeys(line for line in lines if line))

    def metrics_of(self, origin: KerasPart | None) -> tuple[Metric, ...]:
        """Return the metrics of a class that made an operation; () where none is known."""
        if origin is None or origin.kind != "metric" or not origin.name:
            return ()
        return tuple(metric for metric in self.metrics if origin.name in metric.classes)

    @property
    def batch_size(self) -> int | None:
        """The examples per step: from fit, else from the last batch(); None is unknown."""
        sizes = [self.settings.batch_size]
        sizes += [dataset.parameters.batch_size for dataset in self.feeding]
        return next((size for size in sizes if size), None)

    @cached_property
    def feeding(self) -> tuple[Dataset, ...]:
        """The dataset that feeds the training loop and all datasets upstream, consumers first."""
        first = () if self.feeds is None else (self.feeds,)
        return tuple(islice(upstream_of(self.datasets, first), MOST_DATASETS))

    def shape(self, shape: Shape | None) -> tuple[int, ...] | None:
        """Fill the open batch dimension of a shape; None when another dimension is open."""
        if shape is None:
            return None
        first = self.batch_size if shape and shape[0] is None else None
        full = (first, *shape[1:]) if first is not None else shape
        return None if None in full else tuple(int(size or 0) for size in full)

    def nbytes(self, tensor: Tensor) -> int | None:
        """Return the bytes of a tensor, or None when its shape is not known."""
        shape, width = self.shape(tensor[1]), WIDTHS.get(tensor[0])
        return None if shape is None or width is None else prod(shape) * width


def _training(record: recorded.ProgramRecord) -> frozenset[str]:
    """Return the names of the graphs that compute gradients, and of those around and inside them."""
    outer = {graph.name: graph.outer for graph in record.graphs if graph.outer != graph.name}

    def outermost(name: str) -> str:
        seen = {name}
        while (above := outer.get(name)) and above not in seen:
            seen.add(name := above)
        return name

    roots = {outermost(graph.name) for graph in record.graphs if _has_gradients(graph)}
    return frozenset(graph.name for graph in record.graphs if outermost(graph.name) in roots)


def _has_gradients(graph: recorded.RecordedGraph) -> bool:
    return any("gradient" in operation.name for operation in graph.operations)


class Places(Record):
    """Turns recorded lines into locations, relative to the first of these folders that contains them."""

    folders: tuple[str, ...] = ()

    @classmethod
    def of(cls, recording: Recording) -> Self:
        """Take the folders from the manifest."""
        return cls(recording.manifest.folders if recording.manifest else ())

    def __call__(self, line: SourceLine | None) -> Location | None:
        """Return the location of a line, or None."""
        return Location(self.shown(line[0]), line[1]) if line else None

    def shown(self, path: str) -> str:
        """Return a path relative to the first folder that contains it, otherwise as it is."""
        above = (f"{folder.rstrip('/')}/" for folder in self.folders)
        folder = next((folder for folder in above if path.startswith(folder)), "")
        return path.removeprefix(folder)


def _shown(record: Any, place: Places) -> dict[str, Any]:
    values = {one.name: getattr(record, one.name) for one in fields(record)}
    return values | {name: place(values[name]) for name in ("at", "by") if name in values}


def _operations(
    graphs: list[recorded.RecordedGraph], place: Places, fit_at: SourceLine | None
) -> Iterator[Operation]:
    """Yield the operations of graphs; the line of fit calls none itself, but Keras' loss and optimizer do."""
    for number, graph in enumerate(graphs):
        names = [one.name for one in graph.operations]
        zeros = {matrix.name: matrix for matrix in graph.zeros or ()}
        separable = {kernel.name for kernel in graph.kernels if kernel.separable}
        for one in graph.operations:
            same = _shown(one, place)
            same["around"] = tuple(at for line in one.around if (at := place(line)))
            same["direct"] = one.direct and not GRADIENT.search(one.name) and (fit_at is None or one.at != fit_at)
            same["origin"] = KerasPart(*one.origin) if one.origin else None
            inside = (at if at is not None and 0 <= at < len(names) else -1 for at in one.sources)
            same["sources"] = tuple("" if at < 0 else names[at] for at in inside)
            same |= {"separable": one.name in separable, "zeros": zeros.get(one.name)}
            yield Operation(graph=number, captured=one.name in graph.captured, **same)


def kind_of(dataset: Dataset) -> str:
    """Return what a dataset does, whatever TensorFlow's version calls its class: "ParallelMap"."""
    return re.sub(r"^_|Dataset(V\d)?$", "", dataset.kind)


def upstream_of(chain: Iterable[Dataset], ids: Iterable[int]) -> Iterator[Dataset]:
    """Yield the datasets of these ids and all upstream of them, nearest first."""
    by_id, ahead = {dataset.id: dataset for dataset in chain}, [*ids]
    while ahead:
        if dataset := by_id.pop(ahead.pop(0), None):
            yield dataset
            ahead.extend(dataset.inputs)


def line_of(chain: Sequence[Dataset], end: Dataset | None = None) -> tuple[Dataset, ...]:
    """Return the datasets from the trainer, or ``end``, to the source, or to where several sources meet."""
    by_id = {dataset.id: dataset for dataset in chain}
    line = [end] if end is not None else list(chain[:1])
    while line and len(line[-1].inputs) == 1 and line[-1].inputs[0] in by_id:
        line.append(by_id[line[-1].inputs[0]])
    return tuple(line)


def batches_of(line: Sequence[Dataset]) -> float | None:
    """Return the batches of one pass over what is repeated, or over all where nothing is; None is unknown."""
    repeats = [at for at, stage in enumerate(line) if kind_of(stage) == "Repeat"]
    begin, size = (repeats[-1] + 1 if repeats else 0), 1.0
    for at, stage in enumerate(line):
        if at >= begin and stage.cardinality not in {None, FOREVER}:
            return max(1.0, (stage.cardinality or 0) / size)
        if kind_of(stage).endswith("Batch"):
            size *= stage.parameters.batch_size or 1
        elif kind_of(stage) not in NON_EXPANDING | {"Repeat"}:
            return None
    return None
