"""Functions that the run traces again and again, whatever the traced steps show of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls, RunTraces, TracedDefinition
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.terms.humanize import location
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Recurrence, RunEffect

KERAS = (RunCall.FIT, RunCall.EVALUATE, RunCall.PREDICT)  # Calls whose functions ``compile`` discards
WITHIN_KERAS = (*KERAS, RunCall.EPOCH)  # Calls that trace such functions


@dataclass(frozen=True, slots=True)
class RepeatedTracing:
    """The functions that are traced again and again, the most expensive first, in the run around them."""

    functions: tuple[TracedDefinition, ...]
    phases: RunPhases
    calls: RunCalls | None

    @classmethod
    def of(
        cls,
        traces: RunTraces | None,
        phases: RunPhases | None,
        calls: RunCalls | None,
        *,
        again: float,
        made: float,
        share: float,
    ) -> Self | None:
        """Return the functions whose tracing goes on through the run and takes enough of it; None without any."""
        if traces is None or phases is None or not phases.whole:
            return None
        found = [
            function
            for function in traces.functions
            if (remade(function) >= made or function.tracings - 1 >= again)
            and _is_fault(function, phases, calls, made)
        ]
        tracing = cls(tuple(sorted(found, key=lambda function: -function.again_ms)), phases, calls)
        enough = found and tracing.again_ms >= share * (phases.recurring_ms or phases.total_ms)
        return tracing if enough else None

    @property
    def worst(self) -> TracedDefinition:
        """The most expensive one."""
        return self.functions[0]

    @property
    def again_ms(self) -> float:
        """The time of all traces but the first of each function."""
        return sum(function.again_ms for function in self.functions)

    @property
    def worst_of_keras(self) -> bool:
        """Whether the worst function is one that ``compile`` discards."""
        lines = {call.at for call in self.calls.of(*KERAS)} if self.calls else set()
        return self.worst.within in WITHIN_KERAS or (self.worst.at is not None and self.worst.at in lines)

    @property
    def compiled(self) -> MadeCall | None:
        """The call of compile that a loop makes, where it is what makes the worst function anew."""
        if self.calls is None or remade(self.worst) == 1 or not self.worst_of_keras:
            return None
        found = self.calls.of(RunCall.COMPILE)
        looped = [call for call in found if call.looped and 2 * call.count > self.worst.made]
        return max(looped, key=lambda call: call.count, default=None)

    def effects(self) -> Iterator[RunEffect]:
        """Yield the time of all traces but the first; an upper bound where new shapes or values need some.

        Compile and its optimizer take the time of all but one call.
        """
        for function in self.functions:
            yield RunEffect(
                phase=Phase.TRACING,
                of=ms(function.again_ms),
                subject=f"{function.name} {location(function.at)}".strip(),
                recurs=self._recurs(function),
                times=max(1, function.tracings - 1),
                bound=Bound.EXPECTED if remade(function) > 1 else Bound.AT_MOST,
            )
        compiled = self.compiled
        if compiled and compiled.at and compiled.count > 1:
            building_ms = sum(line.ms for line in self.phases.at(Phase.BUILDING) if line.at == compiled.at)
            if building_ms:
                yield RunEffect(
                    phase=Phase.BUILDING,
                    of=ms(building_ms * (1 - 1 / compiled.count)),
                    subject=location(compiled.at),
                    recurs=self._recurs(self.worst),
                    times=compiled.count - 1,
                )

    def _recurs(self, function: TracedDefinition) -> Recurrence:
        """Say per epoch where every other epoch or more traces it, as training in a loop over epochs does."""
        epochs = self.calls.epochs if self.calls else 0
        by_epoch = epochs > 1 and epochs / 2 <= function.tracings <= 2 * epochs
        return Recurrence.PER_EPOCH if by_epoch else Recurrence.PER_CALL


def remade(function: TracedDefinition) -> int:
    """Return the function objects, where most traces are first traces of one; 1 otherwise."""
    return function.made if 2 * function.made > function.tracings else 1


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
