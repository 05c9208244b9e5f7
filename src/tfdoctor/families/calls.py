"""Rules about calls of the model that are made too often, in too small batches, or in Python: a row for each.

Here stands, too, what of the time of evaluate, predict and adapt is spent per call or batch, not per example.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tfdoctor.diagnosis.rule import RuleLimits, limit, share_limit
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.run_work.line_groups import ONE_BY_ONE, CalledWork, LineGroup, line_groups
from tfdoctor.families.places import *
from tfdoctor.terms.humanize import counted, milliseconds, percent, with_noun
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import *

# What a call takes besides its batches, in ms: Keras 3.15 on a CPU, one row of a small model, 31 to 45 ms and 42 to
# 49 ms (60 calls of each were measured).
FIXED_MS = {"predict": 35.0, "evaluate": 45.0}
# A call that takes up to so many times its fixed time computes little: machines differ by a factor of two.
MOSTLY_FIXED = 3.0
MOST_FIXED = 10.0  # A call that takes more than so many times its fixed time spends less than a tenth on it
# Stack samples of calls from which on they tell what is executed: with 20 a half is uncertain by 11 points.
LEAST_SAMPLES = 20
LEAST_CALLS = 20  # Calls at one line that are a loop over examples or batches; ensembles and folds have fewer
FEW_ROWS = 64  # Examples of a call that one or two usual batches hold
SINGLE_ROWS = 4  # Examples of a batch that are single ones: a batch of 32 takes hardly longer
# Longest call of predict_on_batch on single examples that mostly starts operations: 0.2 to 0.6 ms measured.
ON_BATCH_MS = 5.0
# Examples of a batch: what Keras takes by default, and one that starts operations 16 times less often.
USUAL_ROWS, LARGE_ROWS = 32, 512
# Longest batch of 32 and of single examples that mostly starts operations: 0.45 ms were measured per batch.
SMALL_BATCH_MS, SINGLE_BATCH_MS = 1.5, 5.0
# Longest batch of adapt that mostly starts operations: of Keras 3.15's layers, single examples took 0.08 to 1.3 ms
# on two cores; longer ones are mostly other work, such as reading and decoding in the dataset.
ADAPT_BATCH_MS = 3.0
ADAPT_ROWS = 4096  # Examples of a batch that are advised for adapt
LEAST_BATCHES = 200  # Batches of a call from which on their size matters
CALL, BATCH = "call", "batch"  # What the time is spent per: the work of a place

PHASES = {RunCall.PREDICT: Phase.PREDICTION, RunCall.EVALUATE: Phase.EVALUATION, RunCall.ADAPT: Phase.PREPARING}

# What some time is spent per, that time, and the share of it that larger calls or batches leave.
Small = tuple[str, float, float, Bound] | None


def small_calls(calls: RunCalls, kind: RunCall, lines: Iterable[RunLine] = ()) -> tuple[RunPlace, ...]:
    """Return the calls of a kind that are too small, those that lose most first.

    Sampled lines of the calls' phase tell how much of a call TensorFlow executes operations.
    """
    timed, found = [line for line in lines if line.exact], []
    for call in calls.of(kind):
        if not call.at:
            continue
        # A loop, such as a callback's, makes it for one part of the data after another, not once per epoch.
        often = call.count >= LEAST_CALLS and call.count > 2 * calls.epochs
        loop = often and (call.looped or call.within is not RunCall.SCRIPT)
        small = _per_call(call, _executing(call, timed)) if loop else None
        small = _adapt(call) if kind is RunCall.ADAPT else small or _per_batch(call)
        if small:
            work, of_ms, left, bound = small
            once = call.before_training or call.after_training
            recurs = Recurrence.PER_EPOCH if calls.epochs > 1 else Recurrence.PER_CALL
            place = RunPlace(
                at=call.at, phase=PHASES[kind], ms=of_ms, left=left, work=work, name=call.name or str(kind),
                recurs=Recurrence.ONCE if once else recurs, times=call.count, bound=bound, call=call,
            )  # fmt: skip
            found.append(place)
    return tuple(sorted(found, key=lambda place: -place.saved_ms))


def _executing(call: MadeCall, lines: Iterable[RunLine]) -> float | None:
    """Return the share of calls in which TensorFlow executes operations; None of too few samples."""
    own = [line for line in lines if line.at == call.at]
    time_ms = sum(line.ms for line in own)
    if sum(line.samples for line in own) < LEAST_SAMPLES or not time_ms:
        return None
    return sum(line.executes_ms for line in own) / time_ms


def _per_call(call: MadeCall, executing: float | None) -> Small:
    fixed_ms, rows, each_ms = _fixed_of(call), call.examples, call.each_ms
    if fixed_ms is None:  # predict_on_batch and the like
        single = rows is not None and rows <= SINGLE_ROWS and each_ms <= ON_BATCH_MS
        return (CALL, call.ms, max(1.0, rows or 0.0) / USUAL_ROWS, Bound.AT_MOST) if single else None
    if executing is not None:
        return CALL, call.ms, max(executing, 1.0 / call.count), Bound.EXPECTED
    if each_ms > MOST_FIXED * fixed_ms:
        return None
    if (rows is None or rows <= FEW_ROWS) and each_ms <= MOSTLY_FIXED * fixed_ms:
        return CALL, call.ms, 1.0 / call.count, Bound.AT_MOST
    return CALL, call.ms, max(0.0, 1.0 - fixed_ms / each_ms), Bound.EXPECTED


def _per_batch(call: MadeCall) -> Small:
    fixed_ms, rows = _fixed_of(call), rows_per_batch(call)
    if fixed_ms is None or rows is None or not call.batches or call.batches < LEAST_BATCHES:
        return None
    batches_ms = max(0.0, call.each_ms - fixed_ms)
    each_ms, all_ms = batches_ms / call.batches, batches_ms * call.count
    if rows <= SINGLE_ROWS and each_ms <= SINGLE_BATCH_MS:
        return BATCH, all_ms, rows / USUAL_ROWS, Bound.AT_MOST
    if rows <= FEW_ROWS and each_ms <= SMALL_BATCH_MS:
        return BATCH, all_ms, rows / LARGE_ROWS, Bound.AT_MOST
    return None


def _adapt(call: MadeCall) -> Small:
    """Return what adapt loses on batches of few examples: each is the same few operations."""
    batches, rows = call.batches or 0.0, rows_per_batch(call)
    if batches < LEAST_BATCHES or rows is None or rows > SINGLE_ROWS or call.each_ms > ADAPT_BATCH_MS * batches:
        return None
    return BATCH, call.ms, max(rows / ADAPT_ROWS, 1.0 / batches), Bound.AT_MOST


def _fixed_of(call: MadeCall) -> float | None:
    """Return what a call takes besides its batches; None is unknown."""
    return FIXED_MS.get(call.name.rpartition(".")[2])


def rows_per_batch(call: MadeCall | None) -> float | None:
    """Return the examples of a batch; None where the recording does not have them."""
    return call.examples / call.batches if call and call.examples and call.batches else None


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
    before: str = (
        ""  # ", before the loop": where to make the one call instead of calls between which nothing trains
    )
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
            first, *more = self.calls
            if self.before and place.recurs is Recurrence.ONCE:  # the model does not change between the calls
                first = replace(first, action=f"{first.action}{self.before}")
            return replace(place, says=says, remedies=(first, *more))
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
