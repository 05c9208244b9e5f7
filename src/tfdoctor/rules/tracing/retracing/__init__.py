from tfdoctor.facts.input.training_inputs import few_lengths
from tfdoctor.facts.step_time.python_work import Retraced, Retracing
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


KERAS = (RunCall.FIT, RunCall.EVALUATE, RunCall.PREDICT)  # Calls whose functions ``compile`` discards
# TensorFlow saves and reads a model by these functions (checkpoint/functional_saver.py): each export makes both.
SAVING = frozenset({"_traced_save", "_traced_restore"})
WITHIN_KERAS = (*KERAS, RunCall.EPOCH)  # Calls that trace such functions
SHOWN_VALUES = 3  # Values of the changing argument, or parameter, that a cell of a table holds
SEVERAL = 2  # Different shapes from which on the shape is what changes
# A tensor's shape; the groups are its dimensions and its type.
SHAPED = re.compile(r"TensorSpec\(shape=\((\w+(?:, \w+)*),?\)(?:, dtype=(tf\.\w+))?")
NUMBER = re.compile(r"-?[\d.]+(e[+-]?\d+)?|True|False")

ONCE = "Create {} once, outside of the loop"
ONE_COMPILE = "Compile the model once, before the loop that calls fit"
KEPT_OPTIMIZER = (
    "Compile the model once, before the loop, and assign the learning rate; the optimizer keeps its state"
)


class Limits(RuleLimits):
    calls: float = limit(2.0)
    tracings: float = limit(3.0)
    again: float = limit(5.0)
    made: float = limit(3.0)
    share: float = share_limit(0.05)


def check(  # noqa: PLR0911, PLR0913, PLR0917 - the traced steps, and all facts of the run around them
    retracing: Retracing | Unavailable, breakdown: Breakdown | None, samples: StackSamples | None,
    traces: RunTraces | None, phases: RunPhases | None, calls: RunCalls | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Report functions that are retraced repeatedly, in the traced steps or over the run."""
    whole, calls = (phases if phases and phases.whole and traces else None), calls or RunCalls(())
    again = _again(traces.functions, whole, calls, limits) if traces and whole else []
    if isinstance(retracing, Unavailable) or breakdown is None:  # no traced training steps
        if whole and again:
            return _over_run(again, whole, calls, {})
        if whole and traces:
            times = sum(function.tracings for function in traces.functions)
            more = ", none of them again and again" if times > 1 else ""
            share = f"tracing and compiling took {percent(whole.share(Phase.TRACING))} of it"
            summary = f"{counted(times, 'call')} of the run traced a tf.function{more}; {share}"
            return Healthy(summary=summary, concern=Concern.RUN)
        missing = retracing if isinstance(retracing, Unavailable) else "the run has no training steps"
        return NotApplicable(reason=str(missing))
    retraced = [
        function
        for function in retracing.functions
        if function.traced >= limits.calls and function.tracings >= limits.tracings
    ]
    spent = {Stage.HOST: retracing.host_ms, Stage.BETWEEN: retracing.between_ms}
    effects = Effect.of_stages(spent, StepWork.TRACING, bound=Bound.EXPECTED)
    if whole and again:
        found = _over_run(again, whole, calls, {one.name: one.changed for one in retracing.functions})
        if {function.name for function in again}.isdisjoint(function.name for function in retraced):
            return found
        # The traced steps show the same: it has a part in the typical step as well.
        time = Measure("retracing time per typical step", ms(retracing.total_ms))
        evidence = (*found.evidence, time, _table(retraced))
        return replace(found, evidence=evidence, effects=effects, concern=Concern.TYPICAL_STEP)
    if not retraced:
        called = sum(function.calls for function in retracing.functions)
        why = "" if retracing.functions else "the trace contains no call of a tf.function"
        return nothing(f"No tf.function was retraced repeatedly in {with_noun(called, 'call')}", why)
    worst = max(retraced, key=lambda function: function.traced)
    return Finding(
        summary=f"{worst.name} was retraced in {worst.traced} of {worst.calls} calls, "
        f"which takes {milliseconds(retracing.total_ms)} of {breakdown.each_step}",
        evidence=(
            Measure("retracing time per step", ms(retracing.total_ms)),
            Measure("step time", ms(breakdown.step_ms)),
            _table(retraced),
        ),
        remedies=(_for_change(worst.name, worst.changed, samples.called_at if samples else None),),
        effects=effects,
    )


def _again(
    functions: Iterable[TracedDefinition], phases: RunPhases, calls: RunCalls, limits: Limits
) -> list[TracedDefinition]:
    """Return the functions whose tracing goes on through the run and takes enough of it, the most expensive first.

    What is no longer traced in the later half of the run after its first trace is warm-up; the end of the process,
    in which nothing is called, is no part of that. A function that is one for each of several models is judged by
    tuning-loop.
    """
    found, until = [], (phases.total_ms - phases.of(Phase.END)) / 1000
    for one in (one for one in functions if one.name not in SAVING):
        first, last = min(one.starts_s, default=0.0), max(one.starts_s, default=inf)
        goes_on = last >= (first + until) / 2
        models = max((call.models or 0 for call in calls.of(*KERAS) if call.at == one.at), default=0)
        own = models < limits.made or one.made >= 2 * models
        if goes_on and own and (_remade(one) >= limits.made or one.tracings - 1 >= limits.again):
            found.append(one)
    enough = sum(one.again_ms for one in found) >= limits.share * (phases.recurring_ms or phases.total_ms)
    return sorted(found, key=lambda one: -one.again_ms) if enough else []


def _remade(function: TracedDefinition) -> int:
    """Return the function objects, where most traces are first traces of one; 1 otherwise."""
    return function.made if 2 * function.made > function.tracings else 1


def _table(functions: Sequence[Retraced]) -> Table:
    def change(function: Retraced) -> str:
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
        return Remedy(f"Pass {name} a tensor instead of a Python number", code, at)
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
        return Remedy(action, CODE["shape"].format(rows, signature, name), at)
    action = f"Leave the input shape of {name} open, or pad the input to a few lengths"
    buckets = bucketing(few_lengths(lengths), fixed=True)
    return Remedy(action, CODE["open"].format(signature, name, buckets), at)


def _of_numbers(function: TracedDefinition) -> Remedy:
    """Pass tensors instead of the Python numbers that change, at the line that assigns or else passes them."""
    name = function.name
    numbers = [one for one in function.numbers if one.values[0][:1] not in {"'", '"'}]  # no tensor replaces a text
    first = next(iter(numbers or function.numbers))
    if not numbers:
        action = f"Call {name} with few different texts, or make a function for each of them"
        return Remedy(action, CODE["text"].format(name, first.name), first.at or function.at)
    tensors = "), tf.constant(".join(one.name for one in numbers)
    what = "tensors instead of Python numbers" if len(numbers) > 1 else "a tensor instead of a Python number"
    code = CODE["tensor"].format(name, tensors)
    return Remedy(f"Pass {name} {what}", code, first.at or function.at)


def _over_run(
    again: Sequence[TracedDefinition], phases: RunPhases, calls: RunCalls, changed: Mapping[str, Sequence[str]]
) -> Finding:
    """State what tracing again takes of the run, and how to trace once; ``changed`` is by function."""
    worst, others, again_ms = again[0], len(again) - 1, sum(function.again_ms for function in again)
    anew, lines = _remade(worst) > 1, {call.at for call in calls.of(*KERAS) if call.at}
    of_keras = worst.within in WITHIN_KERAS or worst.at in lines  # ``compile`` discards it
    # The call of compile that a loop makes, where it is what makes the function anew.
    looped = [call for call in calls.of(RunCall.COMPILE) if call.looped and 2 * call.count > worst.made]
    compiled = max(looped, key=lambda call: call.count, default=None) if anew and of_keras else None
    by_value = worst.numbers and not anew  # else each trace is of a new function
    made = f" as {number(worst.made)} separate function objects" if anew else ""
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
        again,
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
    share = again_ms / phases.total_ms
    remedy = _for_change(worst.name, changed.get(worst.name, ()), worst.at)
    if compiled:
        remedy = Remedy(KEPT_OPTIMIZER, CODE["compile"], compiled.at)
    elif anew and of_keras:
        remedy = Remedy(ONE_COMPILE, CODE["compile"], worst.at)
    elif anew:
        at = worst.defined if worst.redefined and worst.defined else worst.at
        remedy = Remedy(ONCE.format(worst.name), CODE["once"], at)
    elif worst.numbers:
        remedy = _of_numbers(worst)
    return Finding(
        summary=f"{worst.name}{defined}{more} {verb} traced {up_to}{number(worst.tracings)} times{made}{cause}: "
        f"all but the first took {milliseconds(again_ms)}, {percent(share)} of the run",
        evidence=(
            Measure("time of tracing again", ms(again_ms)),
            Measure.share("share of the run", share),
            functions,
            *((values,) if by_value else ()),
        ),
        remedies=(remedy,),
        concern=Concern.RUN,
        run_effects=tuple(_run_effects(again, phases, calls, compiled)),
    )


def _run_effects(
    again: Sequence[TracedDefinition], phases: RunPhases, calls: RunCalls, compiled: MadeCall | None
) -> Iterator[RunEffect]:
    """Yield the time of all traces but the first; an upper bound where new shapes or values need some.

    Compile and its optimizer take the time of all but one call. Where every other epoch or more traces a function,
    it is per epoch, as training in a loop over epochs does.
    """
    recurs = [
        Recurrence.PER_EPOCH
        if calls.epochs > 1 and calls.epochs / 2 <= function.tracings <= 2 * calls.epochs
        else Recurrence.PER_CALL
        for function in again
    ]
    for function, each in zip(again, recurs, strict=True):
        bound = Bound.EXPECTED if _remade(function) > 1 else Bound.AT_MOST
        yield tracing_again(function, function.again_ms, function.tracings - 1, each, bound)
    if compiled and compiled.at and compiled.count > 1:
        building_ms = sum(line.ms for line in phases.at(Phase.BUILDING) if line.at == compiled.at)
        if building_ms:
            yield RunEffect(
                phase=Phase.BUILDING, of=ms(building_ms * (1 - 1 / compiled.count)), subject=location(compiled.at),
                recurs=recurs[0], times=compiled.count - 1,
            )  # fmt: skip
