"""The parts of the input that give the same result in every pass, which a cache could keep."""

from tfdoctor.facts.input.dataset_properties import DatasetProperties, repeatable
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.kit import *
from tfdoctor.facts.run.program import FOREVER, Dataset, kind_of

MOVABLE = frozenset(("Shuffle", "Repeat"))  # Kinds that may move behind a cache of single elements
# Kinds whose result changes when a shuffle or a repetition moves past them.
TIED = frozenset(("Batch", "PaddedBatch", "ParallelBatch", "Take", "Skip", "Shard", "Window"))

REMADE = (
    "the dataset is rebuilt during training, for example in each epoch, which would discard a cache in memory; "
    "build the dataset once before the loop, and record again"
)

COMBINED = "several pipelines are combined, and not all of them are repeatable"


class CacheablePart(Record):
    """Stages that one cache after ``last`` could keep; ``moved`` must move behind that cache."""

    last: Dataset
    kept: tuple[Dataset, ...]
    moved: tuple[Dataset, ...] = ()


class Cacheable(Record):
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

    def holds(self, dataset: Dataset | None) -> bool:
        """Whether a dataset gives the same result in every pass, so that a cache could keep it."""
        return dataset is not None and bool(self.with_any([dataset.id]))

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
        parts, random_parts = (
            tuple(part for walk in walks for part in getattr(walk, of)) for of in ("parts", "random")
        )
        return cls(parts, walks[-1].why, frozen, never, random_parts, any(walk.unknown for walk in walks))


def never_complete(properties: DatasetProperties) -> Dataset | None:
    """Return a cache that is never complete, however long the run takes."""
    for at, cache in enumerate(properties.chain):
        if kind_of(cache) != "Cache":
            continue
        repeated = any(kind_of(above) == "Repeat" for above in properties.upstream(cache))
        if repeated and cache.cardinality == FOREVER:
            return cache
        behind = (
            one for one in properties.chain[:at][::-1] if cache.id in {up.id for up in properties.upstream(one)}
        )
        for consumer in behind:  # a take() directly follows, up to a repeat(), and takes less than there is
            there = [source.cardinality for source in properties.sources(consumer)]
            if kind_of(consumer) == "Take" and len(there) == 1:
                taken = consumer.parameters.count
                if taken is not None and there[0] is not None and 0 <= taken < there[0]:
                    return cache
                break
            if kind_of(consumer) == "Repeat":
                break
    return None


def _walks(
    properties: DatasetProperties, end: Dataset, never: Dataset | None, walked: set[int]
) -> Iterator[Cacheable]:
    """Walk from the sources to a stage; where pipelines differ from pass to pass, through each by itself."""
    line = properties.line(end)
    join, joined = line[-1], list(properties.upstream(line[-1]))
    endless = join.cardinality == FOREVER and any(kind_of(stage) == "Repeat" for stage in joined)  # no second pass
    if joined and (endless or not all(map(repeatable, (join, *joined)))):
        for source in properties.sources(join):
            if source.id not in walked:
                walked.add(source.id)
                yield from _walks(properties, source, never, walked)
        yield Cacheable(why=COMBINED)
        return
    caches = [stage for stage in joined if kind_of(stage) == "Cache" and stage is not never]
    stored = {stage.id for cache in caches for stage in (cache, *properties.upstream(cache))}
    before = [stage for stage in reversed(joined) if stage.id not in stored]
    ended, kept, moved = _followed(before, [stage for stage in reversed(line) if stage is not never])
    if kept:
        above = {stage.id for stage in properties.upstream(kept[-1])}
        within = tuple(stage for stage in moved if stage.id in above)
        ended = replace(ended, parts=(CacheablePart(kept[-1], tuple(kept), within),))
    yield ended


def _followed(before: list[Dataset], line: list[Dataset]) -> tuple[Cacheable, list[Dataset], list[Dataset]]:
    """Follow stages behind repeatable ones until one is not: return why, what a cache keeps, and what moves.

    Readers and sources are kept only with a function behind them.
    """
    functions = [at for at, stage in enumerate(before, 1) if stage.function]
    at = functions[-1] if functions else 0
    kept, pending = before[:at], before[at:]
    moved: list[Dataset] = []
    for stage in line:
        kind, same = kind_of(stage), repeatable(stage)
        name = stage.function or kind
        if kind == "Cache":
            kept, pending, moved = [], [], []
        elif kind in MOVABLE and not (kind == "Shuffle" and same):
            moved.append(stage)
        elif kind in TIED and moved:
            names = " and ".join(sorted({kind_of(one).lower() for one in moved}))
            return Cacheable(why=f"{names} precedes {kind.lower()}"), kept, moved
        elif same is None:
            why = f"it is unknown whether {name} gives the same result in every pass"
            return Cacheable(why=why, unknown=True), kept, moved
        elif not same:
            random = (CacheablePart(stage, (*kept, *pending), tuple(moved)),) if stage.function else ()
            return Cacheable(why=f"{name} draws random numbers", random=random), kept, moved
        else:
            pending.append(stage)
            if stage.function:
                kept, pending = [*kept, *pending], []
    return Cacheable(), kept, moved


class RepeatedWork(Record):
    """The stages of the parts that a cache could keep, where the user can add one."""

    stages: tuple[StageTime, ...] = ()

    @property
    def ms(self) -> float:
        """Their own work in ms per training step, summed over threads."""
        return sum(stage.work_ms for stage in self.stages)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What is saved when a cache keeps their output."""
        return tuple(stage.scaled(0.0) for stage in self.stages)

    @classmethod
    def measure(cls, cacheable: Cacheable, properties: DatasetProperties, pipeline: InputPipeline) -> Self:
        """Find the stages of each part with a function behind which the user's code can add a cache."""
        made = {None, properties.fit_at}  # not by the user's code, which cannot add a stage behind it then
        own = {one.id for one in properties.chain if one.function and (one.function_at or one.at not in made)}
        ids = {stage.id for part in cacheable.with_any(own) for stage in part.kept}
        working = (stage for stage in pipeline.stages if stage.work_ms)
        return cls(tuple(stage for stage in working if stage.dataset and stage.dataset.id in ids))
