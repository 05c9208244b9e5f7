"""The pipeline's buffers, and how small the same elements are before or after other stages."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.facts.input.dataset_properties import DatasetProperties, repeatable
from tfdoctor.facts.run.passes import kind_of
from tfdoctor.facts.run.program import Dataset

ONE_TO_ONE = frozenset(
    ("Map", "ParallelMap", "Shuffle", "Prefetch", "Options", "Repeat", "Take", "Skip", "Shard", "Filter")
)  # fmt: skip
"""Kinds that pass on each element as one, so that a buffer may move past them."""

SHARED = frozenset(("TensorSlice", "Tensor", "Range", "Cache"))
"""Kinds whose elements are in memory already: a buffer holds references to them."""

CHEAP = frozenset(
    ("Cast", "Placeholder", "Const", "Identity", "NoOp", "Mul", "RealDiv", "Sub", "AddV2", "OneHot", "ExpandDims")
)  # fmt: skip
"""Types of operations that are not worth caching: they cost as much as reading the element."""

PATH_BYTES = 1024
"""An upper bound for the size of a file's path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A buffer of ``elements`` with ``each`` bytes, and ``least`` bytes where they are smallest.

    ``by`` is the stage that changes their size; None where they are nowhere smaller.
    """

    dataset: Dataset
    elements: int
    each: int
    least: int
    by: Dataset | None = None
    grows: bool = False  # the stage enlarges them before the buffer, else it shrinks them after it

    @property
    def nbytes(self) -> int:
        """The bytes of the full buffer."""
        return self.elements * self.each

    @property
    def spared(self) -> int:
        """The bytes saved by moving the buffer to the other side of the stage."""
        return self.elements * (self.each - self.least)

    @property
    def name(self) -> str:
        """The call that makes it."""
        kind = kind_of(self.dataset).lower()
        return "cache()" if kind == "cache" else f"{kind}({self.dataset.parameters.buffer_size})"

    @property
    def function(self) -> str:
        """The name of the stage's function; "" for a lambda."""
        return self.by.function if self.by and self.by.function.isidentifier() else ""

    @property
    def place(self) -> str:
        """Where it holds less."""
        return f"{'before' if self.grows else 'after'} {self.function or 'the map'}"


@dataclass(frozen=True, slots=True)
class Buffers:
    """The buffers of the feeding pipeline whose size is known, and the datasets whose buffer size is unknown."""

    known: tuple[Buffer, ...]
    unknown: tuple[Dataset, ...] = ()

    @classmethod
    def measure(cls, properties: DatasetProperties) -> Self:
        """Examine each shuffle, cache and prefetch from the trainer to the source, or to where sources meet."""
        line = properties.line()
        known, unknown = [], []
        for at, dataset in enumerate(line):
            sized = kind_of(dataset) in {"Shuffle", "Prefetch"} and _size(dataset) > 1
            if not (sized or kind_of(dataset) == "Cache") or not _fresh(line[at + 1 :]):
                continue
            elements, each = _elements(dataset, properties), properties.element_bytes(dataset)
            if elements is None or each is None:
                unknown.append(dataset)
            else:
                buffer = Buffer(dataset=dataset, elements=elements, each=each, least=each)
                known.append(_moved(buffer, line, at, properties))
        return cls(tuple(known), tuple(unknown))


def _moved(buffer: Buffer, line: tuple[Dataset, ...], at: int, properties: DatasetProperties) -> Buffer:
    """Add where its elements are smallest."""
    places = [(size, stage, True) for size, stage in _before(line, at, properties)]
    places += [(size, stage, False) for size, stage in _behind(line, at, properties)]
    least, stage, grows = min(places, key=lambda place: place[0], default=(buffer.each, None, False))
    if least >= buffer.each:
        return buffer
    return replace(buffer, least=least, by=stage, grows=grows)


def _size(dataset: Dataset) -> int:
    return dataset.parameters.buffer_size or 0


def _elements(dataset: Dataset, properties: DatasetProperties) -> int | None:
    if kind_of(dataset) == "Cache":
        return properties.elements(dataset)
    there = dataset.cardinality
    return _size(dataset) if there is None or there < 0 else min(_size(dataset), there)


def _fresh(upstream: Iterable[Dataset]) -> bool:
    """Whether elements are created for the buffer, not references to existing memory."""
    for dataset in upstream:
        if dataset.function or kind_of(dataset) not in ONE_TO_ONE | SHARED:
            return True
        if kind_of(dataset) in SHARED:
            return False
    return False


def _before(line: tuple[Dataset, ...], at: int, properties: DatasetProperties) -> Iterator[tuple[int, Dataset]]:
    """Yield the bytes of an element before each upstream stage that the buffer may move before.

    A shuffle before a cache would fix one order, and a cache before an expensive function would repeat the
    function in every epoch. A prefetch belongs at the end.
    """
    kind = kind_of(line[at])
    upstream = () if kind == "Prefetch" else zip(line[at + 1 :], line[at + 2 :], strict=False)
    for stage, source in upstream:
        expensive = stage.function and not (stage.types is not None and stage.types <= CHEAP)
        if kind_of(stage) not in ONE_TO_ONE or (kind == "Cache" and expensive):
            return
        size = properties.element_bytes(source)
        if size is None and stage.types and "ReadFile" in stage.types:
            size = PATH_BYTES
        if size is not None and stage.function:
            yield size, stage


def _behind(line: tuple[Dataset, ...], at: int, properties: DatasetProperties) -> Iterator[tuple[int, Dataset]]:
    """Yield the bytes of an element after each downstream stage that the buffer may move behind.

    A cache may not move behind random stages: their draws would be the same in every epoch.
    """
    for stage in reversed(line[:at]):
        freezes = kind_of(line[at]) == "Cache" and not repeatable(stage)
        if kind_of(stage) not in ONE_TO_ONE or freezes:
            return
        size = properties.element_bytes(stage)
        if size is not None and stage.function:
            yield size, stage
