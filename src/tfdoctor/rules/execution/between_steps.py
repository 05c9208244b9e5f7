from tfdoctor.facts.run_work.loop_places import LoopLines, LoopPlaces
from tfdoctor.facts.savings.run_model import HOST_PARTS
from tfdoctor.facts.step_time.host_time import OF_KERAS
from tfdoctor.facts.step_time.python_work import Retracing
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

RARELY = 0.01  # Share of the time that is left where work runs every 100 steps
LOOP = "Do the work of this line every 100 steps"
IF_NOT_NEEDED = (
    f"{LOOP} if the next step does not need it, once before the loop if its result stays the same, otherwise in a "
    "tf.function"
)
RARER = "Do the work of {} less often, or once per epoch"
CALLBACK = "Do the work of {} every 100 batches or once per epoch"
LOOP_COST = "Keras' own loop takes 0.1 to 0.3 ms between two training calls"
SAVES = "Saving takes this time; the account of the run has it"
RARE = "At most one step in three has this time; the account of the run has it"


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    least_ms: float = limit(0.5)
    run_ms: float = limit(200.0)


def check(  # noqa: PLR0913, PLR0917 - the run, and the typical step
    phases: RunPhases, breakdown: Breakdown | None, loop: LoopPlaces | Unavailable, run: RunSteps | None,
    device: Device | None, retracing: Retracing | None, steps: Steps | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Find what the loop and callbacks do in each step, or every few, besides the call that trains."""
    if not phases.whole:
        return _of_trace(phases, breakdown, retracing, limits)
    if isinstance(loop, Unavailable):
        return NotApplicable(reason=str(loop))
    most_ms = inf
    if breakdown and run and device and device.kind is not DeviceKind.CPU:
        most_ms = sum(breakdown[part] for part in HOST_PARTS) * run.count
    places = [_place(one, most_ms, run) for one in loop.places]
    least_ms = max(limits.run_ms, limits.share * phases.recurring_ms)
    slow = SlowPlaces.of(phases, sorted(places, key=lambda place: -place.saved_ms), least_ms)
    measures = (
        Measure("time in the steps of other work than the call that trains", ms(sum(one.ms for one in places))),
        Measure("longest time that a change at one line saves", ms(slow.longest_ms), ms(least_ms)),
    )
    if not slow.places:
        longest = f", at most {milliseconds(slow.longest_ms)} at one line" if places else ""
        shown = duration(sum(one.ms for one in places))
        text = f"Samples show {shown} of other work in the steps than the calls that train"
        necessary = _known(phases, breakdown, run, steps, limits) if breakdown else ()
        if breakdown and run and not necessary and (unseen := _unseen(breakdown, loop, run, retracing, limits)):
            return NotApplicable(reason=unseen)
        return Healthy(summary=f"{text} in the whole run{longest}", evidence=measures, necessary=necessary)
    return slow.finding(
        measures,
        line_table([place.group for place in slow.places if place.group], phases.total_ms),
        changes(slow.places[:SHOWN]),
    )


def _place(one: LoopLines, most_ms: float, run: RunSteps | None) -> RunPlace:
    """Return work of the loop, or of a callback, with what to do less often.

    What an accelerator hides of work in each step costs the step nothing. Work whose results the next step may
    depend on has no known saving, only a ceiling.
    """
    first, times = one.group.lines[0], run.count if run else 0
    often = ", mostly in a few long steps" if one.rare else ", {each} in each step" if run else ""
    what = "A compiled function" if first.exact else "Python in the loop"
    says = f"{what} works beside the call that trains at {{at}}{{within}}: {PART}{often}"
    action, code, left, bound = IF_NOT_NEEDED, "loop", 0.0, Bound.AT_MOST
    if one.callback:
        says, code = f"{{name}} works between the calls that train at {{at}}: {PART}{often}", "callback"
        action, left, bound = CALLBACK.format(one.callback), RARELY, Bound.EXPECTED
    elif one.aside:
        action, left = LOOP, RARELY  # at most: what is not read to make an argument may be needed all the same
    if one.rare:
        action, left, bound = RARER.format(one.callback or "this line"), 0.0, Bound.AT_MOST
        action += "" if one.callback or one.aside else ", if the steps in between do not need it"
    changed = "it sees every 100th batch of an epoch" if one.callback and not one.rare else ""
    return RunPlace(
        at=first.at, phase=Phase.STEPS, ms=one.ms if one.rare else min(one.ms, most_ms), left=left, says=says,
        name=one.callback, within=in_function(one.group), bound=bound, group=one.group,
        recurs=Recurrence.PER_CALL if one.rare or not run else Recurrence.PER_STEP, times=0 if one.rare else times,
        remedies=(
            Remedy(action, CODE[code], changes=changed),
            *([Remedy(AT_ONCE[one.group.work])] if one.group.work in AT_ONCE else []),
        ),
    )  # fmt: skip


def _known(
    phases: RunPhases, breakdown: Breakdown, run: RunSteps | None, steps: Steps | None, limits: Limits
) -> tuple[PartTime, ...]:
    """Return why there is time between two steps where no work of the script's is seen in it."""
    between_ms, why = breakdown[Stage.BETWEEN], ""
    # Of more than one step in three; rarer work is none of the typical step.
    often_ms = sorted(row[Stage.BETWEEN] for row in breakdown.steps)[(2 * len(breakdown.steps) - 1) // 3]
    saves_ms = phases.of(Phase.SAVING) / run.count if run and run.count else 0.0
    if between_ms < limits.least_ms:
        why = LOOP_COST if steps and steps.source in OF_KERAS else ""
    elif between_ms - saves_ms < limits.least_ms:
        why = SAVES
    elif often_ms < limits.least_ms:
        why = RARE
    return (PartTime(Stage.BETWEEN, ms(between_ms), why),) if why else ()


def _unseen(
    breakdown: Breakdown, loop: LoopPlaces, run: RunSteps, retracing: Retracing | None, limits: Limits
) -> str:
    """Return that there is time between two steps of which no sample shows a line; "" where there is none.

    Python that does not give up its lock for long is hardly sampled.
    """
    unseen_ms = _between(breakdown, retracing) - loop.shown_ms / max(1, run.count)
    if unseen_ms < max(limits.least_ms, limits.share * breakdown.step_ms):
        return ""
    share = percent(unseen_ms / breakdown.step_ms)
    return f"{milliseconds(unseen_ms)} ({share} of the step) pass between two steps in which no sample shows a line"


def _between(breakdown: Breakdown, retracing: Retracing | None) -> float:
    """Return the time between two steps in which no function is called or traced, in ms per step."""
    called_ms = retracing.between_ms + retracing.calling_ms if retracing else 0.0
    return max(0.0, breakdown[Stage.BETWEEN] - called_ms)


def _of_trace(
    phases: RunPhases, breakdown: Breakdown | None, retracing: Retracing | None, limits: Limits
) -> Verdict:
    """Judge the time between two steps of a trace alone, whose lines are not known."""
    if breakdown is None or not breakdown.step_ms:
        return NotApplicable(reason=phases.missing)
    work_ms = _between(breakdown, retracing)
    return judged(
        Measure.share("share of the step between two calls that train", work_ms / breakdown.step_ms, limits.share),
        Measure(
            "time between two such calls per step, without calls of functions", ms(work_ms), ms(limits.least_ms)
        ),
        healthy=f"{milliseconds(work_ms)} pass between two steps",
        finding=f"{milliseconds(work_ms)} pass between two steps",
        remedies=[Remedy("Do less work between steps, or do it every 100 steps", CODE["loop"])],
        effects=Effect.of_stages({Stage.BETWEEN: work_ms}, StepWork.BETWEEN_CALLS),
    )
