from collections import defaultdict

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.growth.memory_trends import clause, counts_table, growing_counts, makes_operations, named
from tfdoctor.facts.machine.samples import GpuClocks
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend, mean_growth
from tfdoctor.facts.phases.run_phases import ENOUGH
from tfdoctor.rules.growing_step.slowing_calls import SlowingCall, SlowingCalls
from tfdoctor.rules.growing_step.step_lines import StepLine, StepLines
from tfdoctor.terms.humanize import time_span

__doc__, CODE = page(__file__)

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)

BY_HAND = "what each step does with what grows is not certain from the file"


@dataclass(frozen=True, slots=True)
class Limits:
    ratio: float = limit(1.2)
    share: float = share_limit(0.05)
    steps: float = limit(50.0)
    line: float = share_limit(0.5)
    throttled: float = share_limit(0.1)


# Share of a step outside of a line from which on it can be compared: less is within the error of samples.
LEAST_REST = 0.1
SHOWN_LINES = 5  # Lines in the table of those that grow


def check(  # noqa: PLR0913, PLR0917 - the trend, and all facts that explain it
    phases: RunPhases,
    growth: RunGrowth,
    steps: RunSteps | None,
    lines: StepLines | None,
    calls: SlowingCalls | None,
    clocks: GpuClocks | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Report a time of steps, or of a loop's calls, that certainly grows, with what grows along."""
    trend = growth.of(Grows.STEP) if steps else None
    counts = growing_counts(growth)
    long = trend and steps and trend.over_steps >= limits.steps
    # Either by their own trend, or because each of them adds to the default graph.
    grows = (
        trend and steps and long and (trend.grows or (_graph(counts) and trend.slope > 0))
        and trend.last >= limits.ratio * trend.first
        and _beyond_ms(trend, steps) >= limits.share * steps.total_ms
    )  # fmt: skip
    other = _slower_calls(calls, counts, phases, limits) or _larger_graph(counts, phases, steps, limits)
    if other and not grows:
        return other
    if not trend or not steps or not long:
        return NotApplicable(reason="the run has too few training steps for a trend of their time")
    span = time_span(trend.first, trend.last)
    grew = f"Step time grew from {span} over {number(trend.over_steps)} steps"
    measures = (
        Measure("step time at the beginning", ms(trend.first)),
        Measure("step time at the end", ms(trend.last)),
        Measure.share("ratio of the last to the first", trend.last / trend.first, limits.ratio),
    )
    if not grows:
        if trend.low <= 0 and trend.last >= limits.ratio * trend.first:
            unsteady = "so unsteadily that it is not certain whether steps get slower"
            return NotApplicable(reason=f"a step took from {span}, but {unsteady}")
        ends = f"{milliseconds(trend.first)} at the beginning and {milliseconds(trend.last)} at the end"
        summary = f"A training step took {ends} of {number(trend.over_steps)} steps"
        return Healthy(summary=summary, evidence=measures, concern=Concern.RUN)
    if throttled := _throttled(clocks, limits):
        summary = f"{grew} while {throttled}, which throttled-device judges"
        return Healthy(summary=summary, evidence=measures, concern=Concern.RUN)
    causes = _causes(lines.lines if lines else (), trend, counts, steps, limits)
    return _finding(grew, measures, trend, counts, causes, steps, limits)


def _finding(  # noqa: PLR0913, PLR0917 - the trend, and what explains it
    grew: str,
    measures: Iterable[Measure],
    trend: Trend,
    counts: tuple[Trend, ...],
    causes: tuple[StepLine, ...],
    steps: RunSteps,
    limits: Limits,
) -> Finding:
    """State the growth and its cause; without one it has no price, since the machine may have become slower."""
    beyond_ms, cause = _beyond_ms(trend, steps), next(iter(causes), None)
    along = [clause(counts[0], trend.over_steps)] if counts else []
    if cause and cause.graph_samples >= ENOUGH:
        along.append(f"{location(cause.at)} makes operations in each step")
    elif cause:
        along.append(f"of it {location(cause.at)} takes {time_span(cause.first_ms, cause.last_ms)}")
    along = along or ["nothing else that was recorded grew along, so the cause is unknown"]
    table = Table.of(
        causes,
        ("line", lambda line: line.at),
        ("ms per step at the beginning", lambda line: ms(line.first_ms)),
        ("ms per step at the end", lambda line: ms(line.last_ms)),
        ("what it calls", lambda line: line.calls),
    )
    effect = _effect(Phase.STEPS, beyond_ms, cause.at if cause else None, steps)
    return Finding(
        summary="; ".join([grew, *along]),
        evidence=(
            *measures,
            Measure("training steps", count(steps.count)),
            Measure("time of the steps beyond the first step", ms(beyond_ms)),
            Measure.share(
                "share of the steps' time beyond the first step", beyond_ms / steps.total_ms, limits.share
            ),
            *counts_table(counts),
            *([table] if causes else ()),
        ),
        remedies=(_known(counts, cause.at if cause else None) or _searched(counts, cause),),
        concern=Concern.RUN,
        run_effects=(replace(effect, subject=effect.subject or "growth of the step time"),)
        if counts or cause
        else (),
    )


def _effect(phase: Phase, time_ms: float, at: Location | None, steps: RunSteps) -> RunEffect:
    return RunPlace(at=at, phase=phase, ms=time_ms, recurs=Recurrence.PER_STEP, times=steps.count).effect


def _known(counts: tuple[Trend, ...], at: Location | None) -> Remedy | None:
    """Return what to do about operations or functions that are made again and again; None for other growth."""
    kinds = {trend.what for trend in counts}
    if Grows.GRAPH in kinds:
        return Remedy("Make all operations once, before the loop", CODE["graph"], at)
    if Grows.FUNCTIONS in kinds:
        return Remedy("Create each tf.function once, outside of the loop", CODE["once"], at)
    return None


def _searched(counts: tuple[Trend, ...], cause: StepLine | None) -> Remedy:
    if cause:
        action = f"Let {location(cause.at)} do the same work in each step, however many came before"
        return Remedy(action, CODE["running"], cause.at)
    if counts:
        return Remedy(
            f"Find what keeps {named(counts[0])}, and what each step does with all of them", CODE["running"]
        )
    action = "Find what grows: the inputs, a list that each step processes, or the load of the machine"
    return Remedy(action, CODE["tell"])


def _graph(counts: tuple[Trend, ...]) -> bool:
    return bool(counts) and counts[0].what is Grows.GRAPH


def _beyond_ms(trend: Trend, steps: RunSteps) -> float:
    """Return the time of all steps beyond that of the first one, as the trend has it."""
    return min(steps.total_ms, steps.count * mean_growth(trend.first, trend.last))


def _throttled(clocks: GpuClocks | None, limits: Limits) -> str:
    """Return which GPU was slowed by heat or power, as a clause; the power cap alone is usual."""
    shares = {
        gpu.name: max((gpu.share(reason) for reason in gpu.reasons if reason != "power-cap"), default=0.0)
        for gpu in (clocks.gpus if clocks else ())
    }
    name = max(shares, key=lambda name: shares[name], default="")
    if not name or shares[name] < limits.throttled:
        return ""
    return f"{name} reduced its clock for {percent(shares[name])} of its busy time"


def _causes(
    lines: Sequence[StepLine], trend: Trend, counts: tuple[Trend, ...], steps: RunSteps, limits: Limits
) -> tuple[StepLine, ...]:
    """Return the lines that are the cause, first the one to change.

    Of a growing graph that is the line that makes operations; otherwise the lines of the function that holds
    most of the growth, unless that is the training call itself, or all grow alike: a slower machine does that.
    """
    longer = [line for line in lines if line.sure and line.grown_ms > 0]
    makers = [line for line in lines if line.graph_samples >= ENOUGH]
    if _graph(counts) and makers:
        first = max(makers, key=lambda line: line.graph_samples)
        return (first, *(line for line in longer if line is not first))[:SHOWN_LINES]
    found = _together(longer, steps.at)
    first_ms, last_ms = sum(line.first_ms for line in found), sum(line.last_ms for line in found)
    if sum(line.grown_ms for line in found) < limits.line * (trend.last - trend.first):
        return ()
    rest, last = trend.first - first_ms, trend.last - last_ms
    alike = rest >= LEAST_REST * trend.first and last_ms * rest <= limits.ratio * first_ms * last
    return () if not counts and (found[0].at == steps.at or alike) else tuple(found[:SHOWN_LINES])


def _together(lines: Iterable[StepLine], training: Location | None) -> list[StepLine]:
    """Return the lines of the function that grows most; the training call, whose inputs may grow, stands alone.

    So does a line whose function is unknown. That of a comprehension is the function around it.
    """
    holders: dict[str, list[StepLine]] = defaultdict(list)
    for line in lines:
        function = line.function.partition(".<locals>.<")[0]
        alone = function in {"", "<listcomp>"} or line.at == training
        holders[location(line.at) if alone else function].append(line)
    return max(holders.values(), key=lambda held: sum(line.grown_ms for line in held), default=[])


def _slower_calls(
    calls: SlowingCalls | None, counts: tuple[Trend, ...], phases: RunPhases, limits: Limits
) -> Finding | None:
    """State which calls of a loop lose most by getting slower, and what grows along: without that, no price."""
    least_ms = limits.share * (phases.recurring_ms or phases.total_ms)

    def enough(call: SlowingCall) -> bool:
        slower = call.last_ms >= limits.ratio * call.first_ms and call.beyond_ms >= least_ms
        return slower and call.calls >= limits.steps

    call = next(filter(enough, calls.calls if calls else ()), None)
    if call is None:
        return None
    maker, beyond_ms = makes_operations(counts, phases), call.beyond_ms
    span = f"{time_span(call.first_ms, call.last_ms)} over {number(call.calls)} calls"
    along = "longer inputs or a slower machine would look the same"
    if counts:
        along = clause(counts[0]) + (f", made at {location(maker)}" if maker else "")
    at, phase = maker or call.at, next((line.phase for line in phases.lines if line.at == call.at), Phase.UNNAMED)
    place = RunPlace(at=call.at, phase=phase, ms=beyond_ms, recurs=Recurrence.PER_CALL, times=call.calls)
    remedy = _known(counts, at) or Remedy(f"Find what {call.name} gets more of in each turn", CODE["tell"], at)
    return Finding(
        summary=f"{call.name} at {location(call.at)} got slower, from {span}; {along}",
        evidence=(
            Measure("time of a call at the beginning", ms(call.first_ms)),
            Measure("time of a call at the end", ms(call.last_ms)),
            Measure("calls", count(call.calls)),
            Measure("time of the calls beyond the first one", ms(beyond_ms)),
            Measure.share("share of the run beyond the first one", beyond_ms / phases.total_ms),
            *counts_table(counts),
        ),
        remedies=(remedy,),
        concern=Concern.RUN,
        run_effects=(place.effect,) if counts else (),
    )


def _larger_graph(
    counts: tuple[Trend, ...], phases: RunPhases, steps: RunSteps | None, limits: Limits
) -> Finding | None:
    """State that a line adds to the default graph, with the time of that and of the long steps that follow."""
    maker = makes_operations(counts, phases) if steps else None
    if not maker or not steps:
        return None
    making_ms = sum(line.ms for line in phases.at(Phase.BUILDING) if line.at == maker)
    longer_ms, after = 0.0, ""
    if steps.long:
        longer_ms = max(0.0, phases.of(Phase.STEPS) - steps.count * steps.median_ms)
        long = counted(steps.long.count, "long step")
        after = f"; {long} took {milliseconds(longer_ms)} beyond the usual time"
    if making_ms + longer_ms < limits.share * (phases.recurring_ms or phases.total_ms):
        return None
    making = f"{location(maker)} makes operations again and again, which took {milliseconds(making_ms)}"
    return Finding(
        summary=f"{making}, and {clause(counts[0])}{after}",
        evidence=(
            Measure("time of making operations again and again", ms(making_ms)),
            Measure("time of the steps beyond the usual one", ms(longer_ms)),
            *counts_table(counts),
        ),
        remedies=(_known(counts, maker) or _searched(counts, None),),
        concern=Concern.RUN,
        run_effects=(
            _effect(Phase.BUILDING, making_ms, maker, steps),
            _effect(Phase.STEPS, longer_ms, steps.at, steps),
        ),
    )
