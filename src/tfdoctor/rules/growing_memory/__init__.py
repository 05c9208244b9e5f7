from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.growth.filling_memory import FillingMemory, MemoryTrends
from tfdoctor.facts.growth.growing_counts import clause, counts_table, growing_counts, makes_operations
from tfdoctor.facts.growth.kept_results import KeptResult, KeptResults, kept_table
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend
from tfdoctor.rules.growing_memory.causes import remedies
from tfdoctor.terms.humanize import quantity
from tfdoctor.terms.verdict import RunFailure

__doc__, CODE = page(__file__)

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)

BY_HAND = "what keeps the memory alive is not certain from the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    growth: float = limit(
        100e6,
        "Smallest growth of memory in the recorded run, in bytes; allocators keep some ten megabytes more or "
        "less, and a list of a million losses takes 32 MB",
    )
    along: float = limit(
        32e6,
        "Smallest growth of memory, in bytes, where graphs, traced functions or live objects grow along and so "
        "confirm it",
    )
    share: float = limit(
        0.05,
        "Smallest growth relative to the first level of memory; fragmentation of a large heap may reach some "
        "percent",
    )
    seconds: float = limit(
        20.0,
        "Shortest time, in s, over which memory has to grow; before that, allocators and compiled functions "
        "still warm up",
    )
    kept_seconds: float = limit(
        8.0,
        "Shortest time, in s, over which memory has to grow where a statement of the loop keeps the results of "
        "each step, which explains the growth",
    )
    once: float = share_limit(
        0.5, "Largest share of the run in what comes once, such as loading data, whose growth ends with it"
    )
    models: float = limit(
        3.0, "Number of models fitted one after another from which on tuning-loop judges the memory"
    )


def check(  # noqa: PLR0913, PLR0917 - what grows, what explains it, and what is no leak
    phases: RunPhases,
    memory: MemoryTrends,
    growth: RunGrowth,
    calls: RunCalls | None,
    program: Program | None,
    kept: KeptResults | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Report memory that certainly grows and does not level off."""
    keeps = kept.of_steps if kept else None
    if reason := _why_not(phases, growth, calls, keeps, limits):
        return NotApplicable(reason=reason)
    counts = growing_counts(growth)
    least = limits.along if counts else limits.growth
    large = [m for m in memory.memories if m.grown >= max(least, limits.share * m.trend.first)]
    growing = [one for one in large if one.trend.grows and not one.fills_reserved]
    shown = max(growing, key=lambda one: one.severity, default=memory.memories[0])
    evidence = _evidence(shown, counts, least)
    if not growing:
        return Healthy(summary=_healthy(shown, growth), evidence=evidence, concern=Concern.RUN)
    severity = _severity(shown, counts, phases, calls, program)
    return Finding(
        summary=_summary(shown, counts, growth.seconds, keeps),
        evidence=(*evidence, *kept_table(kept, keeps)),
        remedies=remedies(counts, calls, makes_operations(counts, phases), keeps),
        severity=severity,
        concern=Concern.RUN,
        failure=_failure(severity, counts),
    )


def _why_not(
    phases: RunPhases, growth: RunGrowth, calls: RunCalls | None, keeps: KeptResult | None, limits: Limits
) -> str:
    """Return why a run shows no trend of its memory; "" where it may."""
    if growth.seconds < (limits.kept_seconds if keeps else limits.seconds):
        recorded = milliseconds(1000 * growth.seconds)
        return f"memory was recorded for {recorded} only, in which it still warms up"
    if phases.total_ms - phases.recurring_ms > limits.once * phases.total_ms:
        return "most of the run is what comes once, such as loading data, so its memory shows no trend"
    models = [call.models or 0 for call in calls.of(RunCall.FIT)] if calls else []
    if max(models, default=0) >= limits.models:
        return "models are fitted one after another, so tuning-loop judges the memory"
    return ""


def _healthy(memory: FillingMemory, growth: RunGrowth) -> str:
    """State the numbers: less than a limit is said as such, and a plateau too."""
    name, time = memory.name.capitalize(), milliseconds(1000 * growth.seconds)
    if memory.grown <= 0:
        level = quantity(nbytes(memory.trend.last))
        return f"{name} did not grow in {time}: it was {level} at the end"
    grew = f"{name} grew by {quantity(nbytes(memory.grown))} in {time}"
    if memory.trend.grows and memory.fills_reserved:
        return f"{grew}, where memory was reserved before, as by an array that fills"
    return f"{grew}, which is little" if memory.trend.grows else f"{grew}, and not steadily"


def _severity(
    memory: FillingMemory,
    counts: tuple[Trend, ...],
    phases: RunPhases,
    calls: RunCalls | None,
    program: Program | None,
) -> Severity:
    """Return that of the memory, and at most a note where the growth may be what the run must keep."""
    datasets = program.datasets if program else ()
    caches = any("Cache" in dataset.kind for dataset in datasets)
    first_pass = caches and (calls is None or calls.epochs <= 1)
    results = not counts and not phases.of(Phase.STEPS)
    kept = first_pass or results
    return Severity.NOTE if kept and not memory.ran_out else memory.severity


def _summary(memory: FillingMemory, counts: tuple[Trend, ...], seconds: float, keeps: KeptResult | None) -> str:
    trend = memory.trend
    grew = (
        f"{memory.name.capitalize()} grew from {quantity(nbytes(trend.first))} to "
        f"{quantity(nbytes(trend.last))} in {milliseconds(1000 * seconds)}"
    )
    ends = f", {memory.end}" if memory.end else ""
    along = f"; {clause(counts[0])}" if counts else ""
    adds = f"; {keeps.clause}" if keeps else ""
    return f"{grew}{ends}{along}{adds}"


def _evidence(memory: FillingMemory, counts: tuple[Trend, ...], least: float) -> tuple[Evidence, ...]:
    bound = (Measure("limit of the memory", nbytes(memory.limit)),) if memory.limit else ()
    return (
        Measure(f"{memory.name} at the beginning", nbytes(memory.trend.first)),
        Measure("growth in the run", nbytes(max(0.0, memory.grown)), nbytes(least)),
        Measure("growth per hour", nbytes(max(0.0, 3600 * memory.trend.slope))),
        *bound,
        *counts_table(counts),
    )


def _failure(severity: Severity, counts: tuple[Trend, ...]) -> RunFailure:
    """Say whether the run will fail by it; where traced functions hold the memory, retracing is what to change."""
    traced = bool(counts) and counts[0].what is Grows.FUNCTIONS
    return RunFailure.AHEAD if severity is Severity.CRITICAL and not traced else RunFailure.NONE
