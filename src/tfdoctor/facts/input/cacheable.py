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
        return dataset is not None and any(one.id == dataset.id for one in self.kept)

    @classmethod
    def measure(cls, properties: DatasetProperties) -> Self:
        """Go from the source to the trainer as long as everything comes out the same."""
        if properties.remade:
            return cls(why=REMADE, unknown=True)
        line = properties.line()
        walk = _RepeatableStages()
        meeting = list(properties.upstream(line[-1])) if line else []
        if all(_same(one) for one in meeting):
            for one in (*reversed(meeting), *reversed(line)):
                walk.take(one)
                if walk.why:
                    break
        else:
            walk.why = "several pipelines meet, and not all of them give the same in every pass"
        kept = tuple(walk.kept)
        last = kept[-1] if kept else None
        moved = tuple(
            one for one in walk.moved if last is not None and one.id in _above(properties, last)
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

    def take(self, one: Dataset) -> None:
        """Add one dataset, or say why the way ends here."""
        kind = kind_of(one)
        if kind == "Cache":
            self.kept, self.pending, self.moved = [], [], []
        elif kind in MOVABLE and not (kind == "Shuffle" and repeatable(one)):
            self.moved.append(one)
        elif kind in TIED and self.moved:
            names = " and ".join(sorted({kind_of(each).lower() for each in self.moved}))
            self.why = f"a {names} stands before the {kind.lower()}"
        else:
            self._function(one)

    def _function(self, one: Dataset) -> None:
        same = repeatable(one)
        if not same:
            name = one.function or kind_of(one)
            self.why = (
                f"{name} draws random numbers" if same is False else
                f"whether {name} does the same in every pass is not known"
            )  # fmt: skip
            self.unknown = same is None
            return
        self.pending.append(one)
        if one.function:
            self.kept, self.pending = [*self.kept, *self.pending], []


def _same(one: Dataset) -> bool:
    return bool(repeatable(one)) and kind_of(one) not in {"Repeat", "Cache"}


def _above(properties: DatasetProperties, dataset: Dataset) -> set[int]:
    return {one.id for one in properties.upstream(dataset)}


def _frozen(properties: DatasetProperties) -> Dataset | None:
    """Return a function that draws random numbers, whose draws a cache keeps."""
    caches = [one for one in properties.chain if kind_of(one) == "Cache"]
    behind = (above for cache in caches for above in properties.upstream(cache))
    return next((one for one in behind if one.function and repeatable(one) is False), None)
