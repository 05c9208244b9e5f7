"""Rules about calls of the model that are made too often, in too small batches, or in Python: a row for each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tfdoctor.diagnosis.rule import RuleLimits, limit, share_limit
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.run_work.line_groups import ONE_BY_ONE, CalledWork, LineGroup, line_groups
from tfdoctor.families.places import *
from tfdoctor.families.small_calls import CALL, rows_per_batch, small_calls
from tfdoctor.terms.humanize import counted, milliseconds, percent, with_noun
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import *

WITHIN_FIT = (RunCall.FIT, RunCall.EPOCH)  # Calls around a validation, which epoch-boundary checks


class CallLimits(RuleLimits):
    """When slow calls, or other lines of a run, are reported: a change has to save both."""

    share: float = share_limit(0.05)
    least_ms: float = limit(1000.0)


class CallRule(Record, kw_only=True):
    """A kind of call, the phase of its time, and what to change: batches, calls, a model's loops and Python's."""

    call: RunCall
    phase: Phase
    noun: str  # "prediction"
    results: str  # "Predictions": what Python processes
    nothing: str  # "made no predictions"
    batches: Remedy
    calls: tuple[Remedy, ...]
    model: Remedy
    python: Remedy
    after: tuple[Phase, ...] = ()  # in which its results are processed, too
    outside_fit: bool = False  # calls within Keras' fit count only where a loop makes them

    def check(self, phases: RunPhases, calls: RunCalls, limits: CallLimits) -> Verdict:
        """Find calls whose time goes into many calls and batches, or into Python."""
        made = [one for one in calls.of(self.call) if not (self.outside_fit and one.within in WITHIN_FIT)]
        small = small_calls(calls, self.call, phases.at(self.phase))
        called = [self._called(one) for one in small if one.work == CALL or one.call in made]
        groups, turns = line_groups(phases.at(self.phase, *self.after)), Counter(one.phase for one in phases.spans)
        loops = [
            self._loop(one, turns[one.phase])
            for one in groups
            if one.at and one.work in {CalledWork.MODEL, *ONE_BY_ONE} and any(line.repeats for line in one.lines)
        ]
        least_ms = max(limits.least_ms, limits.share * phases.total_ms)
        slow = SlowPlaces.of(phases, [*called, *loops], least_ms)
        own = [place.call for place in slow.places if place.call]
        python = [place.group for place in slow.places if place.group]
        if not made and not python and not phases.of(self.phase):
            return none_seen(phases, calls, self.nothing)
        measures = slow.measures(f"time of {self.noun}", "longest time that a change at one line saves", self.phase)
        if not slow.places:
            return Healthy(summary=self._usual(phases, made), evidence=measures, concern=Concern.RUN)
        return slow.finding(
            measures,
            (*call_table(own, phases.total_ms), *line_table(python, phases.total_ms)),
            changes([*slow.places[: len(own)][:SHOWN], *slow.places[len(own) :][:SHOWN]]),
            others=None,
            about=self.call if own else None,
        )

    def _called(self, place: RunPlace) -> RunPlace:
        if place.work == CALL:
            says = f"A loop calls {{name}} {{times}} times at {{at}}, which takes {PART}, {{each}} each"
            return replace(place, says=says, remedies=self.calls)
        rows = with_noun(rows_per_batch(place.call) or 0.0, "example")
        each = ", {each} each" if place.times > 1 else ""
        says = f"{{name}} at {{at}} works in batches of {rows}, which takes {PART}{each}"
        return replace(place, says=says, remedies=(self.batches,))

    def _loop(self, group: LineGroup, turns: int) -> RunPlace:
        says, remedy = f"{self.results} are processed one by one in Python at {{at}}: {PART}", self.python
        if group.work is CalledWork.MODEL:
            says = f"A loop calls the model from Python at {{at}}{{within}}, operation by operation: {PART}"
            remedy = self.model
        place = RunPlace(
            at=group.at, phase=group.phase, ms=group.ms, says=says, remedies=(remedy,), group=group,
            within=in_function(group),
        )  # fmt: skip
        return replace(place, recurs=Recurrence.PER_CALL, times=0) if turns > 1 else place  # not counted

    def _usual(self, phases: RunPhases, made: Sequence[MadeCall]) -> str:
        time, share = milliseconds(phases.of(self.phase)), percent(phases.share(self.phase))
        text = f"{self.noun.capitalize()} takes {time} ({share} of the run)"
        if not made:
            return text
        times, taken_ms = sum(call.count for call in made), sum(call.ms for call in made)
        number_of = counted(times, "call")
        if self.outside_fit:
            return f"{text}, of it {milliseconds(taken_ms)} in {number_of} outside of fit"
        return f"{text} in {number_of}{f', {milliseconds(taken_ms / times)} each' if times > 1 else ''}"
