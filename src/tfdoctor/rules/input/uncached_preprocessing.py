from tfdoctor.facts.input.cacheable import CacheablePart
from tfdoctor.facts.input.dataset_properties import states_of
from tfdoctor.facts.input.map_functions import CONTROL, tensor_bytes
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

ARGUMENT = "Placeholder"  # The type of a function's arguments in its graph
LONG = 0.05  # Share of the repeatable work from which the report names an operation
LITTLE = 0.05  # Share of the step below which the report says that a cache would save little
# Methods that the user calls with a function of a library, such as a Keras layer.
METHODS = frozenset(("map", "flat_map", "interleave", "filter"))

UNKNOWN_SIZE = (
    "the size of the output is unknown before it is read (text, files or an open shape); if it fits into memory, "
    "add `.cache()` directly after it to save the work from the second epoch on"
)


class Limits(RuleLimits):
    passes: float = limit(2.0)
    memory: float = share_limit(0.5)
    taken: float = share_limit(0.2)
    starts: float = share_limit(0.05)
    before_random: float = share_limit(0.5)


class RepeatablePrefix(Record):
    """What one cache could keep if a function were divided before its first random operation.

    ``share``, 0 to 1, is that of the repeatable operations in the time of all operations of the ``stage``'s
    function. What the function takes between its operations is divided alike.
    ``nbytes`` are those of the tensors that the rest of the function takes, or that it returns, for one element;
    None where a shape is open, or of text. ``heaviest`` are the types of the longest repeatable operations.
    """

    part: CacheablePart
    stage: StageTime
    share: float
    nbytes: int | None
    heaviest: tuple[str, ...] = ()
    drawn_at: Location | None = None  # the first random operation's line

    @property
    def ms(self) -> float:
        """The repeatable part of the stage's work in ms per step, summed over threads."""
        return self.share * self.stage.work_ms

    @classmethod
    def of(cls, part: CacheablePart, pipeline: InputPipeline, graphs: FunctionGraphs) -> Self | None:
        """Follow the data from the random operations of a function; what they do not reach is repeatable.

        Operations that call functions, or keep a state, count as random: their results may differ in each pass.
        """
        graph = graphs.of(part.last)
        stage = next((one for one in pipeline.stages if one.dataset == part.last and one.work_ms), None)
        if not graph or not stage:
            return None
        states = states_of(part.last)
        operations, drawn, varies = graph.operations, list[bool](), list[bool]()
        taken, by_random = set[int](), set[int]()
        for at, operation in enumerate(operations):
            sources = {source for source in operation.sources if source is not None}
            draws = bool(RANDOM.search(operation.type)) or operation.type in CONTROL or operation.type in states
            later = None in operation.sources or any(source >= at for source in sources)
            drawn.append(draws or later or any(drawn[source] for source in sources))
            varies.append(operation.type == ARGUMENT or any(varies[one] for one in sources if one < at))
            taken |= sources
            by_random |= sources if drawn[at] else set()
        if not any(drawn):
            return None  # the random operation is where the record does not reach
        kept = [at for at, random in enumerate(drawn) if not random]
        times = {operations[at].name: stage.operations.get(operations[at].name, 0.0) for at in kept}
        total, ran_ms = sum(times.values()), sum(stage.operations.values())
        longest = sorted((operations[at] for at in kept), key=lambda one: -times[one.name])[:3]
        # What random operations take, or nothing takes: results. What does not vary with the element is constant.
        passed = (operations[at] for at in kept if varies[at] and (at in by_random or at not in taken))
        outputs = [output for operation in passed for output in operation.outputs if output[0] != "resource"]
        sizes = [tensor_bytes(*output) if output[0] in WIDTHS else None for output in outputs]
        size = None if None in sizes else sum(filter(None, sizes))
        share = total / ran_ms if ran_ms else 0.0
        heaviest = tuple(one.type for one in longest if times[one.name] >= LONG * total)
        first = graphs.at(operations[drawn.index(True)])
        return cls(part, stage, share, size, heaviest, first)


class RepeatablePrefixes(Record):
    """The random functions of the pipeline that begin with repeatable work, where their graphs were recorded."""

    prefixes: tuple[RepeatablePrefix, ...] = ()

    @classmethod
    def measure(cls, cacheable: Cacheable, pipeline: InputPipeline, graphs: FunctionGraphs | None) -> Self:
        """Look at each random function."""
        found = [RepeatablePrefix.of(part, pipeline, graphs) for part in cacheable.random] if graphs else []
        return cls(tuple(one for one in found if one))


def check(  # noqa: PLR0913, PLR0917 - what is made, what it costs, and where it would be kept
    cacheable: Cacheable, properties: DatasetProperties, pipeline: InputPipeline, repeated: RepeatedWork,
    prefixes: RepeatablePrefixes, breakdown: Breakdown, memory: HostMemory | Unavailable,
    contention: CpuContention, run: RunSteps | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Find work that is identical in every pass, and check whether its output fits into memory."""
    if cacheable.never is not None:
        return NotApplicable(reason="the pipeline has a cache that is never complete; see cache-order")
    divided = [prefix for prefix in prefixes.prefixes if prefix.share >= limits.before_random]
    work = repeated.ms + sum(prefix.ms for prefix in divided)
    if not breakdown.waits_for_input:
        if not contention.crowds_out(repeated.ms, breakdown.step_ms, limits.taken):
            if found := _at_starts(cacheable, pipeline, properties, memory, run, limits):
                return found
            little, taken = breakdown.little_wait, contention.taken_ms(work) / breakdown.step_ms
            unsampled = contention.crowded is None and work >= limits.taken * breakdown.step_ms
            taking = (
                "producing its batches may take CPU cores from the compute: the load of the cores was not sampled; "
                "record with `tfdoctor profile`"
            )
            takes = (
                f"identical work in every epoch takes cores from the compute (up to {percent(taken)} of the step); "
                "reading a cache also takes time, so only a trial can show the gain"
            )
            why = why_not((unsampled, f"{little}, but {taking}"), (taken >= LITTLE, f"{little}, but {takes}"))
            return nothing(f"A cache would save little: {little}", pipeline.why_idle, why)
        divided, work = [], repeated.ms
    parts = cacheable.with_any({stage.dataset.id for stage in repeated.stages if stage.dataset})
    if not parts and not divided:
        if cacheable.unknown:
            return NotApplicable(reason=cacheable.why)
        summary = f"No identical work is repeated in every epoch{': ' if cacheable.why else ''}{cacheable.why}"
        if cacheable.frozen:
            drawn = f"{cacheable.frozen.function} draws random numbers before the cache"
            summary += f"; {drawn}, so all epochs see the same draws"
        return Healthy(summary=summary)
    return Caches(parts, divided, repeated, properties).judged(memory, limits, contention.relief(work))


def _at_starts(
    cacheable: Cacheable, pipeline: InputPipeline, properties: DatasetProperties, memory: HostMemory | Unavailable,
    run: RunSteps | None, limits: Limits,
) -> Finding | None:  # fmt: skip
    """Judge functions that no traced step ran, where the first steps of passes are long; None where they do not.

    Uncached work of a pass that does not run in the middle of one runs at its beginning: a shuffle takes what it
    makes, before any batch is complete. Other work may take a part of these steps.
    """
    shuffles = [stage for stage in properties.chain if kind_of(stage) == "Shuffle"]
    refilled = {one.id for stage in shuffles for one in properties.upstream(stage)}
    idle = [one for one in pipeline.idle if cacheable.holds(one) and one.id in refilled]
    if not idle or run is None or run.long is None or run.first_share < limits.starts:
        return None
    stages = tuple(StageTime(path="", kind=kind_of(one), dataset=one) for one in idle)
    parts = cacheable.with_any({one.id for one in idle})
    finding = Caches(parts, [], RepeatedWork(stages), properties).judged(memory, limits)
    if not isinstance(finding, Finding):
        return None
    label = "share of the time of all steps added by the first ones of passes"
    measures = (one for one in finding.evidence if isinstance(one, Measure))
    return replace(
        finding,
        concern=Concern.LONG_STEPS,
        summary=f"{finding.summary}, at the first step of each pass: "
        f"{milliseconds(run.median_ms + run.long.first_median_ms)} instead of {milliseconds(run.median_ms)}, "
        f"{percent(run.first_share)} of the training time",
        evidence=(
            *measures,
            Measure.share(label, run.first_share, limits.starts),
            Measure("what they add to the mean step at most", ms(run.first_share * run.mean_ms)),
        ),
        effects=(),
        severity=Severity.of(run.first_share),
    )


class Caches(Record):
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
            sizes = map(self.properties.nbytes, (part.last, *self.later(part)))
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
        """Yield how to add each cache: behind a function, behind what a library makes, or within a random one.

        A library may shuffle and batch the elements itself.
        """
        for part in self.behind:
            last, (kinds, moved) = part.last, _moved(part)
            maker, known = _library(last), last.function_at is not None and last.function.isidentifier()
            whole = not part.moved and all(map(repeatable, self.later(part)))
            edit = "cache" if whole or not maker else ""
            if maker and whole:
                action = f"Cache the dataset that {maker}() returns"
                code = f"dataset = {maker}(...)\n{CODE['cache']}"
            elif maker:
                action = f"Let {maker}() return single examples; cache them, then shuffle and batch"
                code = f"dataset = {maker}(..., batch_size=None)\n{CODE['cache']}\n{CODE['batches']}"
            else:
                after = f", and move {kinds} after the cache" if kinds else ""
                action = f"Cache the output of {last.function if known else 'this line'}{after}"
                code = "\n".join(
                    (CODE["mapped"].format(last.function if known else "function"), CODE["cache"], *moved)
                )
            yield Remedy(action, code, last.at, edit)
        for prefix in self.divided:
            last, (kinds, moved) = prefix.part.last, _moved(prefix.part)
            name = last.function if last.function.isidentifier() else "function"
            before = f" (line {prefix.drawn_at.line})" if prefix.drawn_at else ""
            after = f"; move {kinds} after the cache" if kinds else ""
            divide = f"Divide {name} before its first random operation{before}"
            first, second = CODE["mapped"].format(f"{name}_before_random"), CODE["mapped"].format(f"{name}_random")
            code = "\n".join((first, CODE["cache"], *moved, second))
            yield Remedy(f"{divide}, and cache between the parts{after}", code, last.at)

    def later(self, part: CacheablePart) -> list[Dataset]:
        """Return what the same line does with the part's elements, the last first."""
        same = (stage for stage in self.properties.chain if stage.at == part.last.at)
        return [stage for stage in same if part.last in self.properties.upstream(stage)]

    def judged(self, memory: HostMemory | Unavailable, limits: Limits, relief: Iterable[Effect] = ()) -> Verdict:
        """Check how often a cache would be read, and whether it fits into the memory that it may take."""
        passes, size = self.properties.passes, self.nbytes
        if passes is None:
            unknown = "the number of passes over the data is unknown; let the run finish"
            return NotApplicable(reason=f"{self.recomputes}, but {unknown}")
        if passes < limits.passes:
            amount = f"{number(passes)} {'pass' if passes == 1 else 'passes'}"
            return Healthy(summary=f"The run makes {amount} over its data, so a cache would not be read")
        if size is None:
            return NotApplicable(reason=f"{self.recomputes}, but {UNKNOWN_SIZE}")
        taken = quantity(nbytes(size))
        if isinstance(memory, Unavailable):
            return NotApplicable(reason=f"a cache would take {taken}, but {memory}")
        budget = nbytes(limits.memory * (memory.total - memory.used))
        measures = [
            Measure("passes over the data", count(passes), count(limits.passes)),
            Measure("memory of the cache", nbytes(size), budget),
        ]
        for one in self.divided:
            label = f"share of {one.stage.title}'s work before its first random operation"
            measures.append(Measure.share(label, one.share, limits.before_random))
        if size > budget.value:
            most = f"the {quantity(budget)} of memory that a cache may take"
            return Healthy(
                summary=f"{self.recomputes}, but {taken} do not fit into {most}", evidence=tuple(measures)
            )
        divided = (one.stage.scaled(1.0 - one.share, Bound.AT_MOST) for one in self.divided)
        return Finding(
            summary=self.recomputes,
            evidence=(*measures, self.table),
            remedies=tuple(dict.fromkeys(self.remedies())),
            effects=(*self.repeated.effects, *divided, *relief),  # reading a cache is not counted
        )


def _name(stage: StageTime) -> str:
    maker = _library(stage.dataset) if stage.dataset else ""
    return f"{stage.title} of {maker}()" if maker else stage.title


def _library(dataset: Dataset) -> str:
    """Return the function of a library that made a dataset; "" where the user's own code did, or unknown."""
    return "" if dataset.function_at or dataset.made_by in METHODS else dataset.made_by


def _moved(part: CacheablePart) -> tuple[str, list[str]]:
    """Return the kinds of stages that have to move behind the cache, "repeat and shuffle", and their code."""
    kinds = sorted({kind_of(dataset).lower() for dataset in part.moved})
    return " and ".join(kinds), [CODE[name] for kind in kinds if (name := f"after-{kind}") in CODE]
