"""The part of the input that gives the same result in every pass, which a cache could keep."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.dataset_properties import DatasetProperties, kind_of, repeatable
from tfdoctor.facts.run.program import Dataset

MOVABLE = frozenset(("Shuffle", "Repeat"))
"""Kinds that may move behind a cache of single elements."""

TIED = frozenset(("Batch", "PaddedBatch", "ParallelBatch", "Take", "Skip", "Shard", "Window"))
"""Kinds whose result changes when a shuffle or a repetition moves past them."""

REMADE = (
    "the dataset is rebuilt during training, for example in each epoch, which would discard a cache in memory; "
    "build the dataset once before the loop, and record again"
)


@dataclass(frozen=True, slots=True)
class Cacheable:
    """The stages up to ``last`` give the same result in every pass; ``why`` is the reason why no more do.

    ``kept`` has ``last`` and its sources that no cache keeps yet. ``moved`` has the shuffles and repetitions
    that must move behind the cache. ``frozen`` is a function that draws random numbers before a cache of the
    user's, so that all epochs see the same draws.
    """

    last: Dataset | None = None
    kept: tuple[Dataset, ...] = ()
    moved: tuple[Dataset, ...] = ()
    why: str = ""
    frozen: Dataset | None = None
    unknown: bool = False  # whether ``why`` says what is missing: more might be cacheable

    def holds(self, dataset: Dataset | None) -> bool:
        """Whether a dataset gives the same result in every pass, so that a cache could keep it."""
        return dataset is not None and any(kept.id == dataset.id for kept in self.kept)

    @classmethod
    def measure(cls, properties: DatasetProperties) -> Self:
        """Follow the stages from the source to the trainer while all of them are repeatable."""
        if properties.remade:
            return cls(why=REMADE, unknown=True)
        line = properties.line()
        walk = _RepeatableStages()
        joined = list(properties.upstream(line[-1])) if line else []
        if all(_same(stage) for stage in joined):
            for stage in (*reversed(joined), *reversed(line)):
                walk.take(stage)
                if walk.why:
                    break
        else:
            walk.why = "several pipelines are combined, and not all of them are repeatable"
        kept = tuple(walk.kept)
        last = kept[-1] if kept else None
        moved = tuple(
            stage
            for stage in walk.moved
            if last is not None and stage.id in _above(properties, last)
        )
        return cls(last, kept, moved, walk.why, _frozen(properties), walk.unknown)


class _RepeatableStages:
    """Follows the stages from the source until one is not repeatable."""

    def __init__(self) -> None:
        self.kept: list[Dataset] = []
        self.pending: list[Dataset] = []  # readers and sources, kept only with a later function
        self.moved: list[Dataset] = []
        self.why = ""
        self.unknown = False

    def take(self, stage: Dataset) -> None:
        """Add a stage, or set ``why`` where the repeatable part ends."""
        kind = kind_of(stage)
        if kind == "Cache":
            self.kept, self.pending, self.moved = [], [], []
        elif kind in MOVABLE and not (kind == "Shuffle" and repeatable(stage)):
            self.moved.append(stage)
        elif kind in TIED and self.moved:
            names = " and ".join(sorted({kind_of(moved).lower() for moved in self.moved}))
            self.why = f"{names} precedes {kind.lower()}"
        else:
            self._function(stage)

    def _function(self, stage: Dataset) -> None:
        same = repeatable(stage)
        if not same:
            name = stage.function or kind_of(stage)
            self.why = (
                f"{name} draws random numbers" if same is False else
                f"it is unknown whether {name} gives the same result in every pass"
            )  # fmt: skip
            self.unknown = same is None
            return
        self.pending.append(stage)
        if stage.function:
            self.kept, self.pending = [*self.kept, *self.pending], []


def _same(dataset: Dataset) -> bool:
    return bool(repeatable(dataset)) and kind_of(dataset) not in {"Repeat", "Cache"}


def _above(properties: DatasetProperties, dataset: Dataset) -> set[int]:
    return {stage.id for stage in properties.upstream(dataset)}


def _frozen(properties: DatasetProperties) -> Dataset | None:
    """Return a function that draws random numbers before a cache."""
    caches = [stage for stage in properties.chain if kind_of(stage) == "Cache"]
    behind = (above for cache in caches for above in properties.upstream(cache))
    return next((stage for stage in behind if stage.function and repeatable(stage) is False), None)
