from math import ceil

from tfdoctor.facts.kit import by_key
from tfdoctor.facts.run_work.loop_places import costly_lines
from tfdoctor.families.calls import LEAST_CALLS
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)

# Time from which on somebody can read what comes next, in ms: TensorBoard looks for new data every 5 s, the default
# of its --reload_interval.
READ_MS = 5000.0
MOST_STEPS = 100  # Steps from one write to the next at most: 99 % of its time is saved then
MANY = 8.0  # Calls per step from which on one call for all examples spares most of their time (seven eighths of it)
APART_MS = 10.0  # Longest such call apart from the steps: it may loop over tokens, and starts operations for each
SEVERAL_FITS = 5  # Calls of fit from which on they are a loop: scripts train in several phases, or warm up
SHORT_FIT = 2  # Steps of a fit up to which its own cost is in every step
LEAST = 1e-3  # Share of the run below which a line is none of these: it may be seen once
SPREAD = 0.5  # Runs per step from which a summary in the graph is in most steps
RARER = "nothing is written in the other steps"
# Phases of a line that a loop of training steps makes calls at: cloning is building, and writing is saving.
PHASES = (Phase.STEPS, Phase.BUILDING, Phase.SAVING)
OF_BATCHES = re.compile(r"\.on_(train_)?batch_")  # Methods of callbacks that Keras calls in each step


Limits = CallLimits


def check(
    phases: RunPhases, run: RunSteps, calls: RunCalls, operations: Operations | None,
    breakdown: Breakdown | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare the time of such calls with the run, and writes with how often they can be read."""
    lines = [*_lines(phases, run)]
    writes_ms = sum(line.ms for kind, line in lines if kind is SlowCall.WRITE) / run.count
    summaries = [row for row in operations.rows if row.of_summary] if operations else []
    spread = bool(summaries) and max(row.calls for row in summaries) >= SPREAD
    in_graph_ms = sum(row.ms for row in summaries) if spread else 0.0
    rest_ms = max(0.0, run.mean_ms - writes_ms - in_graph_ms)
    often = min(MOST_STEPS, ceil(READ_MS / max(rest_ms, 1.0)))  # in so many steps one write is enough
    alike = by_key(((kind, line.phase), line) for kind, line in lines if kind is not SlowCall.WRITE or often > 1)
    places = [_place(kind, own, run, often) for (kind, _), own in alike.items()]
    places += [*_fits(phases, run, calls), *_singles(phases, run, calls)]
    places.sort(key=lambda place: -place.saved_ms)
    least_ms = max(limits.least_ms, limits.share * phases.recurring_ms)
    all_ms = sum(place.saved_ms for place in places)
    slow = SlowPlaces.of(phases, places if all_ms >= least_ms else [], 0.0)
    apart = Measure("time from one write to the next, without the writing itself", ms(rest_ms), ms(READ_MS))
    measures = (
        Measure("time that fewer of such calls save in the run", ms(all_ms), ms(least_ms)),
        *((apart,) if writes_ms or in_graph_ms else ()),
    )
    step_ms = breakdown.step_ms if breakdown else 0.0
    effects = [row.scaled(1.0 / often) for row in summaries if row.ms] if often > 1 and spread else []
    in_graph = bool(effects) and in_graph_ms >= limits.share * step_ms
    if slow.places:
        found = slow.finding(measures, line_table([one.group for one in slow.places if one.group], phases.total_ms))
        return replace(found, effects=tuple(effects) if in_graph else ())
    if in_graph:
        at = next((row.at for row in sorted(summaries, key=lambda row: -row.ms) if row.at), None)
        taken = f"Summaries in the graph take {milliseconds(in_graph_ms)}"
        code = CODE["write-in-graph"].format(often)
        return Finding(
            summary=f"{taken} of each step, mostly at {location(at)}",
            evidence=measures,
            remedies=(Remedy(f"Write every {often} steps", code, at, changes=RARER),),
            effects=tuple(effects),
        )
    text = f"Calls such as set_weights, and functions that write, take {milliseconds(all_ms)} of the run's steps"
    return Healthy(summary=text, evidence=measures)


def _lines(phases: RunPhases, run: RunSteps) -> Iterator[tuple[SlowCall, RunLine]]:
    """Yield the lines of the steps with such calls, those that take a thousandth of the run."""
    lines = [line for line in phases.at(*PHASES) if line.at and not line.exact]
    for line, kind in costly_lines(lines):
        eager = kind is SlowCall.MODEL and run.source == StepSource.EAGER_GRADIENT  # the step's own model
        again = line.phase is Phase.STEPS or line.looped or OF_BATCHES.search(line.callback)
        known = kind is SlowCall.WRITE or (kind in INSTEAD and kind is not SlowCall.FIT)
        if known and again and not eager and line.ms >= LEAST * phases.total_ms:
            yield kind, line


def _place(kind: SlowCall, lines: Sequence[RunLine], run: RunSteps, often: int) -> RunPlace:
    """Return the calls of a kind in a phase: they are one change, at the line with most time."""
    group = LineGroup(tuple(sorted(lines, key=lambda line: -line.ms)))
    remedy, left, bound = INSTEAD.get(kind), 0.0, Bound.AT_MOST
    if remedy is None:
        remedy = Remedy(f"Write every {often} steps", CODE["write"].format(often), changes=RARER)
        left = 1.0 / often
    return RunPlace(
        at=group.lines[0].at, phase=group.phase, ms=group.ms, left=left, bound=bound, remedies=(remedy,),
        says=f"Calling {kind} in the training loop at {{at}}{{within}} takes {PART}, {{each}} per step",
        within=in_function(group), recurs=Recurrence.PER_STEP, times=run.count, group=group,
    )  # fmt: skip


def _fits(phases: RunPhases, run: RunSteps, calls: RunCalls) -> Iterator[RunPlace]:
    """Yield the lines that call fit for one batch or two, again and again, with the time beside its operations."""
    if calls.fits < SEVERAL_FITS or run.count > SHORT_FIT * calls.fits:
        return
    fits = {call.at: call for call in calls.of(RunCall.FIT) if call.count >= SEVERAL_FITS and call.at}
    for (at, phase), lines in by_key(((line.at, line.phase), line) for line in phases.lines).items():
        if at and (call := fits.get(at)) and phase in {Phase.STEPS, Phase.BOUNDARIES, Phase.PREPARING}:
            yield RunPlace(
                at=at, phase=phase, ms=sum(line.own_ms for line in lines), bound=Bound.AT_MOST, times=call.count,
                says=f"fit is called {{times}} times at {{at}}, for a batch or two each: {PART}",
                remedies=(INSTEAD[SlowCall.FIT],), recurs=Recurrence.PER_CALL, group=LineGroup(tuple(lines)),
            )  # fmt: skip


def _singles(phases: RunPhases, run: RunSteps, calls: RunCalls) -> Iterator[RunPlace]:
    """Yield the lines that call a tf.function for one example after another, many times in each step."""
    for call in calls.of(RunCall.FUNCTION):
        lines = [line for line in phases.lines if line.single and line.at == call.at]
        each, apart = call.count / run.count, bool(lines) and lines[0].phase is not Phase.STEPS
        many = call.count >= LEAST_CALLS if apart else each >= MANY
        if lines and many and call.each_ms <= (APART_MS if apart else ON_BATCH_MS):
            times = "{times} times" if apart else f"{number(round(each))} times per step"
            yield RunPlace(
                at=call.at, phase=lines[0].phase, ms=call.ms, left=1.0 / USUAL_ROWS, name=call.name,
                says=f"{{name}} is called {times} at {{at}}, for one example: {PART}",
                remedies=(SINGLE,), recurs=Recurrence.PER_CALL, times=call.count, bound=Bound.AT_MOST,
                group=LineGroup(tuple(lines)),
            )  # fmt: skip


# What to do instead; the sources are linked on the page. Calls of predict, evaluate and save have phases and rules
# of their own; what is done about a write depends on how long the steps take.
INSTEAD: dict[SlowCall | None, Remedy] = {
    SlowCall.FIT: Remedy("Call train_on_batch, or fit once over all batches", CODE["fit"]),
    SlowCall.WEIGHTS: Remedy("Update the variables in place, in a tf.function", CODE["assign"]),
    SlowCall.CLONE: Remedy("Clone the model once, before the loop"),
    SlowCall.MODEL: Remedy("Call the model in a tf.function", CODE["model"]),
    SlowCall.CLEAR: Remedy("Clear the session once, before the model is built"),
}
SINGLE = Remedy(
    "Stack the examples and call the function once; where a call needs the last one's result, work on several "
    "games, sentences or environments at once", CODE["stacked"],
)  # fmt: skip
