"""The parts of the input that give the same result in every pass, which a cache could keep."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

from tfdoctor.facts.input.dataset_properties import DatasetProperties, repeatable
from tfdoctor.facts.run.program import FOREVER, Dataset, kind_of

MOVABLE = frozenset(("Shuffle", "Repeat"))  # Kinds that may move behind a cache of single elements
# Kinds whose result changes when a shuffle or a repetition moves past them.
TIED = frozenset(("Batch", "PaddedBatch", "ParallelBatch", "Take", "Skip", "Shard", "Window"))

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
            tuple(walk.part for walk in walks if walk.part),
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


class _Walk(NamedTuple):
    """What one cache could keep on the way from a source to the trainer, and why the repeatable part ends."""

    part: CacheablePart | None = None
    why: str = ""
    random: CacheablePart | None = None
    unknown: bool = False


def _walks(properties: DatasetProperties, end: Dataset, never: Dataset | None, walked: set[int]) -> Iterator[_Walk]:
    """Walk from the sources to a stage; where pipelines differ from pass to pass, through each by itself."""
    line = properties.line(end)
    join, joined = line[-1], list(properties.upstream(line[-1]))
    endless = join.cardinality == FOREVER and any(kind_of(stage) == "Repeat" for stage in joined)  # no second pass
    if joined and (endless or not all(map(repeatable, (join, *joined)))):
        for source in properties.sources(join):
            if source.id not in walked:
                walked.add(source.id)
                yield from _walks(properties, source, never, walked)
        yield _Walk(why=COMBINED)
        return
    caches = [stage for stage in joined if kind_of(stage) == "Cache" and stage is not never]
    stored = {stage.id for cache in caches for stage in (cache, *properties.upstream(cache))}
    walk = _RepeatableStages()
    for stage in reversed(joined):
        if stage.id not in stored:
            walk.keep(stage)
    taken = (walk.take(stage) for stage in reversed(line) if stage is not never)
    ended = next((one for one in taken if one), _Walk())
    if walk.kept:
        above = {stage.id for stage in properties.upstream(walk.kept[-1])}
        moved = tuple(stage for stage in walk.moved if stage.id in above)
        ended = ended._replace(part=CacheablePart(walk.kept[-1], tuple(walk.kept), moved))
    yield ended


class _RepeatableStages:
    """The stages from a source on, until one is not repeatable."""

    def __init__(self) -> None:
        self.kept: list[Dataset] = []
        self.pending: list[Dataset] = []  # readers and sources, kept only with a later function
        self.moved: list[Dataset] = []

    def take(self, stage: Dataset) -> _Walk | None:
        """Add a stage, or return why the repeatable part ends."""
        kind, same = kind_of(stage), repeatable(stage)
        name = stage.function or kind
        if kind == "Cache":
            self.kept, self.pending, self.moved = [], [], []
        elif kind in MOVABLE and not (kind == "Shuffle" and same):
            self.moved.append(stage)
        elif kind in TIED and self.moved:
            names = " and ".join(sorted({kind_of(moved).lower() for moved in self.moved}))
            return _Walk(why=f"{names} precedes {kind.lower()}")
        elif same:
            self.keep(stage)
        elif same is None:
            return _Walk(why=f"it is unknown whether {name} gives the same result in every pass", unknown=True)
        else:
            part = CacheablePart(stage, (*self.kept, *self.pending), tuple(self.moved)) if stage.function else None
            return _Walk(why=f"{name} draws random numbers", random=part)
        return None

    def keep(self, stage: Dataset) -> None:
        """Add a stage that gives the same result in every pass."""
        self.pending.append(stage)
        if stage.function:
            self.kept, self.pending = [*self.kept, *self.pending], []
