"""The parts of the input that give the same result in every pass, which a cache could keep."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.dataset_properties import DatasetProperties, repeatable
from tfdoctor.facts.run.passes import FOREVER, kind_of
from tfdoctor.facts.run.program import Dataset

MOVABLE = frozenset(("Shuffle", "Repeat"))
"""Kinds that may move behind a cache of single elements."""

TIED = frozenset(("Batch", "PaddedBatch", "ParallelBatch", "Take", "Skip", "Shard", "Window"))
"""Kinds whose result changes when a shuffle or a repetition moves past them."""

REMADE = (
    "the dataset is rebuilt during training, for example in each epoch, which would discard a cache in memory; "
    "build the dataset once before the loop, and record again"
)

COMBINED = "several pipelines are combined, and not all of them are repeatable"


@dataclass(frozen=True, slots=True)
class CacheablePart:
    """Stages that one cache after ``last`` could keep; ``moved`` must move behind that cache."""

    last: Dataset
    kept: tuple[Dataset, ...]
    moved: tuple[Dataset, ...] = ()


@dataclass(frozen=True, slots=True)
class Cacheable:
    """The parts give the same result in every pass; ``why`` is the reason why no more do.

    A part has ``last`` and its sources that no cache keeps yet; where pipelines meet that are not all
    repeatable, each has a part of its own. ``frozen`` is a function that draws random numbers before a cache
    of the user's, so that all epochs see the same draws. ``never`` is a cache that is never complete: all of
    an infinite repetition would have to pass, or a later take() ends each pass early. It counts as no cache.
    ``random`` are the functions at which parts end because they draw random numbers; each with the stages that
    would have to move behind a cache within it.
    """

    parts: tuple[CacheablePart, ...] = ()
    why: str = ""
    frozen: Dataset | None = None
    never: Dataset | None = None
    random: tuple[CacheablePart, ...] = ()
    unknown: bool = False  # whether ``why`` says what is missing: more might be cacheable

    @property
    def kept(self) -> tuple[Dataset, ...]:
        """The stages that a cache could keep."""
        return tuple(stage for part in self.parts for stage in part.kept)

    def holds(self, dataset: Dataset | None) -> bool:
        """Whether a dataset gives the same result in every pass, so that a cache could keep it."""
        return dataset is not None and any(kept.id == dataset.id for kept in self.kept)

    def with_any(self, ids: Collection[int]) -> list[CacheablePart]:
        """Return the parts with any of some datasets."""
        return [part for part in self.parts if any(stage.id in ids for stage in part.kept)]

    @classmethod
    def measure(cls, properties: DatasetProperties) -> Self:
        """Follow the stages from each source to the trainer while all of them are repeatable."""
        caches = [stage for stage in properties.chain if kind_of(stage) == "Cache"]
        behind = (above for cache in caches for above in properties.upstream(cache))
        random = (stage for stage in behind if stage.function and repeatable(stage) is False)
        never, frozen = never_complete(properties), next(random, None)
        if properties.remade or not properties.chain:
            why = REMADE if properties.remade else ""
            return cls(why=why, frozen=frozen, never=never, unknown=properties.remade)
        walks = list(_walks(properties, properties.chain[0], never, set()))
        return cls(
            tuple(part for walk in walks if (part := walk.part(properties))),
            walks[-1].why,
            frozen,
            never,
            tuple(walk.random for walk in walks if walk.random),
            any(walk.unknown for walk in walks),
        )


def never_complete(properties: DatasetProperties) -> Dataset | None:
    """Return a cache that is never complete, however long the run takes."""
    for at, stage in enumerate(properties.chain):
        if kind_of(stage) != "Cache":
            continue
        repeated = any(kind_of(above) == "Repeat" for above in properties.upstream(stage))
        endless = repeated and stage.cardinality == FOREVER
        if endless or _cut_short(properties, properties.chain[:at], stage):
            return stage
    return None


def _cut_short(properties: DatasetProperties, consumers: tuple[Dataset, ...], cache: Dataset) -> bool:
    """Whether a take() directly follows a cache, up to a repeat(), and takes less than there is."""
    for consumer in reversed(consumers):
        if cache.id not in {stage.id for stage in properties.upstream(consumer)}:
            continue
        if kind_of(consumer) == "Repeat":
            return False
        there = [source.cardinality for source in properties.sources(consumer)]
        if kind_of(consumer) == "Take" and len(there) == 1:
            taken = consumer.parameters.count
            return taken is not None and there[0] is not None and 0 <= taken < there[0]
    return False


class _RepeatableStages:
    """Follows the stages from the source until one is not repeatable."""

    def __init__(self, why: str = "") -> None:
        self.kept: list[Dataset] = []
        self.pending: list[Dataset] = []  # readers and sources, kept only with a later function
        self.moved: list[Dataset] = []
        self.why = why
        self.random: CacheablePart | None = None
        self.unknown = False

    def take(self, stage: Dataset) -> None:
        """Add a stage, or set ``why`` where the repeatable part ends."""
        kind, same = kind_of(stage), repeatable(stage)
        if kind == "Cache":
            self.kept, self.pending, self.moved = [], [], []
        elif kind in MOVABLE and not (kind == "Shuffle" and same):
            self.moved.append(stage)
        elif kind in TIED and self.moved:
            names = " and ".join(sorted({kind_of(moved).lower() for moved in self.moved}))
            self.why = f"{names} precedes {kind.lower()}"
        elif same:
            self.keep(stage)
        elif same is None:
            name, self.unknown = stage.function or kind, True
            self.why = f"it is unknown whether {name} gives the same result in every pass"
        else:
            self.why = f"{stage.function or kind} draws random numbers"
            if stage.function:
                kept = (*self.kept, *self.pending)
                self.random = CacheablePart(stage, kept, tuple(self.moved))

    def keep(self, stage: Dataset) -> None:
        """Add a stage that gives the same result in every pass."""
        self.pending.append(stage)
        if stage.function:
            self.kept, self.pending = [*self.kept, *self.pending], []

    def part(self, properties: DatasetProperties) -> CacheablePart | None:
        """Return what one cache could keep; None where nothing works."""
        if not self.kept:
            return None
        above = {stage.id for stage in properties.upstream(self.kept[-1])}
        moved = tuple(stage for stage in self.moved if stage.id in above)
        return CacheablePart(self.kept[-1], tuple(self.kept), moved)


def _walks(
    properties: DatasetProperties, end: Dataset, never: Dataset | None, walked: set[int]
) -> Iterator[_RepeatableStages]:
    """Walk from the sources to a stage; where pipelines differ from pass to pass, through each by itself."""
    line = properties.line(end)
    joined = list(properties.upstream(line[-1]))
    if joined and not _same(line[-1], joined):
        for source in properties.sources(line[-1]):
            if source.id not in walked:
                walked.add(source.id)
                yield from _walks(properties, source, never, walked)
        yield _RepeatableStages(COMBINED)
        return
    caches = [stage for stage in joined if kind_of(stage) == "Cache" and stage is not never]
    stored = {stage.id for cache in caches for stage in (cache, *properties.upstream(cache))}
    walk = _RepeatableStages()
    for stage in reversed(joined):
        if stage.id not in stored:
            walk.keep(stage)
    for stage in reversed(line):
        if stage is not never and not walk.why:
            walk.take(stage)
    yield walk


def _same(join: Dataset, joined: list[Dataset]) -> bool:
    """Whether pipelines that meet give the same elements in every pass; an endless one has no second pass."""
    endless = join.cardinality == FOREVER and any(kind_of(stage) == "Repeat" for stage in joined)
    return not endless and all(repeatable(stage) for stage in (join, *joined))
