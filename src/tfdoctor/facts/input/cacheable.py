"""What of the input is done again in every pass though it comes out the same: what a cache could keep."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.dataset_properties import DatasetProperties, kind_of, repeatable
from tfdoctor.facts.run.program import Dataset

MOVABLE = frozenset(("Shuffle", "Repeat"))
"""Kinds that may as well stand behind a cache of single elements."""

TIED = frozenset(("Batch", "PaddedBatch", "ParallelBatch", "Take", "Skip", "Shard", "Window"))
"""Kinds that yield something else when a shuffle or a repetition moves past them."""

REMADE = (
    "what a cache would save is not known: the dataset is made anew while the run trains, as in each epoch, "
    "and a cache in memory would go with it; make the dataset once, before the loop, and record again"
)


@dataclass(frozen=True, slots=True)
class Cacheable:
    """The work up to ``last`` comes out the same in every pass; what follows does not, because of ``why``.

    ``moved`` are the shuffles and repetitions that must stand behind the cache. ``frozen`` is a function
    that draws random numbers before a cache the user wrote: all epochs see the same draws.
    """

    last: Dataset | None = None
    kept: tuple[
        Dataset, ...
    ] = ()  # last and what it is made of, as far as no cache keeps it already
    moved: tuple[Dataset, ...] = ()
    why: str = ""
    frozen: Dataset | None = None
    unknown: bool = False  # whether ``why`` says what is missing: more might be cacheable

    def holds(self, dataset: Dataset | None) -> bool:
        """Whether a dataset's work comes out the same in every pass, so that a cache could keep it."""
        return dataset is not None and any(kept.id == dataset.id for kept in self.kept)

    @classmethod
    def measure(cls, properties: DatasetProperties) -> Self:
        """Go from the source to the trainer as long as everything comes out the same."""
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
            walk.why = "several pipelines meet, and not all of them give the same in every pass"
        kept = tuple(walk.kept)
        last = kept[-1] if kept else None
        moved = tuple(
            stage
            for stage in walk.moved
            if last is not None and stage.id in _above(properties, last)
        )
        return cls(last, kept, moved, walk.why, _frozen(properties), walk.unknown)


class _RepeatableStages:
    """The way from the source, until something does not come out the same."""

    def __init__(self) -> None:
        self.kept: list[Dataset] = []
        self.pending: list[Dataset] = []  # readers and sources: work of a function that follows
        self.moved: list[Dataset] = []
        self.why = ""
        self.unknown = False

    def take(self, stage: Dataset) -> None:
        """Add one dataset, or say why the way ends here."""
        kind = kind_of(stage)
        if kind == "Cache":
            self.kept, self.pending, self.moved = [], [], []
        elif kind in MOVABLE and not (kind == "Shuffle" and repeatable(stage)):
            self.moved.append(stage)
        elif kind in TIED and self.moved:
            names = " and ".join(sorted({kind_of(moved).lower() for moved in self.moved}))
            self.why = f"a {names} stands before the {kind.lower()}"
        else:
            self._function(stage)

    def _function(self, stage: Dataset) -> None:
        same = repeatable(stage)
        if not same:
            name = stage.function or kind_of(stage)
            self.why = (
                f"{name} draws random numbers" if same is False else
                f"whether {name} does the same in every pass is not known"
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
    """Return a function that draws random numbers, whose draws a cache keeps."""
    caches = [stage for stage in properties.chain if kind_of(stage) == "Cache"]
    behind = (above for cache in caches for above in properties.upstream(cache))
    return next((stage for stage in behind if stage.function and repeatable(stage) is False), None)
