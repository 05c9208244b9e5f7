from collections import defaultdict

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.growth.growing_counts import clause, counts_table, growing_counts
from tfdoctor.facts.machine.gpu_clocks import GpuClocks
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend
from tfdoctor.facts.phases.run_phases import ENOUGH
from tfdoctor.facts.phases.trend_line import mean_growth
from tfdoctor.rules.growing_step.calls import of_calls, slowest
from tfdoctor.rules.growing_step.causes import remedies
from tfdoctor.rules.growing_step.growing_graph import GrowingGraph
from tfdoctor.rules.growing_step.slowing_calls import SlowingCalls
from tfdoctor.rules.growing_step.step_lines import StepLine, StepLines
from tfdoctor.terms.humanize import time_span

__doc__, CODE = page(__file__)

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)

BY_HAND = "what each step does with what grows is not certain from the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    ratio: float = limit(
        1.2,
        "Smallest ratio of the step time at the end to that at the beginning; clocks and caches change it by "
        "some percent",
    )
    share: float = share_limit(
        0.05,
        "Smallest share of the time of all steps, or of the run where calls get slower, beyond the first step; as "
        "for other findings",
    )
    steps: float = limit(50.0, "Smallest number of steps for a trend; the first ones still warm up")
    line: float = share_limit(
        0.5, "Smallest share of the growth of a step in the lines of one function for which these are the cause"
    )
    throttled: float = share_limit(
        0.1,
        "Smallest share of the busy time in which heat or power reduce the clock of a GPU, which then explains "
        "the growth; as for throttled-device",
    )


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
    grows = long and trend and steps and _grows(trend, counts, steps, limits)
    slowing = None if grows else slowest(calls, phases, limits.ratio, limits.share, limits.steps)
    if slowing:
        return of_calls(slowing, growth, phases)
    graph = GrowingGraph.of(counts, phases, steps, limits.share) if steps and not grows else None
    if graph:
        return graph.finding(counts)
    if not trend or not steps or not long:
        return NotApplicable(reason="the run has too few training steps for a trend of their time")
    if not grows:
        return _level(trend, limits)
    if throttled := _throttled(clocks, limits):
        summary = f"{_grew(trend)} while {throttled}, which throttled-device judges"
        return Healthy(summary=summary, evidence=_measures(trend, limits), concern=Concern.RUN)
    return _finding(trend, counts, _causes(lines, trend, counts, steps, limits), steps, limits)


def _level(trend: Trend, limits: Limits) -> Healthy | NotApplicable:
    """Say that steps do not get slower, or that this is not certain."""
    if trend.low <= 0 and trend.last >= limits.ratio * trend.first:
        span = time_span(trend.first, trend.last)
        unsteady = "so unsteadily that it is not certain whether steps get slower"
        return NotApplicable(reason=f"a step took from {span}, but {unsteady}")
    span = f"{milliseconds(trend.first)} at the beginning and {milliseconds(trend.last)} at the end"
    return Healthy(
        summary=f"A training step took {span} of {number(trend.over_steps)} steps",
        evidence=_measures(trend, limits),
        concern=Concern.RUN,
    )


def _finding(
    trend: Trend, counts: tuple[Trend, ...], causes: tuple[StepLine, ...], steps: RunSteps, limits: Limits
) -> Finding:
    """State the growth and its cause; without one it has no price, since the machine may have become slower."""
    cause = next(iter(causes), None)
    effect = RunEffect(
        phase=Phase.STEPS,
        of=ms(_beyond_ms(trend, steps)),
        subject=location(cause.at if cause else None) or "growth of the step time",
        recurs=Recurrence.PER_STEP,
        times=steps.count,
        bound=Bound.AT_MOST,
    )
    return Finding(
        summary=_summary(trend, counts, cause),
        evidence=(*_measures(trend, limits), *_evidence(trend, counts, causes, steps, limits)),
        remedies=remedies(counts, cause),
        concern=Concern.RUN,
        run_effects=(effect,) if counts or cause else (),
    )


def _evidence(
    trend: Trend, counts: tuple[Trend, ...], causes: tuple[StepLine, ...], steps: RunSteps, limits: Limits
) -> Iterator[Evidence]:
    """Yield what the steps take beyond the first, what grows along, and the lines that grow."""
    beyond_ms = _beyond_ms(trend, steps)
    label, share = "share of the steps' time beyond the first step", beyond_ms / steps.total_ms
    yield Measure("training steps", count(steps.count))
    yield Measure("time of the steps beyond the first step", ms(beyond_ms))
    yield Measure.share(label, share, limits.share)
    yield from counts_table(counts)
    if causes:
        yield Table.of(
            causes,
            ("line", lambda line: line.at),
            ("ms per step at the beginning", lambda line: ms(line.first_ms)),
            ("ms per step at the end", lambda line: ms(line.last_ms)),
            ("what it calls", lambda line: line.calls),
        )


def _grows(trend: Trend, counts: tuple[Trend, ...], steps: RunSteps, limits: Limits) -> bool:
    """Say whether the steps get slower: by their own trend, or because each of them adds to the default graph."""
    enough = _beyond_ms(trend, steps) >= limits.share * steps.total_ms
    graph = bool(counts) and counts[0].what is Grows.GRAPH and trend.slope > 0
    return (trend.grows or graph) and trend.last >= limits.ratio * trend.first and enough


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
    lines: StepLines | None, trend: Trend, counts: tuple[Trend, ...], steps: RunSteps, limits: Limits
) -> tuple[StepLine, ...]:
    """Return the lines that are the cause, first the one to change.

    Of a growing graph that is the line that makes operations; otherwise the lines of the function that holds
    most of the growth, unless that is the training call itself, or all grow alike: a slower machine does that.
    """
    known = lines.lines if lines else ()
    longer = [line for line in known if line.sure and line.grown_ms > 0]
    makers = [line for line in known if line.graph_samples >= ENOUGH]
    if counts and counts[0].what is Grows.GRAPH and makers:
        first = max(makers, key=lambda line: line.graph_samples)
        return (first, *(line for line in longer if line is not first))[:SHOWN_LINES]
    found = _together(longer, steps.at)
    if sum(line.grown_ms for line in found) < limits.line * (trend.last - trend.first):
        return ()
    if not counts and (found[0].at == steps.at or _alike(found, trend, limits)):
        return ()
    return found[:SHOWN_LINES]


def _together(lines: Iterable[StepLine], training: Location | None) -> tuple[StepLine, ...]:
    """Return the lines of the function that grows most; the training call, whose inputs may grow, stands alone.

    So does a line whose function is unknown. That of a comprehension is the function around it.
    """
    holders: dict[str, list[StepLine]] = defaultdict(list)
    for line in lines:
        function = line.function.partition(".<locals>.<")[0]
        alone = function in {"", "<listcomp>"} or line.at == training
        holders[location(line.at) if alone else function].append(line)
    grown = {name: sum(line.grown_ms for line in held) for name, held in holders.items()}
    return tuple(holders[max(grown, key=lambda name: grown[name])]) if grown else ()


def _alike(lines: tuple[StepLine, ...], trend: Trend, limits: Limits) -> bool:
    """Say whether the rest of a step, if there is enough of it, became slower by the same factor as the lines."""
    first_ms, last_ms = sum(line.first_ms for line in lines), sum(line.last_ms for line in lines)
    first, last = trend.first - first_ms, trend.last - last_ms
    is_rest = first >= LEAST_REST * trend.first
    return is_rest and last_ms * first <= limits.ratio * first_ms * last


LEAST_REST = 0.1
"""Share of a step outside of a line from which on it can be compared: less is within the error of samples."""

SHOWN_LINES = 5
"""Lines in the table of those that grow."""


def _grew(trend: Trend) -> str:
    span = time_span(trend.first, trend.last)
    return f"Step time grew from {span} over {number(trend.over_steps)} steps"


def _summary(trend: Trend, counts: tuple[Trend, ...], cause: StepLine | None) -> str:
    grown = [clause(counts[0], trend.over_steps)] if counts else []
    if cause and cause.graph_samples >= ENOUGH:
        grown.append(f"{location(cause.at)} makes operations in each step")
    elif cause:
        span = time_span(cause.first_ms, cause.last_ms)
        grown.append(f"of it {location(cause.at)} takes {span}")
    grown = grown or ["nothing else that was recorded grew along, so the cause is unknown"]
    return "; ".join([_grew(trend), *grown])


def _measures(trend: Trend, limits: Limits) -> tuple[Measure, ...]:
    return (
        Measure("step time at the beginning", ms(trend.first)),
        Measure("step time at the end", ms(trend.last)),
        Measure.share("ratio of the last to the first", trend.last / trend.first, limits.ratio),
    )
