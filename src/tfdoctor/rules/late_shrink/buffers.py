"""The pipeline's buffers, and how small the same elements are before or after other stages."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.dataset_properties import DatasetProperties, repeatable
from tfdoctor.facts.run.program import Dataset, kind_of

# Kinds that pass on each element as one, so that a buffer may move past them.
ONE_TO_ONE = frozenset(
    ("Map", "ParallelMap", "Shuffle", "Prefetch", "Options", "Repeat", "Take", "Skip", "Shard", "Filter")
)  # fmt: skip
# Kinds whose elements are in memory already: a buffer holds references to them.
SHARED = frozenset(("TensorSlice", "Tensor", "Range", "Cache"))
# Types of operations that are not worth caching: they cost as much as reading the element.
CHEAP = frozenset(
    ("Cast", "Placeholder", "Const", "Identity", "NoOp", "Mul", "RealDiv", "Sub", "AddV2", "OneHot", "ExpandDims")
)  # fmt: skip
PATH_BYTES = 1024  # An upper bound for the size of a file's path


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
            caches, size = kind_of(dataset) == "Cache", dataset.parameters.buffer_size or 0
            if not caches and (kind_of(dataset) not in {"Shuffle", "Prefetch"} or size <= 1):
                continue
            # Whether elements are created for the buffer, not references to existing memory.
            makes = (one for one in line[at + 1 :] if one.function or kind_of(one) not in ONE_TO_ONE)
            maker = next(makes, None)
            if maker is None or (kind_of(maker) in SHARED and not maker.function):
                continue
            there, each = dataset.cardinality, properties.element_bytes(dataset)
            elements = size if there is None or there < 0 else min(size, there)
            held = properties.elements(dataset) if caches else elements
            if held is None or each is None:
                unknown.append(dataset)
                continue
            places = [*_before(line, at, properties), *_behind(line, at, properties), (each, None, False)]
            least, by, grows = min(places, key=lambda place: place[0])
            if least >= each:
                least, by, grows = each, None, False
            known.append(Buffer(dataset=dataset, elements=held, each=each, least=least, by=by, grows=grows))
        return cls(tuple(known), tuple(unknown))


# The bytes of an element there, the stage that changes them, and whether that enlarges them.
Place = tuple[int, Dataset | None, bool]


def _before(line: tuple[Dataset, ...], at: int, properties: DatasetProperties) -> Iterator[Place]:
    """Yield each place before an upstream stage that the buffer may move before.

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
            yield size, stage, True


def _behind(line: tuple[Dataset, ...], at: int, properties: DatasetProperties) -> Iterator[Place]:
    """Yield each place after a downstream stage that the buffer may move behind.

    A cache may not move behind random stages: their draws would be the same in every epoch.
    """
    for stage in reversed(line[:at]):
        freezes = kind_of(line[at]) == "Cache" and not repeatable(stage)
        if kind_of(stage) not in ONE_TO_ONE or freezes:
            return
        size = properties.element_bytes(stage)
        if size is not None and stage.function:
            yield size, stage, False
