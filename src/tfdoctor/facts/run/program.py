"""What the run built: operations, layers, datasets and settings, as the hook recorded them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording import Recording
from tfdoctor.verdict import Location

Shape = tuple[int | None, ...]
Tensor = tuple[str, Shape | None]
"""dtype and shape; None in a shape is a dimension the graph left open, a None shape any rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of a traced graph; ``sources`` name those that make its inputs, () when not recorded."""

    name: str
    type: str
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    layer: str = ""
    at: Location | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One Keras layer and the line of the user's source that made it."""

    name: str
    kind: str  # the class: "BatchNormalization"
    module: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    compute_dtype: str = ""
    at: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One dataset as the user wrote it."""

    id: int
    kind: str  # the class: "_MapDataset"
    inputs: tuple[int, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    function: str = ""
    function_at: Location | None = None
    python: bool = False  # its function runs Python for every element
    trace_name: str = ""  # "MapDataset:4", as the iterators of the trace are called
    at: Location | None = None
    types: frozenset[str] | None = None  # of its function's operations; None: not recorded
    stateful: frozenset[str] | None = None  # of those, what may give something else each time
    element: str = ""  # its element_spec in words, at most 500 characters
    cardinality: int | None = None  # elements; -1 infinite, None unknown
    options: Mapping[str, Any] | None = None  # tf.data options that were set; None: not recorded
    files: Mapping[str, Any] | None = None  # {count, scheme, bytes}: the paths it yields or reads


@dataclass(frozen=True, eq=False)
class Program:
    """What the run built.

    ``settings`` holds precision policy, optimizer, jit_compile, strategy, batch_size, ... as
    recorded; a missing key is unknown.
    """

    operations: tuple[Operation, ...] = ()
    layers: tuple[Layer, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    feeds: int | None = None
    input_kind: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def measure(cls, recording: Recording, framework: Framework) -> Self:
        """Read the program record.

        Raises:
            Unavailable: the trace was not recorded by tfdoctor, or the hook could not record it.
        """
        record = recording.program
        if not record and framework.foreign:
            raise Unavailable(f"how a run of {framework.title} is built is not recorded")
        if not record:
            raise Unavailable(
                "the trace does not say what the program built (shapes, layers, lines); "
                "record the run with `tfdoctor profile`"
            )
        try:
            return cls._read(record, Places(recording.manifest.cwd if recording.manifest else ""))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise Unavailable(
                f"the program record is damaged ({error!r}); record the run again"
            ) from error

    @classmethod
    def _read(cls, record: Mapping[str, Any], place: "Places") -> Self:
        return cls(
            tuple(one for graph in _graphs(record) for one in _operations(graph, place)),
            tuple(_layer(layer, place) for layer in record.get("layers", ())),
            tuple(_dataset(dataset, place) for dataset in record.get("datasets", ())),
            record.get("feeds"),
            record.get("input_kind") or "",
            record.get("run") or {},
        )

    @cached_property
    def by_name(self) -> Mapping[str, Operation]:
        """The operations by name; where graphs share a name, the training graph's comes first."""
        return {name: self.operations[at] for name, at in self.position.items()}

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The index in ``operations`` of each name; neighbours there are neighbours in the graph."""
        found: dict[str, int] = {}
        for at, operation in enumerate(self.operations):
            found.setdefault(operation.name, at)
        return found

    @cached_property
    def layer_by_name(self) -> Mapping[str, Layer]:
        """The layers by name, but for names that several layers of different lines share."""
        found: dict[str, Layer] = {}
        shared: set[str] = set()
        for layer in self.layers:
            if layer.name in found and found[layer.name].at != layer.at:
                shared.add(layer.name)
            found.setdefault(layer.name, layer)
        return {name: layer for name, layer in found.items() if name not in shared}

    @property
    def batch_size(self) -> int | None:
        """How many examples a step trains on: as fit was told, else as the last batch() was; or None."""
        sizes = [self.settings.get("batch_size")]
        sizes += [dataset.parameters.get("batch_size") for dataset in self.feeding]
        return next((int(size) for size in sizes if size), None)

    @cached_property
    def feeding(self) -> tuple[Dataset, ...]:
        """The dataset that feeds the training loop and all that it is made of, consumers first."""
        by_id = {dataset.id: dataset for dataset in self.datasets}
        found: list[Dataset] = []
        ahead = [self.feeds] if self.feeds is not None else []
        while ahead:
            dataset = by_id.pop(ahead.pop(0), None)
            if dataset is not None:
                found.append(dataset)
                ahead.extend(dataset.inputs)
        return tuple(found)

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


WIDTHS = {
    "float64": 8, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16,
    "float32": 4, "int32": 4, "uint32": 4,
    "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2,
    "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
"""Bytes of one element."""


def _graphs(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the graphs, those that compute gradients first: evaluation repeats their names."""
    graphs = [graph for graph in record.get("graphs", ()) if graph.get("kind") != "dataset"]
    return sorted(
        graphs, key=lambda graph: not any("gradient" in op["name"] for op in graph["operations"])
    )


@dataclass(frozen=True, slots=True)
class Places:
    """Turns recorded lines into locations, relative to the folder that the run was started in."""

    cwd: str

    def __call__(self, raw: Any) -> Location | None:  # noqa: ANN401 - JSON
        """Return the location of [path, line], or None."""
        if not raw:
            return None
        return Location(str(raw[0]).removeprefix(f"{self.cwd}/" if self.cwd else ""), int(raw[1]))


def _tensors(raw: Iterable[Any]) -> tuple[Tensor, ...]:
    return tuple((dtype, None if shape is None else tuple(shape)) for dtype, shape in raw)


def _operations(graph: Mapping[str, Any], place: Places) -> Iterator[Operation]:
    rows = graph["operations"]
    names = [row["name"] for row in rows]
    for row in rows:
        yield _operation(row, place, names)


def _operation(raw: Mapping[str, Any], place: Places, names: Sequence[str]) -> Operation:
    return Operation(
        name=raw["name"],
        type=raw["type"],
        inputs=_tensors(raw.get("inputs", ())),
        outputs=_tensors(raw.get("outputs", ())),
        attrs=raw.get("attrs") or {},
        layer=raw.get("layer") or "",
        at=place(raw.get("at")),
        sources=tuple("" if at is None else names[at] for at in raw.get("from", ())),
    )


def _layer(raw: Mapping[str, Any], place: Places) -> Layer:
    return Layer(
        name=raw["name"],
        kind=raw["class"],
        module=raw.get("module") or "",
        config=raw.get("config") or {},
        compute_dtype=raw.get("compute_dtype") or "",
        at=place(raw.get("at")),
    )


def _names(raw: Iterable[str] | None) -> frozenset[str] | None:
    return None if raw is None else frozenset(raw)


def _dataset(raw: Mapping[str, Any], place: Places) -> Dataset:
    function = raw.get("function") or {}
    return Dataset(
        id=raw["id"],
        kind=raw["class"],
        inputs=tuple(raw.get("inputs", ())),
        parameters=raw.get("parameters") or {},
        function=function.get("name") or "",
        function_at=place(function.get("at")),
        python=bool(function.get("python")),
        trace_name=raw.get("trace_name") or "",
        at=place(raw.get("at")),
        types=_names(function.get("types")),
        stateful=_names(function.get("stateful")),
        element=raw.get("element_spec") or "",
        cardinality=raw.get("cardinality"),
        options=raw.get("options"),
        files=raw.get("files"),
    )
