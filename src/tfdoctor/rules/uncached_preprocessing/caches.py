"""Where caches would be, what they would keep, and the code that adds them."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.facts.input.cacheable import CacheablePart, RepeatedWork
from tfdoctor.facts.input.dataset_properties import DatasetProperties, repeatable
from tfdoctor.facts.input.input_pipeline import StageTime
from tfdoctor.facts.run.passes import kind_of
from tfdoctor.facts.run.program import Dataset
from tfdoctor.rules.uncached_preprocessing.repeatable_prefix import RepeatablePrefix
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Remedy, Table

# Methods that the user calls with a function of a library, such as a Keras layer.
METHODS = frozenset(("map", "flat_map", "interleave", "filter"))


@dataclass(frozen=True, slots=True)
class Caches:
    """Where caches would be: behind whole functions, and within random ones, which replaces those before them."""

    parts: list[CacheablePart]
    divided: list[RepeatablePrefix]
    repeated: RepeatedWork
    properties: DatasetProperties

    @property
    def recomputes(self) -> str:
        """The main clause of the finding: "decode recomputes identical elements every epoch"."""
        stages = [one for one in self.repeated.stages if one.dataset and one.dataset.function]
        own = [one for one in stages if one.dataset and one.dataset.function_at]
        if self.divided and not own:
            names = list(dict.fromkeys(_name(prefix.stage) for prefix in self.divided))
            share = percent(min(prefix.share for prefix in self.divided))
            repeats = f"{'repeats' if len(names) == 1 else 'repeat'} identical work every epoch"
            return f"{' and '.join(names)} {repeats}: {share} of it comes before the first random operation"
        names = list(dict.fromkeys(map(_name, own or stages or self.repeated.stages)))
        verb = "recomputes" if len(names) == 1 else "recompute"
        return f"{' and '.join(names)} {verb} identical elements every epoch"

    @property
    def behind(self) -> list[CacheablePart]:
        """The parts that no cache within a later function keeps."""
        within = {stage.id for prefix in self.divided for stage in prefix.part.kept}
        return [part for part in self.parts if part.last.id not in within]

    @property
    def nbytes(self) -> int | None:
        """The bytes of all caches, or of the batches that a line makes of their elements; None is unknown."""
        total = 0
        for part in self.behind:
            sizes = map(self.properties.nbytes, (part.last, *self._later(part)))
            size = next((size for size in sizes if size is not None), None)
            if size is None:
                return None
            total += size
        for prefix in self.divided:
            elements = self.properties.elements(prefix.part.last)
            if elements is None or prefix.nbytes is None:
                return None
            total += elements * prefix.nbytes
        return total

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

    def remedies(self) -> Iterator[Remedy]:
        """Yield how to add each cache: behind a function, behind what a library makes, or within a random one."""
        for part in self.behind:
            last, (kinds, moved) = part.last, _moved(part)
            if maker := _library(last):
                yield self._behind_library(part, maker)
                continue
            known = last.function_at is not None and last.function.isidentifier()
            after = f", and move {kinds} after the cache" if kinds else ""
            action = f"Cache the output of {last.function if known else 'this line'}{after}"
            code = "\n".join((MAPPED.format(last.function if known else "function"), CACHE, *moved))
            yield Remedy(action, code, last.at, "cache")
        for prefix in self.divided:
            last, (kinds, moved) = prefix.part.last, _moved(prefix.part)
            name = last.function if last.function.isidentifier() else "function"
            before = f" (line {prefix.drawn_at.line})" if prefix.drawn_at else ""
            after = f"; move {kinds} after the cache" if kinds else ""
            divide = f"Divide {name} before its first random operation{before}"
            first, second = MAPPED.format(f"{name}_before_random"), MAPPED.format(f"{name}_random")
            code = "\n".join((first, CACHE, *moved, second))
            yield Remedy(f"{divide}, and cache between the parts{after}", code, last.at)

    def _behind_library(self, part: CacheablePart, maker: str) -> Remedy:
        """Put the cache behind the call of a library, which may shuffle and batch the elements itself."""
        if not part.moved and all(map(repeatable, self._later(part))):
            code = f"dataset = {maker}(...)\n{CACHE}"
            return Remedy(f"Cache the dataset that {maker}() returns", code, part.last.at, "cache")
        action = f"Let {maker}() return single examples; cache them, then shuffle and batch"
        return Remedy(action, f"dataset = {maker}(..., batch_size=None)\n{CACHE}\n{BATCHES}", part.last.at)

    def _later(self, part: CacheablePart) -> list[Dataset]:
        """Return what the same line does with the part's elements, the last first."""
        same = (stage for stage in self.properties.chain if stage.at == part.last.at)
        return [stage for stage in same if part.last in self.properties.upstream(stage)]


def _name(stage: StageTime) -> str:
    maker = _library(stage.dataset) if stage.dataset else ""
    return f"{stage.title} of {maker}()" if maker else stage.title


def _library(dataset: Dataset) -> str:
    """Return the function of a library that made a dataset; "" where the user's own code did, or unknown."""
    return "" if dataset.function_at or dataset.made_by in METHODS else dataset.made_by


def _moved(part: CacheablePart) -> tuple[str, list[str]]:
    """Return the kinds of stages that have to move behind the cache, "repeat and shuffle", and their code."""
    kinds = sorted({kind_of(dataset).lower() for dataset in part.moved})
    return " and ".join(kinds), [AFTER[kind] for kind in kinds if kind in AFTER]


MAPPED = "dataset = dataset.map({}, num_parallel_calls=tf.data.AUTOTUNE)"

CACHE = "dataset = dataset.cache()  # before random operations; create the dataset once, before all epochs"

AFTER = {
    "repeat": "dataset = dataset.repeat()  # after the cache, which is filled when a pass ends",
    "shuffle": "dataset = dataset.shuffle(buffer_size)  # after the cache, for a different order in every epoch",
}

BATCHES = "dataset = dataset.shuffle(buffer_size).batch(batch_size).prefetch(tf.data.AUTOTUNE)"
