from collections import Counter
from typing import Self

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.step_time.host_lines import HostLines, LineWork
from tfdoctor.facts.step_time.retracing import Retracing
from tfdoctor.facts.step_time.single_operations import SingleOperations
from tfdoctor.facts.step_time.slow_calls import SlowCalls
from tfdoctor.facts.step_time.stack_samples import SampledLine, StackSamples
from tfdoctor.facts.steps.untraced_pace import UntracedPace

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
PRECONDITIONS = (timed_steps,)
BY_HAND = "whether training needs what a callback does at each batch is not in the file"

SHOWN_ROWS = 8
"""Rows of the table: the callbacks and lines that take most of the time."""


RARELY = 0.99
"""Share of the time that is spared where work runs every 100 steps."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    share: float = share_limit(
        0.05, "Smallest share of the step between two training calls; xprof reports waits from 5 % on"
    )
    least_ms: float = limit(
        0.5, "Shortest time in ms per step; Keras' own loop takes 0.1 to 0.3 ms between two calls"
    )
    stack_samples: float = limit(5.0, "Stack samples needed before a callback or a line is named")
    longer: float = limit(
        1.25,
        "Smallest ratio of untraced to traced steps of which the report says that the work may grow: 1.19 is "
        "common on a machine that other programs use as well",
    )


@dataclass(frozen=True, slots=True)
class Hotspot:
    """Work between two steps: a callback with its most frequent line, or a line outside of callbacks."""

    callback: str
    at: Location | None
    sample_count: int


@dataclass(frozen=True, slots=True)
class WorkBetween:
    """What is done between two steps, in ms per step; ``slow_ms`` of ``time_ms`` are in lines of slow-call."""

    time_ms: float
    slow_ms: float = 0.0
    hotspots: tuple[Hotspot, ...] = ()

    @classmethod
    def of(cls, free_ms: float, samples: StackSamples | None, slow: SlowCalls | None) -> Self:
        """Leave out the lines that python-input and slow-call report, but no part of the callback that takes most.

        What a callback calls is spared with it, so that one finding states all of its time.
        """
        if samples is None:
            return cls(free_ms)
        slow_lines = slow.places if slow else frozenset()
        elsewhere = [place for place in samples.places if place in samples.makers or place.at in slow_lines]
        hotspots = _hotspots(samples, elsewhere)
        callback = hotspots[0].callback if hotspots else ""
        calls = [place for place in elsewhere if callback and place.callback == callback]
        others = [place for place in elsewhere if place not in calls]
        return cls(
            free_ms * (1.0 - samples.share(others)),
            free_ms * samples.share(calls),
            tuple(_hotspots(samples, others)),
        )

    @property
    def own_ms(self) -> float:
        """The time that no other finding states."""
        return self.time_ms - self.slow_ms

    @property
    def sample_count(self) -> int:
        """The samples in all hotspots."""
        return sum(hotspot.sample_count for hotspot in self.hotspots)

    @property
    def mostly(self) -> str:
        """Names what takes at least half of the time, as a clause; "" where nothing does."""
        first = next(iter(self.hotspots), None)
        if first is None or first.sample_count * 2 < self.sample_count:
            return ""
        if first.callback:
            return f", mostly in {first.callback}"
        return f", mostly at {first.at.path}:{first.at.line}" if first.at else ""


def check(  # noqa: PLR0913, PLR0917 - the time between steps, and all facts that explain a part of it
    breakdown: Breakdown,
    samples: StackSamples | None,
    retracing: Retracing | None,
    slow: SlowCalls | None,
    pace: UntracedPace | None,
    single: SingleOperations | None,
    lines: HostLines | None,
    calls: RunCalls | None,
    run: RunSteps | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Report the time between steps that is neither tracing, making batches nor saving, by callback and line."""
    samples, own_share = _without_own(samples, lines)
    known = samples if samples and samples.sample_count >= limits.stack_samples else None
    between_ms = breakdown[Stage.BETWEEN]
    functions_ms = retracing.between_ms + retracing.calling_ms if retracing else 0.0
    work = WorkBetween.of(max(0.0, between_ms - functions_ms) * (1.0 - own_share), known, slow)
    least_ms = max(limits.share * breakdown.step_ms, limits.least_ms)
    saves = work.own_ms - _saved_ms(work, calls, run) < least_ms
    if work.own_ms < least_ms or saves or _often_ms(breakdown) < least_ms:
        short = between_ms < limits.least_ms
        why = LOOP_COST if short else "" if work.own_ms < least_ms else SAVES if saves else RARE
        return Healthy(
            summary=_summary(work, breakdown),
            evidence=_measures(work, breakdown, limits),
            necessary=(PartTime(Stage.BETWEEN, ms(between_ms), why),) if why else (),
        )
    longer = pace if pace and pace.ratio >= limits.longer else None
    return _finding(work, breakdown, longer, _effects(work, breakdown, single), limits)


def _often_ms(breakdown: Breakdown) -> float:
    """Return the time between steps that more than one step in three has; rarer work is step-outlier's."""
    times = sorted(row[Stage.BETWEEN] for row in breakdown.steps)
    return times[(2 * len(times) - 1) // 3]


def _saved_ms(work: WorkBetween, calls: RunCalls | None, run: RunSteps | None) -> float:
    """Return the time per step of saves at the lines of the work, which frequent-saving states."""
    made = calls.of(RunCall.SAVE) if calls and run and run.count else ()
    at = {one.at for one in work.hotspots}
    saves = (call.ms for call in made if call.at in at and calls and calls.within_epochs(call))
    return sum(saves) / run.count if run and run.count else 0.0


def _summary(work: WorkBetween, breakdown: Breakdown) -> str:
    """State the time between steps, and how much of it is other work where that is not all of it."""
    between, other = milliseconds(breakdown[Stage.BETWEEN]), milliseconds(work.time_ms)
    summary = f"{between} pass between two steps"
    if other == between:
        return summary
    return f"{summary}, {other} of them in other work than calling or tracing functions and making batches"


def _measures(work: WorkBetween, breakdown: Breakdown, limits: Limits) -> tuple[Measure, ...]:
    other = "part of it in other work than calling functions or making batches"
    share = work.time_ms / breakdown.step_ms
    return (
        Measure("time between training calls per step", ms(breakdown[Stage.BETWEEN])),
        Measure(other, ms(work.time_ms), ms(limits.least_ms)),
        Measure.share("share of the step in this work", share, limits.share),
    )


def _finding(
    work: WorkBetween, breakdown: Breakdown, pace: UntracedPace | None, effects: tuple[Effect, ...], limits: Limits
) -> Finding:
    """Name what takes the time; with a pace, say that the traced steps are shorter than the others."""
    summary = f"{_summary(work, breakdown)}{work.mostly}"
    evidence: list[Evidence] = [*_measures(work, breakdown, limits)]
    remedies = [_remedy(next(iter(work.hotspots), None))]
    if pace:
        summary += (
            f"; steps outside of the traced ones take {number(round(pace.ratio, 1))} times as long "
            f"({milliseconds(pace.step_ms)}), so that this work may grow with the step number"
        )
        label = "time of an untraced step relative to a traced one"
        evidence.append(Measure.share(label, pace.ratio, limits.longer))
        remedies.append(NEW_ONLY)
    if work.hotspots:
        evidence.append(_table(work))
    return Finding(summary=summary, evidence=tuple(evidence), remedies=tuple(remedies), effects=effects)


def _table(work: WorkBetween) -> Table:
    return Table.of(
        work.hotspots,
        ("callback", lambda one: one.callback or "-"),
        ("your line", lambda one: one.at),
        ("time per step (estimate)", lambda one: ms(work.time_ms * one.sample_count / work.sample_count)),
        most=SHOWN_ROWS,
    )


def _remedy(first: Hotspot | None) -> Remedy:
    if first and first.callback:
        action = f"Run the work of {first.callback} every 100 batches or once per epoch"
        changes = "it sees every 100th batch of an epoch"
        return Remedy(action, CODE["callback"], first.at, "every-hundred-batches", changes=changes)
    at = first.at if first else None
    action = "Do less work between steps, or do it every 100 steps"
    return Remedy(action, CODE["loop"], at, "loop-work" if at else "")


def _without_own(samples: StackSamples | None, lines: HostLines | None) -> tuple[StackSamples | None, float]:
    """Leave out the lines of the step itself; return also their share of the time between steps.

    A step that Python runs operation by operation ends with its last operation. What its last line does after
    that, such as an optimizer's update, is not work that a loop could do less often.
    """
    if samples is None or lines is None:
        return samples, 0.0
    within = Counter[Location | None]()
    between = Counter[Location | None]()
    for stage, seen in ((Stage.HOST, within), (Stage.BETWEEN, between)):
        for line in lines.parts.get(stage, ()):
            if not line.callback and line.work is LineWork.OPERATIONS:
                seen[line.at] += line.seen
    own = {at for at, seen in within.items() if seen >= between[at]}
    others = tuple(place for place in samples.places if place.callback or place.at not in own)
    if own and not others:  # nothing else was ever seen
        return replace(samples, places=()), 1.0
    total = sum(line.seen for line in lines.parts.get(Stage.BETWEEN, ()))
    share = sum(between[at] for at in own) / total if total else 0.0
    return replace(samples, places=others), share


NEW_ONLY = Remedy("If the work grows with the step number, write or compute only what is new in each step")
"""What to do about work that takes longer in later steps."""


SAVES = "Saving takes this time; the account of the run has it"

RARE = "At most one step in three has this time; the account of the run has it"

LOOP_COST = "Keras' own loop takes 0.1 to 0.3 ms between two training calls"


def _effects(work: WorkBetween, breakdown: Breakdown, single: SingleOperations | None) -> tuple[Effect, ...]:
    """Return what running it every 100 steps saves: 99 % of a callback; of other work at most all.

    The operations that it runs one by one are computing, and are spared in the same proportion. The time of
    slow calls in it is the same as slow-call states.
    """
    spared_ms, bound = work.own_ms, Bound.AT_MOST
    if work.hotspots and work.hotspots[0].callback:
        part = work.hotspots[0].sample_count / work.sample_count
        spared_ms, bound = RARELY * (part * work.time_ms - work.slow_ms), Bound.EXPECTED
    per_ms = single.between_ms / breakdown[Stage.BETWEEN] if single else 0.0
    parts = (
        (StepWork.BETWEEN_CALLS, work.own_ms, 1.0 - spared_ms / work.own_ms),
        (StepWork.SLOW_CALLS, work.slow_ms, 1.0 - RARELY),
    )
    return tuple(
        Effect(stage, left, subject, ms(taken), bound=bound)
        for subject, time_ms, left in parts
        for stage, taken in ((Stage.BETWEEN, time_ms), (Stage.DEVICE, time_ms * per_ms))
        if taken
    )


def _hotspots(samples: StackSamples, elsewhere: Sequence[SampledLine]) -> list[Hotspot]:
    """Return what the stack samples show besides lines reported elsewhere, most first; of a callback as one."""
    lines: dict[str | Location | None, Counter[Location | None]] = {}
    for place in samples.places:
        if place not in elsewhere:
            lines.setdefault(place.callback or place.at, Counter())[place.at] += place.seen
    hotspots = [
        Hotspot(key if isinstance(key, str) else "", seen.most_common(1)[0][0], seen.total())
        for key, seen in lines.items()
    ]
    return sorted(hotspots, key=lambda hotspot: -hotspot.sample_count)
