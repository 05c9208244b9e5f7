from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.training_inputs import bucketing, few_lengths
from tfdoctor.facts.phases.run_calls import RunCalls, RunTraces, TracedDefinition
from tfdoctor.facts.step_time.python_work import Retraced, Retracing
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.rules.retracing.over_run import RepeatedTracing, remade
from tfdoctor.rules.retracing.run_tracing import RunTracing, TracedInRun

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"

BY_HAND = "whether the function may compute with a tensor instead of a Python value is not in the file"

SHOWN_VALUES = 3  # Values of the changing argument, or parameter, that a cell of a table holds
SEVERAL = 2  # Different shapes from which on the shape is what changes
# A tensor's shape; the groups are its dimensions and its type.
SHAPED = re.compile(r"TensorSpec\(shape=\((\w+(?:, \w+)*),?\)(?:, dtype=(tf\.\w+))?")

NUMBER = re.compile(r"-?[\d.]+(e[+-]?\d+)?|True|False")


@dataclass(frozen=True, slots=True)
class Limits:
    calls: float = limit(2.0)
    tracings: float = limit(3.0)
    again: float = limit(5.0)
    made: float = limit(3.0)
    share: float = share_limit(0.05)


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
    again = RepeatedTracing.of(traces, phases, calls, again=limits.again, made=limits.made, share=limits.share)
    if isinstance(retracing, Unavailable) or breakdown is None:  # no traced training steps
        if again:
            return _over_run(again, {})
        if traces and phases and phases.whole:
            return _healthy(traces, phases)
        missing = retracing if isinstance(retracing, Unavailable) else "the run has no training steps"
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


def _healthy(traces: RunTraces, phases: RunPhases) -> Healthy:
    share = percent(phases.share(Phase.TRACING))
    times = sum(function.tracings for function in traces.functions)
    again = ", none of them again and again" if times > 1 else ""
    return Healthy(
        summary=f"{counted(times, 'call')} of the run traced a tf.function{again}; tracing and compiling took "
        f"{share} of it",
        concern=Concern.RUN,
    )


def _of_both(
    again: RepeatedTracing, retracing: Retracing, retraced: Sequence[Retraced], run: RunTracing | None
) -> Finding:
    """State the run's time; where the traced steps show the same, it has a part in the typical step as well."""
    seen: list[Retraced | TracedInRun] = [*(run.functions if run else ()), *retraced]
    changed = {function.name: function.changed for function in seen}
    found = _over_run(again, changed)
    names = {function.name for function in again.functions}
    if names.isdisjoint(function.name for function in retraced):
        return found
    time = Measure("retracing time per typical step", ms(retracing.total_ms))
    evidence = (*found.evidence, time, _table(retraced))
    return replace(found, evidence=evidence, effects=_effects(retracing), concern=Concern.TYPICAL_STEP)


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
        remedies=(_for_change(worst.name, worst.changed, at),),
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
    if not found:
        if not retracing.functions:
            return NotApplicable(reason="the trace contains no call of a tf.function")
        calls = sum(function.calls for function in retracing.functions)
        return Healthy(summary=f"No tf.function was retraced repeatedly in {calls} calls")
    found.sort(key=lambda function: -function.step_ms)
    worst, total_ms = found[0], sum(function.step_ms for function in found)
    made, remedy = "", _for_change(worst.name, worst.changed, worst.at)
    if worst.remade:
        made = f" as {worst.made} separate function objects"
        remedy = Remedy(ONCE.format(worst.name), CODE["once"], worst.at, "function-once")
        if worst.in_fit:
            remedy = Remedy(ONE_COMPILE, CODE["compile"], worst.at, "compile-once")
    return Finding(
        summary=f"{worst.name} was traced in {worst.traced} of {worst.calls} calls{made}, which took "
        f"{milliseconds(worst.step_ms)} per step over the run, beside {milliseconds(breakdown.step_ms)} of "
        "a typical step",
        evidence=(
            Measure("tracing time per step over the run", ms(total_ms)),
            Measure("typical step", ms(breakdown.step_ms)),
            _table(found),
        ),
        remedies=(remedy,),
        severity=Severity.of(total_ms / (total_ms + breakdown.step_ms)),
        concern=Concern.LONG_STEPS,
    )


ONCE = "Create {} once, outside of the loop"

ONE_COMPILE = "Compile the model once, before the loop that calls fit"


def _effects(retracing: Retracing) -> tuple[Effect, ...]:
    return (
        Effect(Stage.HOST, 0.0, StepWork.TRACING, ms(retracing.host_ms)),
        Effect(Stage.BETWEEN, 0.0, StepWork.TRACING, ms(retracing.between_ms)),
    )


def _table(functions: Sequence[Retraced | TracedInRun]) -> Table:
    def change(function: Retraced | TracedInRun) -> str:
        if isinstance(function, TracedInRun) and function.remade:
            return "none: each is a new function object"
        rest = ", ..." if len(function.changed) > SHOWN_VALUES else ""
        return ", ".join(function.changed[:SHOWN_VALUES]) + rest or "unknown"

    return Table.of(
        functions,
        ("function", lambda function: function.name),
        ("calls that retraced", lambda function: count(function.traced)),
        ("calls", lambda function: count(function.calls)),
        ("changing argument", change),
    )


def _for_change(name: str, changed: Sequence[str], at: Location | None) -> Remedy:
    """Choose by what changes: a Python number, a shape, or something else."""
    if changed and all(map(NUMBER.fullmatch, changed)):
        code = CODE["tensor"].format(name, "step")
        return Remedy(f"Pass {name} a tensor instead of a Python number", code, at, "tensor-argument")
    found = [match for value in changed if (match := SHAPED.match(value))]
    shapes = [tuple(match[1].split(", ")) for match in found]
    if len(shapes) < len(changed) or len(set(shapes)) < SEVERAL:
        return Remedy(f"Find what changes in each call of {name} and keep it constant", CODE["once"], at)
    dimensions = list(zip(*shapes, strict=False))
    fixed = ", ".join(values[0] if len(set(values)) == 1 else "None" for values in dimensions)
    shape = f"[{fixed}]" if len({len(shape) for shape in shapes}) == 1 else "None"
    signature = f"tf.TensorSpec({', '.join(filter(None, (shape, found[0][2])))})"
    differing = next((values for values in dimensions[1:] if len(set(values)) > 1), ())
    lengths = tuple(int(value) for value in differing if value.isdecimal())
    if not lengths:
        rows = max((int(first) for first in dimensions[0] if first.isdecimal()), default="batch_size")
        action = f"Give {name} batches of one shape, or leave the shape open"
        return Remedy(action, CODE["shape"].format(rows, signature, name), at, "reduce-retracing")
    action = f"Leave the input shape of {name} open, or pad the input to a few lengths"
    buckets = bucketing(few_lengths(lengths), fixed=True)
    return Remedy(action, CODE["open"].format(signature, name, buckets), at, "reduce-retracing")


def _of_numbers(function: TracedDefinition) -> Remedy:
    """Pass tensors instead of the Python numbers that change, at the line that assigns or else passes them."""
    numbers, name = [one for one in function.numbers if not one.is_text], function.name
    first = next(iter(numbers or function.numbers))
    if not numbers:
        action = f"Call {name} with few different texts, or make a function for each of them"
        return Remedy(action, CODE["text"].format(name, first.name), first.at or function.at)
    tensors = "), tf.constant(".join(one.name for one in numbers)
    what = "tensors instead of Python numbers" if len(numbers) > 1 else "a tensor instead of a Python number"
    code = CODE["tensor"].format(name, tensors)
    return Remedy(f"Pass {name} {what}", code, first.at or function.at, "tensor-argument")


def _over_run(tracing: RepeatedTracing, changed: Mapping[str, Sequence[str]]) -> Finding:
    """State what tracing again takes of the run, and how to trace once; ``changed`` is by function."""
    worst, compiled, whole_ms = tracing.worst, tracing.compiled, tracing.phases.total_ms
    by_value = worst.numbers and remade(worst) == 1  # else each trace is of a new function
    made = f" as {number(worst.made)} separate function objects" if remade(worst) > 1 else ""
    others = len(tracing.functions) - 1
    defined = f" (defined at {location(worst.defined)})" if worst.defined else ""
    more, verb, up_to = (f" and {others} more", "were", "up to ") if others else ("", "was", "")
    cause = ""
    if compiled and compiled.at:
        cause = f", since {location(compiled.at)} compiles the model again"
    elif by_value:
        *names, last = (one.name for one in worst.numbers)
        both = f"{', '.join(names)} and {last}" if names else last
        cause = f", since Python values change in {both}"
    functions = Table.of(
        tracing.functions,
        ("function", lambda function: function.name),
        ("line that defines it", lambda function: function.defined),
        ("line that calls it", lambda function: function.at),
        ("calls that traced it", lambda function: count(function.tracings)),
        ("function objects", lambda function: count(function.made)),
        ("time of these calls", lambda function: ms(function.ms)),
    )
    values = Table.of(
        worst.numbers,
        ("parameter", lambda one: one.name),
        ("values", lambda one: ", ".join(one.values[:SHOWN_VALUES])),
        ("line that assigns it", lambda one: one.at),
    )
    share = percent(tracing.again_ms / whole_ms)
    return Finding(
        summary=f"{worst.name}{defined}{more} {verb} traced {up_to}{number(worst.tracings)} times{made}{cause}: "
        f"all but the first took {milliseconds(tracing.again_ms)}, {share} of the run",
        evidence=(
            Measure("time of tracing again", ms(tracing.again_ms)),
            Measure.share("share of the run", tracing.again_ms / whole_ms),
            functions,
            *((values,) if by_value else ()),
        ),
        remedies=(_remedy(tracing, changed),),
        concern=Concern.RUN,
        run_effects=tuple(tracing.effects()),
    )


def _remedy(tracing: RepeatedTracing, changed: Mapping[str, Sequence[str]]) -> Remedy:
    """Choose by what makes the function anew: compile, a loop, or an argument that changes."""
    worst = tracing.worst
    if tracing.compiled:
        return Remedy(KEPT_OPTIMIZER, CODE["compile"], tracing.compiled.at, "compile-once")
    if remade(worst) > 1 and tracing.worst_of_keras:
        return Remedy(ONE_COMPILE, CODE["compile"], worst.at)
    if remade(worst) > 1:
        at = worst.defined if worst.redefined and worst.defined else worst.at
        return Remedy(ONCE.format(worst.name), CODE["once"], at, "function-once")
    return _of_numbers(worst) if worst.numbers else _for_change(worst.name, changed.get(worst.name, ()), worst.at)


KEPT_OPTIMIZER = (
    "Compile the model once, before the loop, and assign the learning rate; the optimizer keeps its state"
)
