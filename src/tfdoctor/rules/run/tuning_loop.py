from tfdoctor.facts.growth.memory_trends import FillingMemory, KeptResults, kept_table
from tfdoctor.families.kit import *
from tfdoctor.terms.kinds import KeptValue

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)


class Limits(RuleLimits):
    models: float = limit(3.0)
    each: float = limit(8e6)
    growth: float = limit(64e6)
    few: float = limit(100.0)
    many: float = limit(1000.0)
    tracing: float = share_limit(0.10)


MOST_EACH = 2  # Traces of a function object that is made for one model: the second is often a last, smaller batch

REUSE = "Build and compile models of the same operations and sizes once, and reset their weights"
OWN = "Train each model in a process of its own, which gives all memory back"
FORGET = "Forget each model before the next one is built, and see whether memory still grows"


def check(  # noqa: PLR0913, PLR0917 - models, what each leaves, and what keeps it
    phases: RunPhases, calls: RunCalls, memory: MemoryTrends | None, growth: RunGrowth | None,
    traces: RunTraces | None, kept: KeptResults | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Report models built one after another whose memory stays, or whose tracing takes much of the run."""
    fits = [call for call in calls.of(RunCall.FIT) if call.models is not None]
    if not fits:
        return NotApplicable(reason="the run calls no fit of Keras whose models the recording tells apart")
    fit = max(fits, key=lambda call: call.models or 0)
    models, counts = fit.models or 0, growing_counts(growth)
    if models < limits.models:
        return Healthy(summary=f"fit trained {counted(models, 'model')}", concern=Concern.RUN)
    memories = memory.memories if memory else ()
    least = max(limits.growth, models * limits.each)
    large = [one for one in memories if one.trend.grows and one.grown >= least]
    grown = max(large, key=lambda one: one.severity, default=None)
    traced = [one for one in (traces.functions if traces else ()) if one.made >= models]
    again = [one for one in traced if one.tracings <= MOST_EACH * one.made]
    again_ms = sum(one.alike_ms for one in again)
    share = again_ms / phases.total_ms
    evidence: tuple[Evidence, ...] = (
        Measure("models that fit trained", count(models), count(limits.models)),
        *(Measure(f"growth of {one.name}", nbytes(max(0.0, one.grown)), nbytes(limits.growth)) for one in memories),
        Measure.share("share of the run that builds the same graphs again", share, limits.tracing),
        *counts_table(counts),
    )
    trained = f"trained {counted(models, 'model')} one after another"
    building = "building the same graphs again took"
    if grown is None and share < limits.tracing:
        grew = "".join(f", and {one.name} grew by {quantity(nbytes(max(0.0, one.grown)))}" for one in memories[:1])
        summary = f"fit {trained}{grew}; {building} {percent(share)} of the run"
        return Healthy(summary=summary, evidence=evidence, concern=Concern.RUN)
    built = _built(calls, phases, models) or fit.at if share >= limits.tracing else None
    keeps = kept.only(KeptValue.HISTORY, KeptValue.MODEL, fits=True) if kept and grown else None
    cleared = any(line.calls.rpartition(".")[2] == "clear_session" for line in phases.lines)
    severity, left = _left(grown, models, limits) if grown else (Severity.NOTE, "")
    says = [left, *map(clause, counts[:1])] if grown else []
    says += [f"{building} {duration(again_ms)} ({percent(share)} of the run)"] if share >= limits.tracing else []
    says += [keeps.clause] if keeps else []
    effects = tuple(
        tracing_again(one, one.alike_ms, one.alike) for one in (again if share >= limits.tracing else ())
    )
    held = "its History, which holds the model"
    what = held if keeps and keeps.what is KeptValue.HISTORY else "the model"
    return Finding(
        summary=f"{location(fit.at) or 'fit'} {trained}, and {'; '.join(says)}",
        evidence=(*evidence, *(kept_table(kept, keeps) if grown else ())),
        remedies=(
            *([Remedy(REUSE, CODE["reuse"], built)] if share >= limits.tracing else ()),
            *([Remedy(f"Keep numbers of each model, not {what}", CODE["scores"], keeps.at)] if keeps else ()),
            *([Remedy(FORGET, CODE["clear"], fit.at)] if grown and not cleared else ()),
            *([Remedy(OWN, CODE["own"], fit.at)] if grown else ()),
        ),
        severity=(None if effects else Severity.NOTE) if cleared or severity is Severity.NOTE else severity,
        concern=Concern.RUN,
        run_effects=effects,
        failure=RunFailure.AHEAD if grown and grown.ran_out else RunFailure.NONE,
    )


def _left(grown: FillingMemory, models: int, limits: Limits) -> tuple[Severity, str]:
    """Say how bad it is by how many more models fit into the memory: a search has an end, so time says little."""
    each = grown.grown / models
    more = inf if grown.limit is None else max(0.0, grown.limit - grown.trend.last) / each
    end = f", so about {number(float(f'{more:.1g}'))} more fit" if more < inf else ""
    severity = Severity.WARNING if more < limits.many else Severity.NOTE
    if grown.ran_out or more < limits.few:
        severity = Severity.CRITICAL
    left = " and ran out" if grown.ran_out else end
    return severity, f"{grown.name} grew by about {quantity(nbytes(each))} with each{left}"


def _built(calls: RunCalls, phases: RunPhases, models: int) -> Location | None:
    """Return the line that calls the function which compiles each model, or compiles it; None where several do."""
    compiled = [call.at for call in calls.of(RunCall.COMPILE) if call.count >= models]
    if len(compiled) != 1 or compiled[0] is None:
        return None
    callers: dict[Location, float] = defaultdict(float)
    for line in phases.at(Phase.BUILDING):
        if line.caller and line.at and line.at.path == compiled[0].path and line.function != "<module>":
            callers[line.caller] += line.ms
    return max(callers, key=lambda at: callers[at], default=compiled[0])
