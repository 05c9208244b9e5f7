from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.cacheable import Cacheable, RepeatedWork
from tfdoctor.facts.machine.memory import HostMemory
from tfdoctor.facts.steps.pass_starts import PassStarts
from tfdoctor.rules.uncached_preprocessing.caches import Caches
from tfdoctor.rules.uncached_preprocessing.repeatable_prefix import RepeatablePrefixes

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "a cache at this place would keep batches or their order the same in all epochs"


@dataclass(frozen=True, slots=True)
class Limits:
    passes: float = limit(
        2.0, "Smallest number of passes over the data for which a cache is useful; the first pass only fills it"
    )
    memory: float = share_limit(
        0.5,
        "Largest share of the host's free memory that a cache may take; the rest is for buffers, checkpoints "
        "and later allocations of the run",
    )
    taken: float = share_limit(
        0.2,
        "Smallest share of the step that cacheable work takes from the compute, if the step does not wait for "
        "input but all cores are busy; for shares of 8 to 13 %, manual caches in three scripts of "
        "benchmarks/accuracy saved 15, 3 and -6 %",
    )
    starts: float = share_limit(
        0.05,
        "Smallest share of the untraced time that the first steps of passes add, if the functions only run in "
        "these; as in step-outlier",
    )
    before_random: float = share_limit(
        0.5,
        "Smallest share of a random function's work before its first random operation at which dividing the "
        "function is advised; below it, most of the work remains",
    )


def check(  # noqa: PLR0913, PLR0917 - what is made, what it costs, and where it would be kept
    cacheable: Cacheable,
    properties: DatasetProperties,
    pipeline: InputPipeline,
    repeated: RepeatedWork,
    prefixes: RepeatablePrefixes,
    breakdown: Breakdown,
    memory: HostMemory | Unavailable,
    contention: CpuContention,
    starts: PassStarts | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Find work that is identical in every pass, and check whether its output fits into memory."""
    if cacheable.never is not None:
        return NotApplicable(reason="the pipeline has a cache that is never complete; see cache-order")
    divided = [prefix for prefix in prefixes.prefixes if prefix.share >= limits.before_random]
    work = repeated.ms + sum(prefix.ms for prefix in divided)
    if not breakdown.waits_for_input:
        if not contention.crowds_out(repeated.ms, breakdown.step_ms, limits.taken):
            found = _at_starts(cacheable, pipeline, properties, memory, starts, limits)
            return found or _not_waiting(pipeline, breakdown, work, contention, limits)
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
    verdict = _judged(Caches(parts, divided, repeated, properties), memory, limits)
    if not isinstance(verdict, Finding):
        return verdict
    return replace(verdict, effects=(*verdict.effects, *contention.relief(work)))


LITTLE = 0.05  # Share of the step below which the report says that a cache would save little


def _not_waiting(
    pipeline: InputPipeline, breakdown: Breakdown, work_ms: float, contention: CpuContention, limits: Limits
) -> Verdict:
    """Judge a step that does not wait: a CPU's compute may still lose cores to the input."""
    if pipeline.why_idle:
        return NotApplicable(reason=pipeline.why_idle)
    if contention.crowded is None and work_ms >= limits.taken * breakdown.step_ms:
        return NotApplicable(
            reason=f"{breakdown.little_wait}, but producing its batches may take CPU cores from the compute: "
            "the load of the cores was not sampled; record with `tfdoctor profile`"
        )
    taken = contention.taken_ms(work_ms) / breakdown.step_ms
    if taken >= LITTLE:
        return NotApplicable(
            reason=f"{breakdown.little_wait}, but identical work in every epoch takes cores from the compute "
            f"(up to {percent(taken)} of the step); reading a cache also takes time, so only a trial can show "
            "the gain"
        )
    return Healthy(summary=f"A cache would save little: {breakdown.little_wait}")


def _at_starts(
    cacheable: Cacheable,
    pipeline: InputPipeline,
    properties: DatasetProperties,
    memory: HostMemory | Unavailable,
    starts: PassStarts | None,
    limits: Limits,
) -> Finding | None:
    """Judge functions that no traced step ran, where the first steps of passes are long; None where they do not.

    Uncached work of a pass that does not run in the middle of one runs at its beginning: a shuffle takes what it
    makes, before any batch is complete. Other work may take a part of these steps.
    """
    shuffles = [stage for stage in properties.chain if kind_of(stage) == "Shuffle"]
    refilled = {one.id for stage in shuffles for one in properties.upstream(stage)}
    idle = [one for one in pipeline.idle if cacheable.holds(one) and one.id in refilled]
    if not idle or starts is None or starts.share < limits.starts:
        return None
    stages = tuple(StageTime(path="", kind=kind_of(one), dataset=one) for one in idle)
    parts = cacheable.with_any({one.id for one in idle})
    finding = _judged(Caches(parts, [], RepeatedWork(stages), properties), memory, limits)
    if not isinstance(finding, Finding):
        return None
    label = "share of the untraced time added by the first steps of passes"
    return replace(
        finding,
        concern=Concern.LONG_STEPS,
        summary=f"{finding.summary}, at the first step of each pass: {milliseconds(starts.long_ms)} instead of "
        f"{milliseconds(starts.usual_ms)}, {percent(starts.share)} of the training time",
        evidence=(
            *(one for one in finding.evidence if isinstance(one, Measure)),
            Measure.share(label, starts.share, limits.starts),
            Measure("what they add to the mean step at most", ms(starts.each_step_ms)),
        ),
        effects=(),
        severity=Severity.of(starts.share),
    )


def _judged(caches: Caches, memory: HostMemory | Unavailable, limits: Limits) -> Verdict:
    """Check how often a cache would be read, and whether it fits into the memory that it may take."""
    passes, size = caches.properties.passes, caches.nbytes
    if passes is None:
        unknown = "the number of passes over the data is unknown; let the run finish"
        return NotApplicable(reason=f"{caches.recomputes}, but {unknown}")
    if passes < limits.passes:
        amount = f"{number(passes)} {'pass' if passes == 1 else 'passes'}"
        return Healthy(summary=f"The run makes {amount} over its data, so a cache would not be read")
    if size is None:
        return NotApplicable(reason=f"{caches.recomputes}, but {UNKNOWN_SIZE}")
    taken = quantity(nbytes(size))
    if isinstance(memory, Unavailable):
        return NotApplicable(reason=f"a cache would take {taken}, but {memory}")
    budget = nbytes(limits.memory * (memory.total - memory.used))
    shares = (
        Measure.share(
            f"share of {one.stage.title}'s work before its first random operation", one.share, limits.before_random
        )
        for one in caches.divided
    )
    measures = (
        Measure("passes over the data", count(passes), count(limits.passes)),
        Measure("memory of the cache", nbytes(size), budget),
        *shares,
    )
    if size > budget.value:
        most = f"the {quantity(budget)} of memory that a cache may take"
        return Healthy(summary=f"{caches.recomputes}, but {taken} do not fit into {most}", evidence=measures)
    divided = (one.stage.scaled(1.0 - one.share, Bound.AT_MOST) for one in caches.divided)
    return Finding(
        summary=caches.recomputes,
        evidence=(*measures, caches.table),
        remedies=tuple(dict.fromkeys(caches.remedies())),
        effects=(*caches.repeated.effects, *divided),  # reading a cache is not counted
    )


UNKNOWN_SIZE = (
    "the size of the output is unknown before it is read (text, files or an open shape); if it fits into memory, "
    "add `.cache()` directly after it to save the work from the second epoch on"
)
