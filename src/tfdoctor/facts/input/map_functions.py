"""What the functions of the pipeline's maps compute for each element."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from tfdoctor.facts.input.function_graphs import FunctionGraphs, tensor_bytes
from tfdoctor.facts.run.program import Dataset, Program

GIVEN = frozenset(("Placeholder", "Const", "Identity", "NoOp"))  # Types of operations that compute nothing
# Kinds of datasets that may lie between a map and its batch, because they pass on single elements.
BETWEEN = frozenset(
    ("Map", "ParallelMap", "Prefetch", "Options", "Shuffle", "Repeat", "Cache", "Take", "Skip")
)  # fmt: skip

# Operations that take one item, draw random numbers, or compute more than they write.
NOT_VECTORIZABLE = re.compile(
    r"(?=\w*\Z)(?:(?:Decode(?!CSV|Raw|PaddedRaw)|Encode|Extract|Sample|NonMax)\w*|\w*(?:File|PyFunc)\w*|\w*Random\w*"
    r"|\w*(?:MatMul|Conv|FFT|Resize|Pool|Einsum|Svd|Qr|Cholesky)\w*|\w*(?:While|If|Case|For)"
    r"|Unique\w*|Where|StringSplit\w*|\w*Dataset\w*|ParseTensor|\w*Call|\w*Multinomial|Rng\w*)"
)

# Parts of an element_spec of elements that differ in shape.
OPEN = re.compile(r"shape=\([^)]*None|<unknown>|Ragged|Sparse|Variant|Dataset")


@dataclass(frozen=True, slots=True)
class MapFunction:
    """One function: the types of its operations, and the bytes that they write for each element.

    ``nbytes`` is None where a shape is open. ``batch`` is how many of its results the next batch
    takes; 0 where none follows. ``fixed`` says that all its input elements have the same shape, as far as the
    record tells.
    """

    types: frozenset[str]
    nbytes: int | None
    batch: int = 0
    fixed: bool = True

    @property
    def single(self) -> tuple[str, ...]:
        """The types of operations that may gain nothing from whole batches."""
        return tuple(sorted(name for name in self.types if NOT_VECTORIZABLE.fullmatch(name)))


@dataclass(frozen=True, slots=True)
class MapFunctions:
    """The functions by the id of their dataset, without those whose names are ambiguous."""

    by_dataset: Mapping[int, MapFunction] = field(default_factory=dict)

    @classmethod
    def measure(cls, program: Program, graphs: FunctionGraphs) -> Self:
        """Read the recorded graph of each map's function."""
        functions, specs = {}, {one.id: one.element for one in program.datasets}
        for dataset in program.datasets:
            graph = graphs.of(dataset)
            if graph is None:
                continue
            working = [one for one in graph.operations if one.type not in GIVEN]
            written = [tensor_bytes(*output) for one in working for output in one.outputs]
            spec = next((specs[number] for number in specs if number in dataset.inputs), "")
            functions[dataset.id] = MapFunction(
                types=frozenset(one.type for one in working) | (dataset.types or set()) - GIVEN,
                nbytes=None if None in written else sum(size or 0 for size in written),
                batch=_batch(dataset, program),
                fixed=bool(spec) and not OPEN.search(spec),
            )
        return cls(functions)


def _batch(dataset: Dataset, program: Program) -> int:
    """Return the size of the batch that takes a map's results one by one, or 0."""
    consumers = {source: one for one in reversed(program.feeding) for source in one.inputs}
    consumer = consumers.get(dataset.id)
    while consumer is not None:
        kind = consumer.kind.strip("_")
        if kind.startswith(("BatchDataset", "ParallelBatchDataset")):
            return consumer.parameters.batch_size or 0
        if kind.partition("Dataset")[0] not in BETWEEN:
            return 0
        consumer = consumers.get(consumer.id)
    return 0
