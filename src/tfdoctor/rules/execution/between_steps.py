from tfdoctor.facts.step_time.host_time import OF_KERAS
from tfdoctor.facts.step_time.python_work import Retracing
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (timed_steps,)

NOISE_MS = 1e-9  # The unit of a trace, 1 ps: less is what sums of floats leave of nothing
RARELY = 0.99  # Share of the time that is spared where work runs every 100 steps


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    least_ms: float = limit(0.5)
    stack_samples: float = limit(5.0)
    longer: float = limit(1.25)


def check(  # noqa: PLR0913, PLR0917 - the time between steps, and all facts that explain a part of it
    breakdown: Breakdown, samples: StackSamples | None, retracing: Retracing | None, slow: SlowCalls | None,
    pace: UntracedPace | None, single: SingleOperations | None, lines: HostLines | None, calls: RunCalls | None,
    run: RunSteps | None, steps: Steps | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Report the time between steps that is neither tracing, making batches nor saving, by callback and line."""
    between_ms, known_ms = (
        breakdown[Stage.BETWEEN],
        retracing.between_ms + retracing.calling_ms if retracing else 0.0,
    )
    work_ms, slow_ms, hotspots = _work(max(0.0, between_ms - known_ms), samples, lines, slow, limits)
    work_ms = work_ms if work_ms >= NOISE_MS else 0.0
    between, other = milliseconds(between_ms), milliseconds(work_ms)
    summary = f"{between} pass between two steps"
    if other != between:
        summary += f", {other} of them in other work than calling or tracing functions and making batches"
    measures = (
        Measure("time between training calls per step", ms(between_ms)),
        Measure(
            "part of it in other work than calling functions or making batches", ms(work_ms), ms(limits.least_ms)
        ),
        Measure.share("share of the step in this work", work_ms / breakdown.step_ms, limits.share),
    )
    own_ms, least_ms = work_ms - slow_ms, max(limits.share * breakdown.step_ms, limits.least_ms)
    # Of more than one step in three; rarer work is step-outlier's.
    often_ms = sorted(row[Stage.BETWEEN] for row in breakdown.steps)[(2 * len(breakdown.steps) - 1) // 3]
    # Saves at the lines of the work are frequent-saving's.
    saves = [one for one in calls.of(RunCall.SAVE) if calls.within_epochs(one)] if calls else []
    saved_ms = sum(one.ms for one in saves if one.at in {spot.at for spot in hotspots})
    saving = own_ms - (saved_ms / run.count if run and run.count else 0.0) < least_ms
    if saving or often_ms < least_ms:
        known = "" if own_ms < least_ms else SAVES if saving else RARE
        takes = PartTime(Stage.BETWEEN, ms(between_ms), _loop(between_ms, steps, limits) or known)
        return Healthy(summary=summary, evidence=measures, necessary=(takes,) if takes.why else ())
    first, seen = next(iter(hotspots), None), sum(one.seen for one in hotspots)
    part = first.seen / seen if first and first.callback else None
    if first and 2 * first.seen >= seen:
        where = f", mostly at {first.at.path}:{first.at.line}" if first.at else ""
        summary += f", mostly in {first.callback}" if first.callback else where
    longer = pace if pace and pace.ratio >= limits.longer else None
    if longer:
        summary += (
            f"; steps outside of the traced ones take {number(round(longer.ratio, 1))} times as long "
            f"({milliseconds(longer.step_ms)}), so that this work may grow with the step number"
        )
    at = first.at if first else None
    remedy = Remedy("Do less work between steps, or do it every 100 steps", CODE["loop"], at)
    if first and first.callback:
        remedy = Remedy(
            f"Run the work of {first.callback} every 100 batches or once per epoch", CODE["callback"], at,
            changes="it sees every 100th batch of an epoch",
        )  # fmt: skip
    table = Table.of(
        hotspots,
        ("callback", lambda one: one.callback or "-"),
        ("your line", lambda one: one.at),
        ("time per step (estimate)", lambda one: ms(work_ms * one.seen / seen)),
        most=SHOWN_ROWS,
    )
    return Finding(
        summary=summary,
        evidence=(
            *measures,
            *((Measure.share(GROWTH, longer.ratio, limits.longer),) if longer else ()),
            *((table,) if hotspots else ()),
        ),
        remedies=(remedy, *((NEW_ONLY,) if longer else ())),
        effects=tuple(_effects(work_ms, slow_ms, part, single.between_ms / between_ms if single else 0.0)),
    )


# What to do about work that takes longer in later steps.
NEW_ONLY = Remedy("If the work grows with the step number, write or compute only what is new in each step")
SAVES = "Saving takes this time; the account of the run has it"
RARE = "At most one step in three has this time; the account of the run has it"
GROWTH = "time of an untraced step relative to a traced one"
LOOP_COST = "Keras' own loop takes 0.1 to 0.3 ms between two training calls"


def _loop(between_ms: float, steps: Steps | None, limits: Limits) -> str:
    """Return that Keras' loop takes so little time between two calls, where it is Keras' loop that trains."""
    return LOOP_COST if steps and steps.source in OF_KERAS and between_ms < limits.least_ms else ""


def _work(
    time_ms: float, samples: StackSamples | None, lines: HostLines | None, slow: SlowCalls | None, limits: Limits
) -> tuple[float, float, list[TimedLine]]:
    """Return the time of the work, that of it in lines of slow-call, and what it is.

    Left out are the lines that python-input and slow-call report, but no part of the callback that takes most: what
    a callback calls is spared with it, so that one finding states all of its time. A step that Python runs one
    operation at a time ends with its last one: what its last line does after that, such as an optimizer's update,
    is not work that a loop could do less often.
    """
    if samples and lines:
        within, between = Counter[Location | None](), Counter[Location | None]()
        for stage, seen in ((Stage.HOST, within), (Stage.BETWEEN, between)):
            for line in lines.parts.get(stage, ()):
                if not line.callback and line.work is LineWork.OPERATIONS:
                    seen[line.at] += line.seen
        own = {at for at, seen in within.items() if seen >= between[at]}
        samples = replace(samples, places=tuple(p for p in samples.places if p.callback or p.at not in own))
        total = sum(line.seen for line in lines.parts.get(Stage.BETWEEN, ()))
        share = sum(between[at] for at in own) / total if total else 0.0
        time_ms *= 1.0 - (share if samples.places or not own else 1.0)  # where nothing else was ever seen
    if samples is None or samples.sample_count < limits.stack_samples:
        return time_ms, 0.0, []
    elsewhere = [one for one in samples.places if one in samples.makers or (slow and one.at in slow.places)]
    hotspots = _hotspots(samples, elsewhere)
    callback = hotspots[0].callback if hotspots else ""
    calls = [place for place in elsewhere if callback and place.callback == callback]
    others = [place for place in elsewhere if place not in calls]
    work_ms, slow_ms = time_ms * (1.0 - samples.share(others)), time_ms * samples.share(calls)
    return work_ms, slow_ms, _hotspots(samples, others)


def _hotspots(samples: StackSamples, elsewhere: Sequence[TimedLine]) -> list[TimedLine]:
    """Return the lines besides those reported elsewhere, most first; a callback is one, at its first line."""
    groups = defaultdict[str | Location | None, Counter[Location | None]](Counter)
    for place in samples.places:
        if place not in elsewhere:
            groups[place.callback or place.at][place.at] += place.seen
    hotspots = [
        TimedLine(seen.most_common(1)[0][0], seen.total(), callback=key if isinstance(key, str) else "")
        for key, seen in groups.items()
    ]
    return sorted(hotspots, key=lambda one: -one.seen)


def _effects(work_ms: float, slow_ms: float, part: float | None, alone: float) -> Iterator[Effect]:
    """Yield what running it every 100 steps saves: 99 % of a callback, a ``part`` of it; of other work at most all.

    The operations that it runs one by one are computing, ``alone`` for each ms, and are spared in the same
    proportion. The time of slow calls in it is the same as slow-call states.
    """
    own_ms = spared_ms = work_ms - slow_ms
    if part is not None:
        spared_ms = RARELY * (part * work_ms - slow_ms)
    bound = Bound.AT_MOST if part is None else Bound.EXPECTED
    parts = (
        (StepWork.BETWEEN_CALLS, own_ms, 1.0 - spared_ms / own_ms),
        (StepWork.SLOW_CALLS, slow_ms, 1.0 - RARELY),
    )
    for subject, time_ms, left in parts:
        for stage, taken_ms in ((Stage.BETWEEN, time_ms), (Stage.DEVICE, time_ms * alone)):
            if taken_ms:
                yield Effect(stage, left, subject, ms(taken_ms), bound=bound)
