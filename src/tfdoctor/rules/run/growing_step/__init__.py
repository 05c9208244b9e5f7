from tfdoctor.facts.growth.memory_trends import makes_operations, named
from tfdoctor.facts.machine.samples import GpuClocks
from tfdoctor.facts.phases.run_growth import Grows, mean_growth
from tfdoctor.facts.phases.run_phases import ENOUGH
from tfdoctor.families.kit import *
from tfdoctor.rules.run.growing_step.longer_times import LongerTimes, StepLine
from tfdoctor.terms.humanize import time_span

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)


class Limits(RuleLimits):
    ratio: float = limit(1.2)
    share: float = share_limit(0.05)
    steps: float = limit(50.0)
    line: float = share_limit(0.5)
    throttled: float = share_limit(0.1)


# Share of a step outside of a line from which on it can be compared: less is within the error of samples.
LEAST_REST = 0.1
SHOWN_LINES = 5  # Lines in the table of those that grow
UNSTEADY = "so unsteadily that it is not certain whether steps get slower"
UNKNOWN = "nothing else that was recorded grew along, so the cause is unknown"


def check(
    phases: RunPhases, growth: RunGrowth, steps: RunSteps | None, longer: LongerTimes | None,
    clocks: GpuClocks | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Report a time of steps, or of a loop's calls, that certainly grows, with what grows along."""
    trend, counts = growth.of(Grows.STEP) if steps else None, growing_counts(growth)
    long = trend and steps and trend.over_steps >= limits.steps
    # The time of all steps beyond the first one, as the trend has it.
    beyond_ms = min(steps.total_ms, steps.count * mean_growth(trend.first, trend.last)) if trend and steps else 0.0
    # They grow by their own trend, or because each of them adds to the default graph.
    graph = bool(counts) and counts[0].what is Grows.GRAPH
    grows = (
        trend and steps and long and (trend.grows or (graph and trend.slope > 0))
        and trend.last >= limits.ratio * trend.first and beyond_ms >= limits.share * steps.total_ms
    )  # fmt: skip
    other = _besides(longer, counts, phases, steps, limits)
    if other and not grows:
        return other
    if not trend or not steps or not long:
        return NotApplicable(reason="the run has too few training steps for a trend of their time")
    span = time_span(trend.first, trend.last)
    measures = (
        Measure("step time at the beginning", ms(trend.first)),
        Measure("step time at the end", ms(trend.last)),
        Measure.share("ratio of the last to the first", trend.last / trend.first, limits.ratio),
    )
    if not grows and trend.low <= 0 and trend.last >= limits.ratio * trend.first:
        return NotApplicable(reason=f"a step took from {span}, but {UNSTEADY}")
    if not grows:
        ends = f"{milliseconds(trend.first)} at the beginning and {milliseconds(trend.last)} at the end"
        summary = f"A training step took {ends} of {number(trend.over_steps)} steps"
        return Healthy(summary=summary, evidence=measures, concern=Concern.RUN)
    grew = f"Step time grew from {span} over {number(trend.over_steps)} steps"
    # Slowed by heat or power; the power cap alone is usual.
    slowed = (
        (max((gpu.share(reason) for reason in gpu.reasons if reason != "power-cap"), default=0.0), gpu.name)
        for gpu in (clocks.gpus if clocks else ())
    )
    share, gpu = max(slowed, key=lambda one: one[0], default=(0.0, ""))
    if gpu and share >= limits.throttled:
        slower = f"{grew} while {gpu} reduced its clock for {percent(share)} of its busy time"
        summary = f"{slower}, which throttled-device judges"
        return Healthy(summary=summary, evidence=measures, concern=Concern.RUN)
    return _finding(grew, measures, trend, counts, beyond_ms, longer.lines if longer else (), steps, limits)


def _finding(  # noqa: PLR0913, PLR0917 - the trend, and what explains it
    grew: str, measures: Iterable[Measure], trend: Trend, counts: tuple[Trend, ...], beyond_ms: float,
    lines: Sequence[StepLine], steps: RunSteps, limits: Limits,
) -> Finding:  # fmt: skip
    """State the growth and its cause; without one it has no price, since the machine may have become slower."""
    causes = _causes(lines, trend, counts, steps, limits)
    cause = next(iter(causes), None)
    along = [clause(counts[0], trend.over_steps)] if counts else []
    table = Table.of(
        causes,
        ("line", lambda line: line.at),
        ("ms per step at the beginning", lambda line: ms(line.first_ms)),
        ("ms per step at the end", lambda line: ms(line.last_ms)),
        ("what it calls", lambda line: line.calls),
    )
    searched = "Find what grows: the inputs, a list that each step processes, or the load of the machine", "tell"
    if cause:
        takes = f"of it {location(cause.at)} takes {time_span(cause.first_ms, cause.last_ms)}"
        makes = f"{location(cause.at)} makes operations in each step"
        along.append(makes if cause.graph_samples >= ENOUGH else takes)
        searched = f"Let {location(cause.at)} do the same work in each step, however many came before", "running"
    elif counts:
        searched = f"Find what keeps {named(counts[0])}, and what each step does with all of them", "running"
    at, beyond = cause.at if cause else None, "share of the steps' time beyond the first step"
    grown = replace(_effect(Phase.STEPS, beyond_ms, at, steps), subject=location(at) or "growth of the step time")
    return Finding(
        summary="; ".join([grew, *(along or [UNKNOWN])]),
        evidence=(
            *measures,
            Measure("training steps", count(steps.count)),
            Measure("time of the steps beyond the first step", ms(beyond_ms)),
            Measure.share(beyond, beyond_ms / steps.total_ms, limits.share),
            *counts_table(counts),
            *([table] if causes else ()),
        ),
        remedies=(_remedy(counts, at, *searched),),
        concern=Concern.RUN,
        run_effects=(grown,) if counts or cause else (),
    )


def _effect(phase: Phase, time_ms: float, at: Location | None, steps: RunSteps) -> RunEffect:
    return RunPlace(at=at, phase=phase, ms=time_ms, recurs=Recurrence.PER_STEP, times=steps.count).effect


def _remedy(counts: tuple[Trend, ...], at: Location | None, action: str = "", code: str = "") -> Remedy:
    """Return what to do about operations or functions that are made again and again, or else about other growth."""
    kinds = {trend.what for trend in counts}
    if Grows.GRAPH in kinds:
        action, code = "Make all operations once, before the loop", "graph"
    elif Grows.FUNCTIONS in kinds:
        action, code = "Create each tf.function once, outside of the loop", "once"
    return Remedy(action, CODE[code], at)


def _causes(
    lines: Sequence[StepLine], trend: Trend, counts: tuple[Trend, ...], steps: RunSteps, limits: Limits
) -> tuple[StepLine, ...]:
    """Return the lines that are the cause, first the one to change.

    Of a growing graph that is the line that makes operations; otherwise the lines of the function that holds
    most of the growth, unless that is the training call itself, or all grow alike: a slower machine does that.
    The training call, whose inputs may grow, stands alone, and so does a line whose function is unknown.
    """
    longer = [line for line in lines if line.samples >= ENOUGH and line.grown_ms > 0]
    makers = [line for line in lines if line.graph_samples >= ENOUGH]
    if makers and counts and counts[0].what is Grows.GRAPH:
        first = max(makers, key=lambda line: line.graph_samples)
        return (first, *(line for line in longer if line is not first))[:SHOWN_LINES]
    holders: dict[str, list[StepLine]] = defaultdict(list)
    for line in longer:
        function = line.function.partition(".<locals>.<")[0]  # that of a comprehension is the one around it
        alone = function in {"", "<listcomp>"} or line.at == steps.at
        holders[location(line.at) if alone else function].append(line)
    found = max(holders.values(), key=lambda held: sum(line.grown_ms for line in held), default=[])
    first_ms, last_ms = sum(line.first_ms for line in found), sum(line.last_ms for line in found)
    if sum(line.grown_ms for line in found) < limits.line * (trend.last - trend.first):
        return ()
    rest, last = trend.first - first_ms, trend.last - last_ms
    alike = rest >= LEAST_REST * trend.first and last_ms * rest <= limits.ratio * first_ms * last
    return () if not counts and (found[0].at == steps.at or alike) else tuple(found[:SHOWN_LINES])


def _besides(
    longer: LongerTimes | None, counts: tuple[Trend, ...], phases: RunPhases, steps: RunSteps | None, limits: Limits
) -> Finding | None:
    """State which calls of a loop lose most by getting slower, and what grows along: without that, no price.

    Else a line that adds to the default graph, with the time of that and of the long steps that follow.
    """
    least_ms, maker = limits.share * (phases.recurring_ms or phases.total_ms), makes_operations(counts, phases)
    for call in longer.calls if longer else ():
        slower = call.last_ms >= limits.ratio * call.first_ms and call.calls >= limits.steps
        if not slower or call.beyond_ms < least_ms:
            continue
        span = f"{time_span(call.first_ms, call.last_ms)} over {number(call.calls)} calls"
        made = f", made at {location(maker)}" if maker else ""
        along = f"{clause(counts[0])}{made}" if counts else "longer inputs or a slower machine would look the same"
        phase = next((line.phase for line in phases.lines if line.at == call.at), Phase.UNNAMED)
        place = RunPlace(
            at=call.at, phase=phase, ms=call.beyond_ms, recurs=Recurrence.PER_CALL, times=call.calls,
            name=call.name, says=f"{{name}} at {{at}} got slower, from {span}; {along}", priced=bool(counts),
        )  # fmt: skip
        measures = (
            Measure("time of a call at the beginning", ms(call.first_ms)),
            Measure("time of a call at the end", ms(call.last_ms)),
            Measure("calls", count(call.calls)),
            Measure("time of the calls beyond the first one", ms(call.beyond_ms)),
            Measure.share("share of the run beyond the first one", call.beyond_ms / phases.total_ms),
        )
        remedy = _remedy(counts, maker or call.at, f"Find what {call.name} gets more of in each turn", "tell")
        return SlowPlaces.of(phases, [place], 0.0).finding(measures, counts_table(counts), [remedy])
    if not maker or not steps:
        return None
    making_ms = sum(line.ms for line in phases.at(Phase.BUILDING) if line.at == maker)
    longer_ms = max(0.0, phases.of(Phase.STEPS) - steps.count * steps.median_ms) if steps.long else 0.0
    took = f"took {milliseconds(longer_ms)} beyond the usual time"
    after = f"; {counted(steps.long.count, 'long step')} {took}" if steps.long else ""
    if making_ms + longer_ms < least_ms:
        return None
    making = f"{location(maker)} makes operations again and again, which took {milliseconds(making_ms)}"
    return Finding(
        summary=f"{making}, and {clause(counts[0])}{after}",
        evidence=(
            Measure("time of making operations again and again", ms(making_ms)),
            Measure("time of the steps beyond the usual one", ms(longer_ms)),
            *counts_table(counts),
        ),
        remedies=(_remedy(counts, maker),),
        concern=Concern.RUN,
        run_effects=(
            _effect(Phase.BUILDING, making_ms, maker, steps),
            _effect(Phase.STEPS, longer_ms, steps.at, steps),
        ),
    )
