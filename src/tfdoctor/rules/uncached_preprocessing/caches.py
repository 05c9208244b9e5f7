"""Where caches would be, what they would keep, and the code that adds them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tfdoctor.facts.input.cacheable import CacheablePart
from tfdoctor.facts.input.dataset_properties import DatasetProperties, repeatable
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.input.repeated_work import RepeatedWork
from tfdoctor.facts.run.passes import kind_of
from tfdoctor.facts.run.program import Dataset
from tfdoctor.rules.uncached_preprocessing.repeatable_prefix import RepeatablePrefix
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Finding, Measure, Remedy, Table


@dataclass(frozen=True, slots=True)
class Caches:
    """Where caches would be: behind whole functions, and within random ones, which replaces those before them."""

    parts: list[CacheablePart]
    divided: list[RepeatablePrefix]
    repeated: RepeatedWork

    @property
    def recomputes(self) -> str:
        """The main clause of the finding: "decode recomputes identical elements every epoch"."""
        stages = [one for one in self.repeated.stages if one.dataset and one.dataset.function]
        own = [one for one in stages if one.dataset and one.dataset.function_at]
        if self.divided and not own:
            names = list(dict.fromkeys(_name(prefix.stage) for prefix in self.divided))
            share = percent(min(prefix.share for prefix in self.divided))
            return (
                f"{' and '.join(names)} {'repeats' if len(names) == 1 else 'repeat'} identical work every epoch: "
                f"{share} of it comes before the first random operation"
            )
        names = list(dict.fromkeys(map(_name, own or stages or self.repeated.stages)))
        verb = "recomputes" if len(names) == 1 else "recompute"
        return f"{' and '.join(names)} {verb} identical elements every epoch"

    def behind(self) -> list[CacheablePart]:
        """Return the parts that no cache within a later function keeps."""
        within = {stage.id for prefix in self.divided for stage in prefix.part.kept}
        return [part for part in self.parts if part.last.id not in within]

    def sizes(self, properties: DatasetProperties) -> list[int | None]:
        """Return the bytes of each cache; None is unknown."""
        whole = [_size(part, properties) for part in self.behind()]
        return whole + [prefix.size(properties) for prefix in self.divided]

    def shares(self, least: float) -> Iterator[Measure]:
        """Yield the shares of random functions that can be cached."""
        for prefix in self.divided:
            label = f"share of {prefix.stage.title}'s work before its first random operation"
            yield Measure.share(label, prefix.share, least)

    @property
    def table(self) -> Table:
        """The work that is repeated, by stage."""
        stages = self.repeated.stages
        rows = [(stage.title, stage.at or "unknown", ms(stage.work_ms)) for stage in stages]
        for prefix in self.divided:
            heaviest = f" ({', '.join(prefix.heaviest)})" if prefix.heaviest else ""
            title = f"{prefix.stage.title} before its first random operation{heaviest}"
            rows.append((title, prefix.stage.at or "unknown", ms(prefix.ms)))
        return Table(("stage", "your line", "work per step"), tuple(rows))

    def finding(self, measures: Sequence[Measure], properties: DatasetProperties) -> Finding:
        """Return what to do, each once, and what the caches save."""
        whole = [_remedy(part, properties) for part in self.behind()]
        divided = (one.stage.scaled(1.0 - one.share, Bound.AT_MOST) for one in self.divided)
        return Finding(
            summary=self.recomputes,
            evidence=(*measures, self.table),
            remedies=tuple(dict.fromkeys((*whole, *map(_divided, self.divided)))),
            effects=(*self.repeated.effects, *divided),  # reading a cache is not counted
        )


def _name(stage: StageTime) -> str:
    maker = _library(stage.dataset) if stage.dataset else ""
    return f"{stage.title} of {maker}()" if maker else stage.title


def _library(dataset: Dataset) -> str:
    """Return the function of a library that made a dataset; "" where the user's own code did, or unknown."""
    return "" if dataset.function_at or dataset.made_by in METHODS else dataset.made_by


METHODS = frozenset(("map", "flat_map", "interleave", "filter"))
"""Methods that the user calls with a function of a library, such as a Keras layer."""


def _remedy(part: CacheablePart, properties: DatasetProperties) -> Remedy:
    if maker := _library(part.last):
        return _behind_library(part, maker, properties)
    last, kinds = part.last, _moved(part)
    known = last.function_at is not None and last.function.isidentifier()
    code = _cached(last.function if known else "function", kinds)
    after = f", and move {' and '.join(kinds)} after the cache" if kinds else ""
    action = f"Cache the output of {last.function if known else 'this line'}{after}"
    return Remedy(action, code, last.at, "cache")


def _divided(prefix: RepeatablePrefix) -> Remedy:
    """Advise to divide a function before its first random operation."""
    last, kinds = prefix.part.last, _moved(prefix.part)
    name = last.function if last.function.isidentifier() else "function"
    before = f" (line {prefix.drawn_at.line})" if prefix.drawn_at else ""
    after = f"; move {' and '.join(kinds)} after the cache" if kinds else ""
    action = f"Divide {name} before its first random operation{before}, and cache between the parts{after}"
    code = f"{_cached(f'{name}_before_random', kinds)}\n{MAPPED.format(f'{name}_random')}"
    return Remedy(action, code, last.at)


def _moved(part: CacheablePart) -> list[str]:
    """Return the kinds of stages that have to move behind the cache: "repeat", "shuffle"."""
    return sorted({kind_of(dataset).lower() for dataset in part.moved})


def _cached(function: str, kinds: Collection[str]) -> str:
    """Return the code of a map, of the cache behind it, and of the stages that move behind that."""
    moved = [code for kind, code in (("repeat", REPEAT), ("shuffle", SHUFFLE)) if kind in kinds]
    return "\n".join((MAPPED.format(function), CACHE, *moved))


def _behind_library(part: CacheablePart, maker: str, properties: DatasetProperties) -> Remedy:
    """Put the cache behind the call of a library, which may shuffle and batch the elements itself."""
    if not part.moved and all(repeatable(stage) for stage in _later(part, properties)):
        action = f"Cache the dataset that {maker}() returns"
        return Remedy(action, f"dataset = {maker}(...)\n{CACHE}", part.last.at, "cache")
    action = f"Let {maker}() return single examples; cache them, then shuffle and batch"
    return Remedy(action, f"dataset = {maker}(..., batch_size=None)\n{CACHE}\n{BATCHES}", part.last.at)


def _later(part: CacheablePart, properties: DatasetProperties) -> list[Dataset]:
    """Return what the same line does with the part's elements, the last first."""
    return [
        stage for stage in properties.chain if stage.at == part.last.at and part.last in properties.upstream(stage)
    ]


def _size(part: CacheablePart, properties: DatasetProperties) -> int | None:
    """Return the bytes of a part's elements, or of the batches that its line makes of them."""
    sizes = map(properties.nbytes, (part.last, *_later(part, properties)))
    return next((size for size in sizes if size is not None), None)


BATCHES = "dataset = dataset.shuffle(buffer_size).batch(batch_size).prefetch(tf.data.AUTOTUNE)"


MAPPED = "dataset = dataset.map({}, num_parallel_calls=tf.data.AUTOTUNE)"


CACHE = "dataset = dataset.cache()  # before random operations; create the dataset once, before all epochs"


REPEAT = "dataset = dataset.repeat()  # after the cache, which is filled when a pass ends"


SHUFFLE = "dataset = dataset.shuffle(buffer_size)  # after the cache, for a different order in every epoch"
