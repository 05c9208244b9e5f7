from math import sqrt

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.step_time.long_step_lines import LongStepLines
from tfdoctor.facts.step_time.loop_body import LoopBody
from tfdoctor.facts.step_time.single_operations import SingleOperations
from tfdoctor.facts.step_time.slow_calls import SlowCall, SlowCalls, SlowLine
from tfdoctor.rules.slow_call.instead import INSTEAD
from tfdoctor.rules.slow_call.single_calls import SingleCall, SingleCalls
from tfdoctor.rules.slow_call.writing import Writing

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
BY_HAND = "what the loop does with the result of the call is not certain from the file"

SHOWN_ROWS = 8
"""Rows of the table: the lines that take most of the time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When such calls are reported: both limits must be reached."""

    share: float = share_limit(0.05, "Smallest share of the step in such calls; xprof reports waits from 5 % on")
    samples: float = limit(5.0, "Stack samples in such calls; with 5 their time is uncertain by 45 %")


OF_THE_RUN = {SlowCall.PREDICT: RunCall.PREDICT, SlowCall.EVALUATE: RunCall.EVALUATE, SlowCall.SAVE: RunCall.SAVE}
"""The calls whose time the account of the run has as a phase of its own."""


def check(  # noqa: PLR0913, PLR0917 - the calls, and all facts that say what a change may spare with them
    slow: SlowCalls,
    breakdown: Breakdown,
    long: LongStepLines | None,
    single: SingleOperations | None,
    body: LoopBody | None,
    examples: SingleCalls | None,
    writing: Writing,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the time of such calls with the step, and writes with how often they can be read."""
    if writing.often == 1:
        slow = replace(slow, lines=tuple(one for one in slow.lines if one.call is not SlowCall.WRITE))
    sampled, many = slow, examples.calls if examples else ()
    written = writing.in_graph if writing.often > 1 else ()
    ordered = sorted((*slow.lines, *(one.line for one in many), *written), key=lambda line: -line.ms)
    slow = replace(slow, lines=tuple(ordered))
    seen, share = sum(line.seen for line in slow.lines), breakdown.share(slow.ms)
    measures = (
        Measure.share("share of the step in such calls", share, limits.share),
        Measure("stack samples in such calls", count(seen), count(limits.samples)),
    )
    if share < limits.share or seen < limits.samples:
        return Healthy(summary=_little(slow, long), evidence=measures)
    first = _first_of_each(slow.lines)
    return Finding(
        summary=_summary(slow, many),
        evidence=(*measures, *writing.measures, *_evidence(slow, many)),
        remedies=tuple(replace(_instead(line, writing), at=line.at) for line in first),
        effects=(*_effects(sampled, many, single, body), *writing.step_effects, *_input(slow, breakdown)),
        run_effects=tuple(writing.effects),
        about=OF_THE_RUN.get(first[0].call),
        alike=len(first) - 1,
    )


def _instead(line: SlowLine, writing: Writing) -> Remedy:
    return writing.remedy(line) if line.call is SlowCall.WRITE else INSTEAD[line.call]


def _evidence(slow: SlowCalls, many: Sequence[SingleCall]) -> Iterator[Evidence]:
    """Yield how often each function for one example is called and how long a call takes, and all lines."""
    for one in many:
        yield Measure(f"calls of {one.name} per step", count(one.calls))
        yield Measure(f"time of a call of {one.name}", ms(one.call_ms))
    yield Table.of(
        slow.lines,
        ("your line", lambda line: line.at),
        ("call", lambda line: str(line.call)),
        ("seen in steps", lambda line: f"{line.steps} of {slow.step_count}"),
        ("time per step (estimate)", lambda line: ms(line.ms)),
        most=SHOWN_ROWS,
    )


def _little(slow: SlowCalls, long: LongStepLines | None) -> str:
    """Say how much such calls take of typical steps, and where only long steps make them."""
    if slow.ms:
        return f"Calls such as predict and set_weights take {milliseconds(slow.ms)} per step"
    first = next(iter(long.slow_calls), None) if long and long.timed else None
    if first is None:
        return "No call such as predict and set_weights is seen in typical steps"
    call, at = first.call, location(first.at)
    return f"Calls of {call} ({at}) are not in typical steps, only in long ones; see step-outlier"


def _summary(slow: SlowCalls, many: Sequence[SingleCall]) -> str:
    """Name the kind of call that takes most of the time, and its line that does."""
    first, *others = _first_of_each(slow.lines)
    time_ms = sum(line.ms for line in slow.lines if line.call is first.call)
    called = f"{first.call} in every step"
    if one := next((one for one in many if one.line == first), None):
        called = f"{one.name} {number(round(one.calls))} times in every step, for single examples,"
    of = f"{milliseconds(time_ms)} of each step"
    text = f"Calling {called} takes about {of}, mostly at {location(first.at)}"
    return f"{text}; all such calls take {milliseconds(slow.ms)}" if others else text


def _first_of_each(lines: Sequence[SlowLine]) -> list[SlowLine]:
    """Return the longest line of each kind of call, the kind that takes most first."""
    kinds = dict.fromkeys(line.call for line in lines)
    groups = [[line for line in lines if line.call is kind] for kind in kinds]
    return [group[0] for group in sorted(groups, key=lambda group: -sum(one.ms for one in group))]


def _effects(
    slow: SlowCalls, many: Sequence[SingleCall], single: SingleOperations | None, body: LoopBody | None
) -> tuple[Effect, ...]:
    """Return the calls' time in each part of the step, as a ceiling.

    The operations that Python runs one by one may all be theirs: samples show only a part of short ones.
    """
    alone_ms = single.inside_ms + single.between_ms if single and slow.lines else 0.0
    own_ms = {Stage.HOST: body.host_ms, Stage.BETWEEN: body.between_ms} if body else {}
    times = {stage: _ceiling(slow, stage, own_ms.get(stage, 0.0)) for stage in (Stage.HOST, Stage.BETWEEN)}
    times[Stage.DEVICE] = max(slow.part_ms(Stage.DEVICE), alone_ms)
    for stage in times:
        times[stage] += sum(one.line.parts_ms.get(stage, 0.0) for one in many)
    return Effect.of_stages(times, StepWork.SLOW_CALLS)


def _ceiling(slow: SlowCalls, stage: Stage, own_ms: float) -> float:
    """Return what sampled calls may take of a part: as much as their samples allow for, within Python's time there.

    That is one standard error more than they show; the number of samples is a Poisson count, whose standard
    error is its root.
    """
    seen, time_ms = sum(line.seen for line in slow.lines), slow.part_ms(stage)
    if not seen or not time_ms:
        return 0.0
    return max(time_ms, min(own_ms, time_ms * (1.0 + 1.0 / sqrt(seen))))


def _input(slow: SlowCalls, breakdown: Breakdown) -> tuple[Effect, ...]:
    """Return the waits for the pipelines that the calls build."""
    waits_ms, all_ms = slow.part_ms(Stage.INPUT), breakdown[Stage.INPUT]
    if not waits_ms or not all_ms:
        return ()
    return (Effect(Stage.INPUT, max(0.0, 1.0 - waits_ms / all_ms), bound=Bound.AT_MOST),)
