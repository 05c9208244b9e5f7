"""Functions that the run traces again and again, whatever the traced steps show of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_traces import RunTraces, TracedDefinition
from tfdoctor.facts.step_time.retracing import Retraced
from tfdoctor.rules.retracing.remedies import COMPILE, ONCE, ONE_COMPILE, for_change, of_numbers
from tfdoctor.terms.humanize import counted, location, milliseconds, number, percent
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Bound,
    Concern,
    Evidence,
    Finding,
    Healthy,
    Measure,
    Recurrence,
    Remedy,
    RunEffect,
    Table,
)

KERAS = (RunCall.FIT, RunCall.EVALUATE, RunCall.PREDICT)
"""Calls whose functions ``compile`` discards."""

WITHIN_KERAS = (*KERAS, RunCall.EPOCH)
"""Calls that trace such functions."""


@dataclass(frozen=True, slots=True)
class RepeatedTracing:
    """The functions that are traced again and again, the most expensive first, in the run around them."""

    functions: tuple[TracedDefinition, ...]
    phases: RunPhases
    calls: RunCalls | None

    @property
    def worst(self) -> TracedDefinition:
        """The most expensive one."""
        return self.functions[0]

    @property
    def again_ms(self) -> float:
        """The time of all traces but the first of each function."""
        return sum(function.again_ms for function in self.functions)

    @property
    def compiled(self) -> MadeCall | None:
        """The call of compile that a loop makes, where it is what makes the worst function anew."""
        if self.calls is None or _remade(self.worst) == 1 or not _of_keras(self.worst, self.calls):
            return None
        found = self.calls.of(RunCall.COMPILE)
        looped = [call for call in found if call.looped and 2 * call.count > self.worst.made]
        return max(looped, key=lambda call: call.count, default=None)


def repeated(
    traces: RunTraces | None,
    phases: RunPhases | None,
    calls: RunCalls | None,
    *,
    again: float,
    made: float,
    share: float,
) -> RepeatedTracing | None:
    """Return the functions whose tracing goes on through the run and takes enough of it; None without any."""
    if traces is None or phases is None or not phases.whole:
        return None
    found = [
        function
        for function in traces.functions
        if (_remade(function) >= made or function.tracings - 1 >= again)
        and _is_fault(function, phases, calls, made)
    ]
    functions = tuple(sorted(found, key=lambda function: -function.again_ms))
    tracing = RepeatedTracing(functions, phases, calls)
    enough = functions and tracing.again_ms >= share * (phases.recurring_ms or phases.total_ms)
    return tracing if enough else None


def _is_fault(function: TracedDefinition, phases: RunPhases, calls: RunCalls | None, made: float) -> bool:
    """Say whether it is still traced in the later half of the run after its first trace: warm-up is not.

    A function that is one for each of several models is judged by tuning-loop.
    """
    if function.starts_s:
        first, last = min(function.starts_s), max(function.starts_s)
        if last < (first + phases.total_ms / 1000) / 2:
            return False
    fits = calls.of(*KERAS) if calls else ()
    models = max((call.models or 0 for call in fits if call.at == function.at), default=0)
    return models < made or function.made >= 2 * models


def _remade(function: TracedDefinition) -> int:
    """Return the function objects, where most traces are first traces of one; 1 otherwise."""
    return function.made if 2 * function.made > function.tracings else 1


def _of_keras(function: TracedDefinition, calls: RunCalls | None) -> bool:
    lines = {call.at for call in calls.of(*KERAS)} if calls else set()
    return function.within in WITHIN_KERAS or (function.at is not None and function.at in lines)


def finding(tracing: RepeatedTracing, changed: Mapping[str, tuple[str, ...]]) -> Finding:
    """State what tracing again takes of the run, and how to trace once; ``changed`` is by function."""
    return Finding(
        summary=_summary(tracing),
        evidence=tuple(_evidence(tracing)),
        remedies=(_remedy(tracing, changed),),
        concern=Concern.RUN,
        run_effects=effects(tracing),
    )


def effects(tracing: RepeatedTracing) -> tuple[RunEffect, ...]:
    """Return the time of all traces but the first; an upper bound where new shapes or values need some."""
    traced = tuple(
        RunEffect(
            phase=Phase.TRACING,
            of=ms(function.again_ms),
            subject=f"{function.name} {location(function.at)}".strip(),
            recurs=_recurs(function, tracing.calls),
            times=max(1, function.tracings - 1),
            bound=Bound.EXPECTED if _remade(function) > 1 else Bound.AT_MOST,
        )
        for function in tracing.functions
    )
    return (*traced, *_compiling(tracing))


def _compiling(tracing: RepeatedTracing) -> Iterator[RunEffect]:
    """Yield the time of compile and of its optimizer, but for one call."""
    compiled = tracing.compiled
    lines = tracing.phases.at(Phase.BUILDING) if compiled and compiled.at else ()
    building_ms = sum(line.ms for line in lines if compiled and line.at == compiled.at)
    if compiled and compiled.count > 1 and building_ms:
        yield RunEffect(
            phase=Phase.BUILDING,
            of=ms(building_ms * (1 - 1 / compiled.count)),
            subject=location(compiled.at),
            recurs=_recurs(tracing.worst, tracing.calls),
            times=compiled.count - 1,
        )


def _recurs(function: TracedDefinition, calls: RunCalls | None) -> Recurrence:
    """Say per epoch where every other epoch or more traces it, as training in a loop over epochs does."""
    epochs = calls.epochs if calls else 0
    by_epoch = epochs > 1 and epochs / 2 <= function.tracings <= 2 * epochs
    return Recurrence.PER_EPOCH if by_epoch else Recurrence.PER_CALL


def _summary(tracing: RepeatedTracing) -> str:
    worst = tracing.worst
    made = f" as {number(worst.made)} separate function objects" if _remade(worst) > 1 else ""
    others = len(tracing.functions) - 1
    defined = f" (defined at {location(worst.defined)})" if worst.defined else ""
    more, verb, up_to = (f" and {others} more", "were", "up to ") if others else ("", "was", "")
    cause = ""
    if tracing.compiled and tracing.compiled.at:
        cause = f", since {location(tracing.compiled.at)} compiles the model again"
    elif worst.numbers and _remade(worst) == 1:
        *names, last = (one.name for one in worst.numbers)
        both = f"{', '.join(names)} and {last}" if names else last
        cause = f", since Python values change in {both}"
    share = percent(tracing.again_ms / tracing.phases.total_ms)
    return (
        f"{worst.name}{defined}{more} {verb} traced {up_to}{number(worst.tracings)} times{made}{cause}: "
        f"all but the first took {milliseconds(tracing.again_ms)}, {share} of the run"
    )


def _evidence(tracing: RepeatedTracing) -> Iterator[Evidence]:
    """Yield the time of tracing, and the Python values that change, unless each trace is of a new function."""
    yield Measure("time of tracing again", ms(tracing.again_ms))
    yield Measure.share("share of the run", tracing.again_ms / tracing.phases.total_ms)
    yield Table.of(
        tracing.functions,
        ("function", lambda function: function.name),
        ("line that defines it", lambda function: function.defined),
        ("line that calls it", lambda function: function.at),
        ("calls that traced it", lambda function: count(function.tracings)),
        ("function objects", lambda function: count(function.made)),
        ("time of these calls", lambda function: ms(function.ms)),
    )
    if tracing.worst.numbers and _remade(tracing.worst) == 1:
        yield Table.of(
            tracing.worst.numbers,
            ("parameter", lambda one: one.name),
            ("values", lambda one: ", ".join(one.values[:SHOWN_VALUES])),
            ("line that assigns it", lambda one: one.at),
        )


SHOWN_VALUES = 3
"""Values of a parameter that a cell of the table holds."""


def _remedy(tracing: RepeatedTracing, changed: Mapping[str, tuple[str, ...]]) -> Remedy:
    """Choose by what makes the function anew: compile, a loop, or an argument that changes."""
    worst, traced = tracing.worst, tracing.worst.tracings
    if tracing.compiled:
        return Remedy(KEPT_OPTIMIZER, COMPILE, tracing.compiled.at, "compile-once")
    if _remade(worst) > 1 and _of_keras(worst, tracing.calls):
        return Remedy(ONE_COMPILE, COMPILE, worst.at)
    if _remade(worst) > 1:
        action = f"Create {worst.name} once, outside of the loop"
        at = worst.defined if worst.redefined and worst.defined else worst.at
        return Remedy(action, ONCE, at, "function-once")
    if worst.numbers:
        return of_numbers(worst)
    function = Retraced(worst.name, traced, traced, traced, changed.get(worst.name, ()))
    return for_change(function, worst.at)


KEPT_OPTIMIZER = (
    "Compile the model once, before the loop, and assign the learning rate; the optimizer keeps its state"
)


def healthy(traces: RunTraces, phases: RunPhases) -> Healthy:
    """State how much of the run tracing took."""
    share = percent(phases.share(Phase.TRACING))
    times = sum(function.tracings for function in traces.functions)
    again = ", none of them again and again" if times > 1 else ""
    return Healthy(
        summary=f"{counted(times, 'call')} of the run traced a tf.function{again}; tracing and compiling took "
        f"{share} of it",
        concern=Concern.RUN,
    )
