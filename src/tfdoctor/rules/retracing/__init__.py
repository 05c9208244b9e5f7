from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_traces import RunTraces
from tfdoctor.facts.step_time.retracing import Retraced, Retracing
from tfdoctor.facts.step_time.stack_samples import StackSamples
from tfdoctor.rules.retracing import over_run
from tfdoctor.rules.retracing.over_run import RepeatedTracing, repeated
from tfdoctor.rules.retracing.remedies import COMPILE, ONCE, ONE_COMPILE, for_change
from tfdoctor.rules.retracing.run_tracing import RunTracing, TracedInRun

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"

BY_HAND = "whether the function may compute with a tensor instead of a Python value is not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    calls: float = limit(
        2.0,
        "Smallest number of calls in the trace that retrace the function; a single call may be the last, "
        "smaller batch",
    )
    tracings: float = limit(
        3.0,
        "Smallest number of times that the function is traced in the whole run; twice is normal where it "
        "creates variables",
    )
    again: float = limit(
        5.0,
        "Smallest number of calls of the run, after the first, that trace a function which is hardly traced in the "
        "traced steps; TensorFlow itself warns from 5 on",
    )
    made: float = limit(
        3.0,
        "Smallest number of function objects of one name and line from which on the function is made again and "
        "again; two are a model and its fine-tuned copy",
    )
    share: float = share_limit(
        0.05, "Smallest share of the run that such calls take; xprof reports waits from 5 % on"
    )


def check(  # noqa: PLR0913, PLR0917 - the traced steps, and all facts of the run around them
    retracing: Retracing | Unavailable,
    breakdown: Breakdown | None,
    samples: StackSamples | None,
    run: RunTracing | None,
    traces: RunTraces | None,
    phases: RunPhases | None,
    calls: RunCalls | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Report functions that are retraced repeatedly, in the traced steps or over the run."""
    share = limits.share
    again = repeated(traces, phases, calls, again=limits.again, made=limits.made, share=share)
    if isinstance(retracing, Unavailable) or breakdown is None:  # no traced training steps
        if again:
            return over_run.finding(again, {})
        if traces and phases and phases.whole:
            return over_run.healthy(traces, phases)
        missing = retracing if isinstance(retracing, Unavailable) else NO_STEPS
        return NotApplicable(reason=str(missing))
    retraced = [
        function
        for function in retracing.functions
        if function.traced >= limits.calls and function.tracings >= limits.tracings
    ]
    if again:
        return _of_both(again, retracing, retraced, run)
    if retraced:
        return _of_window(retracing, retraced, breakdown, samples.called_at if samples else None)
    return _of_older(run if traces is None else None, retracing, breakdown, limits)


NO_STEPS = "the run has no training steps"


def _of_both(
    again: RepeatedTracing, retracing: Retracing, retraced: Sequence[Retraced], run: RunTracing | None
) -> Finding:
    """State the run's time; where the traced steps show the same, it has a part in the typical step as well."""
    changed = {function.name: function.changed for function in (run.functions if run else ())}
    changed |= {function.name: function.changed for function in retraced}
    found = over_run.finding(again, changed)
    names = {function.name for function in again.functions}
    if names.isdisjoint(function.name for function in retraced):
        return found
    time = Measure("retracing time per typical step", ms(retracing.total_ms))
    return replace(
        found,
        evidence=(*found.evidence, time, _table(retraced)),
        effects=_effects(retracing),
        concern=Concern.TYPICAL_STEP,
    )


def _of_window(
    retracing: Retracing, retraced: Sequence[Retraced], breakdown: Breakdown, at: Location | None
) -> Finding:
    worst = max(retraced, key=lambda function: function.traced)
    return Finding(
        summary=f"{worst.name} was retraced in {worst.traced} of {worst.calls} calls, "
        f"which takes {milliseconds(retracing.total_ms)} of {breakdown.each_step}",
        evidence=(
            Measure("retracing time per step", ms(retracing.total_ms)),
            Measure("step time", ms(breakdown.step_ms)),
            _table(retraced),
        ),
        remedies=(for_change(worst, at),),
        effects=_effects(retracing),
    )


def _of_older(run: RunTracing | None, retracing: Retracing, breakdown: Breakdown, limits: Limits) -> Verdict:
    """State the time of tracing over the whole run: it has no part in the typical steps that savings refer to.

    What counts are functions whose tracing costs enough and went on in the later half of their calls.
    """
    found = [
        function
        for function in (run.functions if run else ())
        if function.again >= limits.again
        and function.last >= function.calls / 2
        and function.step_ms >= limits.share * (function.step_ms + breakdown.step_ms)
    ]
    if found:
        return _of_run(sorted(found, key=lambda function: -function.step_ms), breakdown)
    if not retracing.functions:
        return NotApplicable(reason="the trace contains no call of a tf.function")
    number = sum(function.calls for function in retracing.functions)
    return Healthy(summary=f"No tf.function was retraced repeatedly in {number} calls")


def _of_run(functions: Sequence[TracedInRun], breakdown: Breakdown) -> Finding:
    worst, total_ms = functions[0], sum(function.step_ms for function in functions)
    retraced = [function.retraced for function in functions]
    made, remedy = "", for_change(retraced[0], worst.at)
    if worst.remade:
        made = f" as {worst.made} separate function objects"
        outside = f"Create {worst.name} once, outside of the loop"
        remedy = Remedy(outside, ONCE, worst.at, "function-once")
        if worst.in_fit:
            remedy = Remedy(ONE_COMPILE, COMPILE, worst.at, "compile-once")
    return Finding(
        summary=f"{worst.name} was traced in {worst.tracings} of {worst.calls} calls{made}, which took "
        f"{milliseconds(worst.step_ms)} per step over the run, beside {milliseconds(breakdown.step_ms)} of "
        "a typical step",
        evidence=(
            Measure("tracing time per step over the run", ms(total_ms)),
            Measure("typical step", ms(breakdown.step_ms)),
            _table(retraced),
        ),
        remedies=(remedy,),
        severity=Severity.of(total_ms / (total_ms + breakdown.step_ms)),
        concern=Concern.LONG_STEPS,
    )


def _effects(retracing: Retracing) -> tuple[Effect, ...]:
    return (
        Effect(Stage.HOST, 0.0, StepWork.TRACING, ms(retracing.host_ms)),
        Effect(Stage.BETWEEN, 0.0, StepWork.TRACING, ms(retracing.between_ms)),
    )


def _table(functions: Sequence[Retraced]) -> Table:
    def change(function: Retraced) -> str:
        if function.remade:
            return "none: each is a new function object"
        if not function.changed:
            return "unknown"
        rest = ", ..." if len(function.changed) > SHOWN_VALUES else ""
        return ", ".join(function.changed[:SHOWN_VALUES]) + rest

    return Table.of(
        functions,
        ("function", lambda function: function.name),
        ("calls that retraced", lambda function: count(function.traced)),
        ("calls", lambda function: count(function.calls)),
        ("changing argument", change),
    )


SHOWN_VALUES = 3
"""Values of the changing argument that a cell of the table holds."""
