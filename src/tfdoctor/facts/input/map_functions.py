"""What the functions of the pipeline's maps compute for each element."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import WIDTHS, Dataset, Program
from tfdoctor.recording import Recording
from tfdoctor.recording.program import RecordedGraph

GIVEN = frozenset(("Placeholder", "Const", "Identity", "NoOp"))
"""Types of operations that compute nothing."""

NAMED = "Dataset_map_"
"""How tf.data begins the name of the graph of a map's function."""

BETWEEN = frozenset(
    ("Map", "ParallelMap", "Prefetch", "Options", "Shuffle", "Repeat", "Cache", "Take", "Skip")
)  # fmt: skip
"""Kinds of datasets that may stand between a map and its batch, which take single elements as they are."""

OPEN = re.compile(r"shape=\([^)]*None|<unknown>|Ragged|Sparse|Variant|Dataset")
"""What an element_spec says of elements that differ in shape."""


@dataclass(frozen=True, slots=True)
class MapFunction:
    """One function: the types of its operations, and the bytes that they write for each element.

    ``nbytes`` is None where a shape is open. ``batch`` is how many of its results the next batch
    takes; 0 where none follows. ``fixed`` says that all elements that it takes are of one shape.
    """

    types: frozenset[str]
    operations: int
    nbytes: int | None
    batch: int = 0
    fixed: bool = True


@dataclass(frozen=True, slots=True)
class MapFunctions:
    """The functions by the number of their dataset; those that could not be told apart are missing."""

    by_dataset: Mapping[int, MapFunction] = field(default_factory=dict)

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
            raise Unavailable("what the functions of the pipeline's maps compute is not recorded")
        found = {
            one.id: _function(graphs[name][0], one, program)
            for one in program.datasets
            if len(graphs.get(name := one.function.strip("<>"), ())) == 1
        }
        return cls(found)


def _function(graph: RecordedGraph, dataset: Dataset, program: Program) -> MapFunction:
    working = [operation for operation in graph.operations if operation.type not in GIVEN]
    written = [_nbytes(*output) for operation in working for output in operation.outputs]
    return MapFunction(
        types=frozenset(operation.type for operation in working)
        | (dataset.types or frozenset()) - GIVEN,
        operations=len(working),
        nbytes=None if None in written else sum(size or 0 for size in written),
        batch=_batch(dataset, program),
        fixed=_fixed(dataset, program),
    )


def _nbytes(dtype: str, shape: Sequence[int | None] | None) -> int | None:
    """Return a tensor's bytes; texts and handles count nothing, open shapes are None."""
    if dtype not in WIDTHS:
        return 0
    if shape is None or None in shape:
        return None
    return WIDTHS[dtype] * prod(size or 0 for size in shape)


def _batch(dataset: Dataset, program: Program) -> int:
    """Return the size of the batch that takes a map's results one by one, or 0."""
    for one in _consumers(dataset, program):
        if one.kind.strip("_").startswith(("BatchDataset", "ParallelBatchDataset")):
            return one.parameters.batch_size or 0
        if one.kind.strip("_").partition("Dataset")[0] not in BETWEEN:
            return 0
    return 0


def _consumers(dataset: Dataset, program: Program) -> Iterator[Dataset]:
    """Yield what takes a dataset's elements, nearest first."""
    current: Dataset | None = dataset
    while current is not None:
        current = next((one for one in program.feeding if current.id in one.inputs), None)
        if current is not None:
            yield current


def _fixed(dataset: Dataset, program: Program) -> bool:
    """Whether all elements that a map takes have the same shape, as far as the record tells."""
    spec = next((one.element for one in program.datasets if one.id in dataset.inputs), "")
    return bool(spec) and not OPEN.search(spec)
