from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.growth.filling_memory import FillingMemory, MemoryTrends
from tfdoctor.facts.growth.growing_counts import clause, counts_table, growing_counts
from tfdoctor.facts.growth.kept_results import KeptResult, KeptResults, kept_table
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_growth import RunGrowth, Trend
from tfdoctor.facts.phases.run_traces import RunTraces, TracedDefinition
from tfdoctor.terms.humanize import duration, quantity
from tfdoctor.terms.kinds import KeptValue
from tfdoctor.terms.verdict import RunFailure

__doc__, CODE = page(__file__)

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)

BY_HAND = "whether the models differ in more than their weights is not certain from the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    models: float = limit(
        3.0, "Smallest number of different models that fit trains; two are a model and its fine-tuned copy"
    )
    each: float = limit(
        8e6, "Smallest growth of memory for each model, in bytes; allocators keep some megabytes of each training"
    )
    growth: float = limit(
        64e6, "Smallest growth of memory over all models, in bytes; less is within what allocators keep"
    )
    few: float = limit(
        100.0,
        "Number of further models that must fit into memory, or it is critical; random searches try some hundred",
    )
    many: float = limit(
        1000.0, "Number of further models that must fit into memory, or it is a warning; few searches try more"
    )
    tracing: float = share_limit(
        0.10,
        "Smallest share of the run that takes building the same graphs again for later models; a few models of "
        "one kind take less",
    )


MOST_EACH = 2
"""Traces of a function object that is made for one model: the second is often a last, smaller batch."""


def check(  # noqa: PLR0913, PLR0917 - models, what each leaves, and what keeps it
    phases: RunPhases,
    calls: RunCalls,
    memory: MemoryTrends | None,
    growth: RunGrowth | None,
    traces: RunTraces | None,
    kept: KeptResults | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Report models built one after another whose memory stays, or whose tracing takes much of the run."""
    fits = [call for call in calls.of(RunCall.FIT) if call.models is not None]
    if not fits:
        return NotApplicable(reason=NO_FIT)
    fit = max(fits, key=lambda call: call.models or 0)
    models, counts = fit.models or 0, growing_counts(growth)
    if models < limits.models:
        return Healthy(summary=f"fit trained {counted(models, 'model')}", concern=Concern.RUN)
    loop = ModelLoop(fit, _grown(memory, models, limits), _traced(traces, fit), phases)
    evidence = _evidence(loop, memory, counts, limits)
    if loop.grown is None and loop.share < limits.tracing:
        return Healthy(summary=_little(loop, memory), evidence=evidence, concern=Concern.RUN)
    keeps = kept.of_fits if kept and loop.grown else None
    severity, effects = _severity(loop, limits), loop.effects(limits)
    return Finding(
        summary=_summary(loop, counts, limits) + (f"; {keeps.clause}" if keeps else ""),
        evidence=(*evidence, *(kept_table(kept, keeps) if loop.grown else ())),
        remedies=tuple(_remedies(loop, _built(calls, phases, models), keeps, limits)),
        severity=None if effects and severity is Severity.NOTE else severity,
        concern=Concern.RUN,
        run_effects=effects,
        failure=RunFailure.AHEAD if loop.grown and loop.grown.ran_out else RunFailure.NONE,
    )


NO_FIT = "the run calls no fit of Keras whose models the recording tells apart"


@dataclass(frozen=True, slots=True)
class ModelLoop:
    """Models that fit trains one after another: the memory that grows with them, and what is traced for each."""

    fit: MadeCall
    grown: FillingMemory | None
    traced: tuple[TracedDefinition, ...]
    phases: RunPhases

    @property
    def models(self) -> int:
        """Their number."""
        return self.fit.models or 0

    @property
    def again_ms(self) -> float:
        """The time that takes building the same graphs again."""
        return sum(one.alike_ms for one in self.traced)

    @property
    def share(self) -> float:
        """That time as a share of the run."""
        return self.again_ms / self.phases.total_ms

    @property
    def cleared(self) -> bool:
        """Whether a line clears Keras' session."""
        return any(line.calls.rpartition(".")[2] == "clear_session" for line in self.phases.lines)

    @property
    def more(self) -> float | None:
        """How many more models fit into the memory; None is unknown."""
        if self.grown is None or self.grown.limit is None:
            return None
        left = max(0.0, self.grown.limit - self.grown.trend.last)
        return left / (self.grown.grown / self.models)

    def effects(self, limits: Limits) -> tuple[RunEffect, ...]:
        """Return the time of tracing again, if it is much."""
        return tuple(
            RunEffect(
                phase=Phase.TRACING,
                of=ms(one.alike_ms),
                subject=f"{one.name} {location(one.at)}".strip(),
                recurs=Recurrence.PER_CALL,
                times=max(1, one.alike),
                bound=Bound.AT_MOST,
            )
            for one in (self.traced if self.share >= limits.tracing else ())
        )


def _grown(memory: MemoryTrends | None, models: int, limits: Limits) -> FillingMemory | None:
    """Return the memory that grows with the models, the worst."""
    least = max(limits.growth, models * limits.each)
    found = [one for one in (memory.memories if memory else ()) if one.trend.grows and one.grown >= least]
    return max(found, key=lambda one: one.severity, default=None)


def _severity(loop: ModelLoop, limits: Limits) -> Severity:
    """Say how bad it is by how many more models fit: a search has an end, so time says little."""
    if loop.grown is None or loop.cleared:
        return Severity.NOTE
    left = loop.more
    if loop.grown.ran_out or (left is not None and left < limits.few):
        return Severity.CRITICAL
    return Severity.WARNING if left is not None and left < limits.many else Severity.NOTE


def _traced(traces: RunTraces | None, fit: MadeCall) -> tuple[TracedDefinition, ...]:
    """Return the functions that are made anew for each model: those of fit, and of its evaluation."""
    return tuple(
        one
        for one in (traces.functions if traces else ())
        if one.made >= (fit.models or 0) and one.tracings <= MOST_EACH * one.made
    )


def _summary(loop: ModelLoop, counts: tuple[Trend, ...], limits: Limits) -> str:
    made = f"{location(loop.fit.at) or 'fit'} trained {counted(loop.models, 'model')} one after another"
    took = f"{duration(loop.again_ms)} ({percent(loop.share)} of the run)"
    again = f"building the same graphs again took {took}"
    if loop.grown is None:
        return f"{made}, and {again}"
    each = quantity(nbytes(loop.grown.grown / max(1, loop.models)))
    end = ""
    if loop.grown.ran_out:
        end = " and ran out"
    elif loop.more is not None:
        end = f", so about {number(float(f'{loop.more:.1g}'))} more fit"
    grew = f"{loop.grown.name} grew by about {each} with each{end}"
    along = [clause(counts[0])] if counts else []
    traced = [again] if loop.share >= limits.tracing else []
    return "; ".join([f"{made}, and {grew}", *along, *traced])


def _little(loop: ModelLoop, memory: MemoryTrends | None) -> str:
    one = memory.memories[0] if memory else None
    grew = f", and {one.name} grew by {quantity(nbytes(max(0.0, one.grown)))}" if one else ""
    again = f"; building the same graphs again took {percent(loop.share)} of the run"
    return f"fit trained {counted(loop.models, 'model')} one after another{grew}{again}"


def _evidence(
    loop: ModelLoop, memory: MemoryTrends | None, counts: tuple[Trend, ...], limits: Limits
) -> tuple[Evidence, ...]:
    label = "share of the run that builds the same graphs again"
    grown = (
        Measure(f"growth of {one.name}", nbytes(max(0.0, one.grown)), nbytes(limits.growth))
        for one in (memory.memories if memory else ())
    )
    return (
        Measure("models that fit trained", count(loop.models), count(limits.models)),
        *grown,
        Measure.share(label, loop.share, limits.tracing),
        *counts_table(counts),
    )


def _built(calls: RunCalls, phases: RunPhases, models: int) -> Location | None:
    """Return the line that calls the function which compiles each model, or compiles it; None where several do."""
    compiled = [call for call in calls.of(RunCall.COMPILE) if call.count >= models]
    if len(compiled) != 1:
        return None
    path, callers = compiled[0].at.path if compiled[0].at else "", dict[Location, float]()
    for line in phases.at(Phase.BUILDING):
        if line.caller and line.at and line.at.path == path and line.function != "<module>":
            callers[line.caller] = callers.get(line.caller, 0.0) + line.ms
    return max(callers, key=lambda at: callers[at], default=compiled[0].at)


def _remedies(
    loop: ModelLoop, built: Location | None, keeps: KeptResult | None, limits: Limits
) -> Iterator[Remedy]:
    """Yield what saves time, then the change of the statement that keeps the models, then what frees memory."""
    at = loop.fit.at
    if loop.share >= limits.tracing:
        action = "Build and compile models of the same operations and sizes once, and reset their weights"
        yield Remedy(action, CODE["reuse"], built or at)
    if keeps is not None:
        history = keeps.what is KeptValue.HISTORY
        what = "its History, which holds the model" if history else "the model"
        yield Remedy(f"Keep numbers of each model, not {what}", CODE["scores"], keeps.at)
    if loop.grown and not loop.cleared:
        action = "Forget each model before the next one is built, and see whether memory still grows"
        yield Remedy(action, CODE["clear"], at, "clear-session")
    if loop.grown:
        action = "Train each model in a process of its own, which gives all memory back"
        yield Remedy(action, CODE["own"], at)
