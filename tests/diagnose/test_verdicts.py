"""What is said of findings: severity, saving, accounts and order of each case, as golden/verdicts.txt has them."""

from tests.diagnose.kit import *

Case = tuple[Chart, list[Rule]]


def case(chart: Chart, *rules: Rule) -> Case:
    return chart, list(rules)


COMPUTING = chart_of(**COMPUTE)
EFFECT = Effect(Stage.INPUT, 0.0, "map")
FAULT = states("fault", part(50))
GRAVE = states("grave", severity=Severity.CRITICAL)
COSTS = states("fault", Effect(Stage.DEVICE, 1.5, "part", ms(50.0)))
GENERAL = states("asks", part(8), general=True, takes=ms(3.0))
ELSEWHERE = states("between-steps", Effect(Stage.BETWEEN, 0.0))
CAUSE = states("cause", Effect(Stage.INPUT, 0.01, "map"))
TRIFLE = states("trifle", part(0.04, "bias"))
QUICK = states("quick-input", Effect(Stage.INPUT, 0.1, "map"))
LIGHT = states("light-model", Effect(Stage.DEVICE, 0.1))
SURE = states("sure", part(30, "a"))
ALMOST = overlapped(50.0, input=40.0, device=9.0, between=1.0)
WAITING = overlapped(100.0, input=60.0, host=20.0, device=20.0)
LARGE = states("large", part(30, "y"))


# The step: what a finding saves, and what hides it
def fine() -> Verdict:
    return Healthy(summary="All is well")


def broken() -> Verdict:
    raise KeyError("shape")


def missing(breakdown: Breakdown) -> Verdict:
    raise AssertionError(breakdown)


def without_python(map_scales: float) -> Rule:
    """A change of Python in the input that keeps the loop from the interpreter as well."""
    python = Effect(Stage.INPUT, map_scales, "map", ms(40.0), bound=Bound.AT_MOST)
    loop = Effect(Stage.HOST, 0.5, StepWork.INTERPRETER, ms(20.0), bound=Bound.AT_MOST)
    return states("python", python, loop)


def crowded() -> Chart:
    """A CPU with two cores, whose input takes as long as all the rest."""
    model = overlapped(100.0, input=60.0, host=20.0, device=20.0).fact(StepModel)
    return Chart([replace(model, device=DeviceKind.CPU, cores=Cores(2.0, 1.6), input_ms=100.0)])


def long_steps(extra_ms: float) -> Case:
    """Two of twenty steps are longer by so much."""
    times = [round((10.0 + extra_ms * (number in {5, 15})) * PS_PER_MS) for number in range(20)]
    steps = [Step(number, sum(times[:number]), *[sum(times[: number + 1])] * 2) for number in range(20)]
    long = states("long", severity=Severity.CRITICAL, concern=Concern.LONG_STEPS)
    return case(chart_of(Steps.of(steps), device=10.0), states("saves", part(4.0)), long)


def tracing(slowdown: float) -> Chart:
    return chart_of(slowdown=slowdown, **COMPUTE)


STEP: dict[str, Case] = {
    "a crash leaves the others untouched": case(COMPUTING, rule(broken), rule(fine), FAULT),
    "a missing fact": case(Chart([], {Breakdown: Unavailable("no step was traced")}), rule(missing)),
    "a defect in a fact is an error": case(Chart([]), rule(missing)),
    "no model": case(Chart([], {StepModel: Unavailable("no")}), FAULT, rule(fine)),
    "a defect in the model": case(Chart([]), FAULT, rule(fine)),
    "steps without length": case(chart_of(), FAULT, rule(fine)),
    "steps that are mostly the profiler's": case(tracing(1.6), FAULT, rule(fine)),
    **{
        f"{saved:g} % are saved": case(COMPUTING, states("fault", part(saved))) for saved in (20, 19.9, 5, 4.9, 0.5)
    },
    **{
        f"{saved:g} % {bound.value}, tracing {slowdown:g} times as slow": case(
            tracing(slowdown), states("fault", part(saved, bound=bound))
        )
        for slowdown, saved, bound in (
            (1.0, 3.0, Bound.AT_MOST),
            (1.0, 2.9, Bound.AT_MOST),
            (1.0, 2.9, Bound.EXPECTED),
            (1.0, 0.49, Bound.EXPECTED),
            (2.0, 5.0, Bound.EXPECTED),  # of steps that tracing made much longer, little is not reliable
            (2.0, 4.9, Bound.EXPECTED),
        )
    },
    "a change that costs time is healthy": case(COMPUTING, COSTS),
    "without effects its own severity": case(
        COMPUTING, states("warns", severity=Severity.WARNING), states("plain")
    ),
    # It may be off either way: the report says that the saving is an estimate.
    "a model that explains too little makes no upper bound": case(
        overlapped(20.0, input=40.0, device=10.0), states("fault", Effect(Stage.INPUT, 0.5))
    ),
    "two parts": case(COMPUTING, states("slow", part(30, "a"), part(10, "b"))),
    "a stage shortened": case(COMPUTING, states("slow", Effect(Stage.DEVICE, 0.76))),
    "a stage removed": case(COMPUTING, states("slow", Effect(Stage.DEVICE, 0.0))),
    "why a stage is shorter": case(COMPUTING, states("slow", Effect(Stage.DEVICE, 0.5, why="it shares 2 cores"))),
    "a general finding takes what it states": case(COMPUTING, GENERAL),
    "a saving behind the input says what to mend first": case(bound_by_input(), INPUT, MATMUL),
    # A minute's wait before 10 ms of compute, not made beside it: 4 ms are little of the step.
    "a saving that a huge wait dwarfs": case(chart_of(input=60_000.0, device=10.0), INPUT, MATMUL),
    "a saving that nothing uncovers is healthy": case(bound_by_input(), MATMUL),
    "a trifle is healthy": case(bound_by_input(), INPUT, TRIFLE),
    "no other part hides it": case(ALMOST, INPUT, ELSEWHERE, MATMUL),
    "both hide it, and no trifle": case(
        bound_by_input(),
        states("one", Effect(Stage.INPUT, 0.3, "map")),
        states("two", Effect(Stage.INPUT, 0.5, "map")),
        TRIFLE,
        MATMUL,
    ),
    "the cause hides it, not the symptom": case(bound_by_input(), INPUT, CAUSE, MATMUL),
    "all changes are one figure": case(COMPUTING, states("a", part(30, "x")), states("b", part(20, "y"))),
    "two names for one change": case(bound_by_input(), INPUT, states("sequential-map", EFFECT)),
    "nothing to follow": case(COMPUTING, rule(fine), states("plain"), states("trifle", part(0.1))),
    # Input of 100 ms beside a compute of 90: either alone gains little or nothing.
    "what overlaps gains only together": case(overlapped(100.0, device=90.0, input=10.0), QUICK, LIGHT),
    "one of what overlaps": case(overlapped(100.0, device=90.0, input=10.0), QUICK),
    "a set that holds a ceiling is one": case(chart_of(device=60.0, input=40.0), SURE, INPUT),
    "on a CPU too": case(chart_of(on=DeviceKind.CPU, device=60.0, input=40.0), SURE, INPUT),
    "findings by saving, then health, then the rest": case(
        COMPUTING,
        rule(broken),
        rule(fine),
        states("small", part(6, "x")),
        rule(lambda: NotApplicable(reason="no"), "absent"),
        LARGE,
        states("warns", severity=Severity.WARNING),
        states("plain"),
    ),
    # Compiling that took most of the traced time saves nothing of the usual step.
    "a grave fault stands before a small saving": case(COMPUTING, states("small", part(8)), GRAVE),
    "alike ones by name": case(COMPUTING, *(states(name, part(10, name)) for name in "cab")),
    "a remark on the recording comes last": case(
        COMPUTING,
        replace(GRAVE, topic=Topic.RECORDING),
        states("small", part(4.0, "a")),
        states("equal", part(12, "b")),
    ),
    "long steps add much to the mean": long_steps(90.0),
    "long steps add little to the mean": long_steps(10.0),
    # Python in the input keeps the loop from the interpreter: without any input, the loop has it too.
    "a bound of a stage is no lower than that of its parts": case(WAITING, INPUT, without_python(0.1)),
    # The wait is 60 ms, the saving 70 or, on a CPU whose two cores are crowded, 77.5.
    "what a saving has beyond the wait": case(WAITING, without_python(0.0)),
    "what it has on crowded cores": case(crowded(), without_python(0.0)),
    "a saving within the wait": case(overlapped(100.0, input=60.0, device=40.0), without_python(0.0)),
}


# What explains the large parts of the step
MAP = "Root::Prefetch::Map"
LINE, CALLBACK = Location("train.py", 3), Location("train.py", 21)
TIMED = HostLines(
    {
        Stage.HOST: (TimedLine(LINE, 20, 2.0), TimedLine(LINE, 20, 2.0, work=LineWork.ENTERING)),
        Stage.BETWEEN: (TimedLine(CALLBACK, 9, 1.0, "Log.on_train_batch_end"),),
    }
)
EVENTS = PartEvents({Stage.HOST: (PartEvent("Execute", "python", 8.0),)})
ALL_WAIT = states("waits", Effect(Stage.HOST, 0.0, "", ms(100.0)))
LESS = Effect(Stage.INPUT, 0.98, MAP), Effect(Stage.BETWEEN, 0.0)
PAUSES = Effect(Stage.BETWEEN, 0.0, StepWork.BETWEEN_CALLS, ms(16.5), bound=Bound.AT_MOST)


def at_line(recurs: Recurrence) -> RunEffect:
    """A change of the run at the line."""
    return RunEffect(phase=Phase.STEPS, of=ms(5_000.0), subject="train.py:3", recurs=recurs)


def mapped(time: float, **parts: Any) -> Chart:
    """A step of these parts beside which a map makes its input."""
    return chart_of(PipelineSegment({MAP: time}, overlapped=True), **parts)


def device(of: float, subject: str = "conv") -> Effect:
    return Effect(Stage.DEVICE, 0.5, subject, ms(of))


def hot(of: float, subject: str = "pool", name: str = "hot") -> Rule:
    """A general rule, which runs last and may name what is left."""
    found = finding(Effect(Stage.DEVICE, 0.0, subject, ms(of), bound=Bound.AT_MOST))

    def check(unexplained: Unexplained) -> Verdict:
        return found if unexplained.parts_ms else finding()

    return rule(check, name, general=True)


def needs(part: str, time: float) -> Rule:
    necessary = (PartTime(part, ms(time), "Matmuls run at 80 % of the peak"),)
    return rule(lambda: Healthy(summary="Fine", necessary=necessary), "needs")


def named(part: str, time: float) -> Rule:
    return states("odd", names=(PartTime(part, ms(time)),))


def read_too() -> Chart:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    pipeline = InputPipeline.of(ahead, stage_time(MAP, 30.0), stage_time(f"{MAP}::Read", 10.0))
    return chart_of(pipeline, *pipeline.segments, input=80.0, device=5.0)


def slow_ones(slow_ms: float, saved_ms: float) -> Case:
    """Beside ten steps of 100 ms, a slow one."""
    slow = SlowSteps(1, slow_ms, 11, 1000.0 + slow_ms)
    typical = states("typical", Effect(Stage.HOST, 0.0, "work", ms(saved_ms)))
    return case(chart_of(even_steps(10, 100.0), slow, host=100.0), typical)


def on_slow_input() -> Chart:
    """Untraced, its 40,000 elements may be quick."""
    chart = mapped(100.0, device=100.0)
    return Chart([replace(chart.fact(StepModel), elements=40_000.0), chart.fact(Breakdown)])


def others(cores: Cores, part: str) -> Chart:
    return chart_of(cores, **{part: 5.0})


def many_calls(count: int) -> Chart:
    """Calls of twenty steps each."""
    step = replace(even_steps(1, 2000.0).steps[0], calls=20)
    return chart_of(Steps.of([step] * count), host=100.0)


def untimed(seen: int = FEW) -> StackSamples:
    return StackSamples((TimedLine(CALLBACK, seen, callback="Log.on_train_batch_end"),))


def works(work: LineWork) -> HostLines:
    return HostLines({Stage.HOST: (TimedLine(LINE, 20, 2.0, work=work),)})


def operations(**times: float) -> Operations:
    return Operations(tuple(OperationTime(name=name, type=name, ms=time) for name, time in times.items()))


def overlapping(part: Stage) -> Chart:
    """Threads overlap, and a finding names time without its operations."""
    threads = PartEvents({part: (PartEvent("a", "one", 90.0), PartEvent("b", "two", 90.0))})
    return chart_of(operations(Mul=60.0, AddV2=40.0), threads, **{str(part): 100.0})


SLOW = states("slow", device(60.0))
ACCOUNTS: dict[str, Case] = {
    "less than a tenth needs no account": case(chart_of(device=90.1, host=9.9)),
    "a tenth does": case(chart_of(device=90.0, host=10.0)),
    "most is named": case(COMPUTING, states("rule", device(90.1))),
    "a tenth is not named": case(COMPUTING, states("rule", device(89.9))),
    "two findings name their subject once": case(COMPUTING, SLOW, states("same", device(50.0))),
    "two findings name two": case(COMPUTING, SLOW, states("other", device(40.0, "pool"))),
    "work that pays for a change": case(
        COMPUTING, states("slow", device(60.0), Effect(Stage.DEVICE, 1.1, "pool", ms(40.0)))
    ),
    "a ceiling names its whole stage": case(
        COMPUTING, states("all", Effect(Stage.DEVICE, 0.0, bound=Bound.AT_MOST))
    ),
    "a finding without an effect may name its part": case(chart_of(unknown=100.0), named(UNKNOWN, 95.0)),
    "necessary work says why": case(COMPUTING, needs("device", 95.0)),
    "some of it is necessary": case(COMPUTING, needs("device", 80.0)),
    "work elsewhere explains nothing": case(chart_of(host=100.0), needs("device", 95.0)),
    "a stage names its share of the wait": case(read_too(), states("slow", Effect(Stage.INPUT, 0.0, MAP))),
    "general rules get what is left": case(COMPUTING, hot(30.0), SLOW),
    "a ceiling leaves its place to them": case(
        COMPUTING, hot(30.0), states("all", Effect(Stage.DEVICE, 0.0, bound=Bound.AT_MOST))
    ),
    "a general finding names no more than is left": case(COMPUTING, hot(90.0), SLOW),
    "two parts of it share what is left": case(
        COMPUTING, states("known", part(50, "c")), states("hot", part(60.0, "a"), part(60.0, "b"), general=True)
    ),
    "nothing of what a specific one names": case(COMPUTING, hot(90.0, "conv"), SLOW),
    "a general finding states its time": case(COMPUTING, hot(95.0)),
    "and ranks by it": case(COMPUTING, hot(39.0), states("slow", device(12.0))),
    "a short one comes later": case(COMPUTING, hot(4.0), states("slow", device(12.0))),
    "without steps nothing is known to be unexplained": case(Chart([even_steps(3, 1.0)]), hot(1.0)),
    **{f"{number} steps": case(chart_of(even_steps(number, 100.0), host=100.0), ALL_WAIT) for number in (1, 4, 5)},
    "a call of many steps is one observation": case(many_calls(1), ALL_WAIT),
    "three calls of many steps": case(many_calls(3), ALL_WAIT),
    "few steps keep the order of savings": case(
        chart_of(even_steps(1, 100.0), host=90.0, between=10.0),
        states("aaa", Effect(Stage.BETWEEN, 0.0, "a", ms(8.0))),
        states("wait", Effect(Stage.HOST, 0.0, "wait", ms(90.0))),
    ),
    "a slow step takes less than half": slow_ones(999.0, 90.0),
    "a slow step takes half": slow_ones(1000.0, 90.0),
    "little of the mean step": slow_ones(1000.0, 15.0),  # 7.5 %, and 15 % of the typical one
    "hardly anything of the mean step": slow_ones(4000.0, 15.0),
    # Making the batch takes 0.1 of 100 ms: 2 % are too little for a ceiling, not hidden by anything.
    "a small ceiling of a step that never waits": case(
        mapped(0.1, on=DeviceKind.CPU, input=0.01, device=99.99),
        states("padding", Effect(Stage.DEVICE, 0.0, "padding", ms(2.0), bound=Bound.AT_MOST)),
    ),
    "the input sets the pace of a step that waits": case(
        mapped(95.0, on=DeviceKind.CPU, input=40.0, device=60.0), states("slow", device(30.0))
    ),
    "time behind an input that no finding names": case(mapped(100.0, device=100.0), states("slow", device(95.0))),
    # The pipeline gets 2 % faster, with what passes between steps; the compute's half still saves nothing.
    "time behind an input that a finding names": case(
        mapped(100.0, device=95.0, between=5.0), states("slow", device(90.0)), states("pipeline", *LESS)
    ),
    "behind an input that tracing slows, a ceiling": case(on_slow_input(), SLOW),
    "behind an input, healthy": case(mapped(100.0, device=100.0), SLOW),
    "a general finding behind the input": case(
        mapped(100.0, device=100.0), states("slow", device(95.0), general=True)
    ),
    # Of 27.8 ms 16.5 pass between steps; the input is waited for, but takes 9 ms itself.
    "the trainer's short wait hides nothing": case(
        mapped(9.0, input=3.0, host=2.0, device=6.3, between=16.5), states("between-steps", PAUSES), INPUT
    ),
    "other programs delay what is unexplained": case(others(Cores(2.0, 0.4, 1.5), "host")),
    "hardly any other programs": case(others(Cores(2.0, 1.6, 0.4), "host")),
    "cores enough for both": case(others(Cores(16.0, 1.0, 1.5), "host")),
    "a wait is not delayed": case(others(Cores(2.0, 0.4, 1.5), "input")),
    "nor what is explained": case(others(Cores(2.0, 0.4, 1.5), "host"), needs("host", 5.0)),
    "seen in the host part": case(chart_of(TIMED, untimed(), host=100.0)),
    "seen between steps": case(chart_of(TIMED, untimed(), between=100.0)),
    # Trap: a change at the same line of what comes once in an epoch, and what Keras does at the line of a call.
    **{
        f"a change of what comes {recurs} at a line of the step's {work.value}": case(
            chart_of(HostLines({Stage.HOST: (TimedLine(LINE, 20, 95.0, work=work),)}), host=100.0),
            states("of-run", at_line(recurs), remedies=(Remedy("Change it", at=LINE),)),
        )
        for recurs, work in (
            (Recurrence.PER_STEP, LineWork.PYTHON),
            (Recurrence.PER_EPOCH, LineWork.PYTHON),
            (Recurrence.PER_STEP, LineWork.LOOPING),
        )
    },
    # Trap: the loop that calls `train_on_batch`, or a compiled function, is the user's.
    **{
        f"{work.value} names no loop of its own": case(chart_of(works(work), untimed(), host=100.0))
        for work in (LineWork.LOOPING, LineWork.ENTERING, LineWork.DISPATCHING)
    },
    # Trap: a callback runs between two calls, and the trace has no time of its samples.
    "samples between calls": case(chart_of(untimed(), EVENTS, between=100.0)),
    "say nothing of the host part": case(chart_of(untimed(), EVENTS, host=100.0)),
    "a few samples give no share": case(chart_of(untimed(FEW - 1), between=100.0)),
    # A convolution at the peak rate takes the time, though a finding mentions it.
    "what a change cannot shorten is not named": case(
        chart_of(operations(Conv2D=70.0, Relu=30.0), device=100.0),
        states(
            "mentions",
            Effect(Stage.DEVICE, 1.0, "Conv2D", ms(70.0), bound=Bound.AT_MOST),
            Effect(Stage.DEVICE, 0.0, "Relu", ms(10.0)),
        ),
    ),
    "seen times of operations": case(overlapping(Stage.DEVICE), named(Stage.DEVICE, 60.0)),
    "seen times of threads": case(overlapping(Stage.HOST), named(Stage.HOST, 60.0)),
}


SEQUENTIAL = states("sequential-map", Effect(Stage.INPUT, 0.1, "map"))
BETWEEN = chart_of(device=50.0, host=30.0, between=20.0)


# In which order to follow findings: from their effects, and from what their edits do to each other
def edit(name: str, edit_id: str | tuple[str, ...], *effects: Effect) -> Rule:
    """A rule whose remedies are these edits."""
    ids = (edit_id,) if isinstance(edit_id, str) else edit_id
    return states(name, *effects, remedies=tuple(Remedy("Change it", edit_id=one) for one in ids))


EAGER = edit("eager-step", "run-eagerly-off", part(10, "x"))
COMPILED = edit("unfused-elementwise", "jit-compile", part(30, "y"))
SEVERAL = edit("small-batch", "steps-per-execution", Effect(Stage.HOST, 0.1))
ORDER: dict[str, Case] = {
    "changes that do not bear on each other": case(
        COMPUTING, states("a", part(30, "x")), states("b", part(20, "y"))
    ),
    "one change": case(COMPUTING, states("alone", part(30))),
    "first the input, then the batch size": case(
        overlapped(50.0, input=40.0, device=6.0, host=4.0),
        states("small-batch", Effect(Stage.HOST, 0.5)),
        SEQUENTIAL,
    ),
    "first the input, then the precision": case(bound_by_input(), MATMUL, SEQUENTIAL),
    # A map of 50 ms of which a cache leaves nothing, and more threads a third.
    "of two changes to one stage the larger leaves nothing": case(
        bound_by_input(),
        states("uncached-preprocessing", EFFECT),
        states("sequential-map", Effect(Stage.INPUT, 1 / 3, "map")),
    ),
    # In 16-bit precision half of the time is left to save by fewer channels.
    "what a change saves after the others": case(
        COMPUTING,
        states("float32-matmul", Effect(Stage.DEVICE, 0.5, "conv", ms(80.0))),
        states("unaligned-dimension", Effect(Stage.DEVICE, 0.75, "conv", ms(80.0))),
    ),
    "changes that gain only together": case(overlapped(100.0, device=100.0), SEQUENTIAL, LIGHT),
    "a ceiling gives way to what is about its parts": case(bound_by_input(), INPUT, SEQUENTIAL, MATMUL),
    "a ceiling alone has its turn": case(bound_by_input(), INPUT, MATMUL),
    "what runs eagerly is mended before it is compiled": case(COMPUTING, COMPILED, EAGER),
    "the compiler and the fused layer exclude each other": case(
        COMPUTING, edit("unfused-batch-norm", "fused-batch-norm", part(10, "x")), COMPILED
    ),
    "callbacks come before several steps at once": case(BETWEEN, SEVERAL, ELSEWHERE),
    "one finding with both edits": case(COMPUTING, edit("one", ("jit-compile", "fused-batch-norm"), part(30))),
    # Both are about the time between steps, and both propose several steps in one call.
    "findings that each have both sides": case(
        chart_of(device=50.0, between=20.0),
        *(edit(name, "steps-per-execution", Effect(Stage.BETWEEN, 0.5, name, ms(10))) for name in ("one", "other")),
    ),
    "several that go first are named in one sentence": case(
        BETWEEN,
        SEVERAL,
        states("between-steps", Effect(Stage.BETWEEN, 0.0, "callbacks", ms(10))),
        states("step-outlier", Effect(Stage.BETWEEN, 0.0, "checkpoints", ms(10))),
    ),
    "edits have an order where no saving can be computed": case(
        Chart([]), edit("eager-step", "run-eagerly-off"), edit("other", "jit-compile")
    ),
    "nothing is promised of distorted steps": case(chart_of(input=40.0, device=10.0, slowdown=2.0), INPUT, MATMUL),
}


FATAL: dict[str, Any] = {"severity": Severity.CRITICAL, "concern": Concern.RUN}
START = {"start": 500_000.0, "imports": 500_000.0}
RECURS = phases_of({Phase.IMPORTS: 9_900.0, Phase.STEPS: 70.0, Phase.BOUNDARIES: 30.0})
NO_STEPS = phases_of({Phase.PREPARING: 9_000.0, Phase.PREDICTION: 1_000.0})
TWO_EPOCHS = RunCalls((), epochs=2)


# The run: what findings save of it
def of(phase: Phase, time: float, subject: str = "line", **more: Any) -> RunEffect:
    return RunEffect(phase=phase, of=ms(time), subject=subject, **more)


def at_boundaries(time: float, **more: Any) -> RunEffect:
    return of(Phase.BOUNDARIES, time, recurs=Recurrence.PER_EPOCH, **more)


def run_of(*more: object, **times: float) -> Chart:
    """A run with 1,000 steps of 100 ms of the device, and other phases."""
    phases = {Phase.STEPS: 100_000.0} | {Phase[name.upper()]: time for name, time in times.items()}
    return run_chart(phases_of(phases), steps_of(1_000, 100.0), COMPUTING.fact(StepModel), *more)


def once(time: float, **more: Any) -> Rule:
    return states("once", of(Phase.IMPORTS, time), **more)


def with_concern(concern: Concern, *effects: RunEffect, **times: float) -> Case:
    return case(run_of(**times), states("only", *effects, severity=Severity.CRITICAL, concern=concern))


def told(result: Result) -> Iterator[str]:
    """Yield what a result says that the case has not stated."""
    kind, severity = type(result.outcome).__name__, f" {result.severity.name.lower()}" if result.severity else ""
    match result.outcome:
        case Errored(error=why) | NotApplicable(reason=why):
            words = f": {why}"
        case Healthy(summary=why):
            words = f": {why}"
        case _:
            words = ""
    yield f"{result.rule.name}: {kind.lower()}{severity}{words}"
    for what in ("saving", "run", "takes"):
        if found := getattr(result, what):
            yield f"  {what}: {shown(found)}"
    if isinstance(result.outcome, Healthy) and result.outcome.necessary:
        yield f"  necessary: {shown(result.outcome.necessary)}"
    if result.rule.general and isinstance(result.outcome, Finding):
        yield f"  of: {shown(tuple(effect.of.value for effect in result.outcome.effects if effect.of))}"


def said(chart: Chart, rules: list[Rule], pricing: RunPricing | None) -> Iterator[str]:
    results = tuple(engine.examine(chart, rules, pricing))
    for result in results:
        yield from told(result)
    both = savings.together(chart, results)
    if pricing:
        whole = pricing.together(results, both)
        yield f"of the run: {shown(whole) if whole else 'nothing'}"
        yield f"listed: {', '.join(one.rule.name for one in pricing.priced(engine.examine(chart, rules)))}"
        return
    assert not list(agreement.unaccounted(chart, results))
    yield f"together: {shown(both) if both else 'nothing'}"
    yield from (f"account: {shown(one)}" for one in accounts(chart, results))
    left = unexplained(chart, results)
    if left and left.subjects:
        yield f"named already: {shown(left.subjects)}"
    if following := order(chart, results):
        yield f"turns: {shown(following.turns)}"
        yield from sentences(following)


EPOCHS = states("epochs", at_boundaries(20_000.0, times=10))
PREPARES = of(Phase.PREPARING, 80_000.0, "prepare.py:33", bound=Bound.AT_MOST)
RUN: dict[str, Case] = {
    # The start does not come again in a longer run.
    "a saving of the step is one of each step": case(run_of(start=100_000.0), states("step", part(20.0))),
    "what comes once is rated by the whole run": case(run_of(imports=100_000.0), once(50_000.0)),
    # A longer run has no more of an import: its price in a short one says little, and the rule may say so.
    "and may be called a note": case(run_of(imports=100_000.0), once(50_000.0, severity=Severity.NOTE)),
    "what comes with each epoch": case(run_of(boundaries=25_000.0), EPOCHS),
    # A rule may state that a fault is worse than its time, and not that it is less.
    "a price is the least severity": case(
        run_of(boundaries=25_000.0), states("epochs", at_boundaries(20_000.0, times=10), severity=Severity.NOTE)
    ),
    "a fault is worse than its time": case(
        run_of(boundaries=25_000.0), states("epochs", at_boundaries(20_000.0, times=10), severity=Severity.CRITICAL)
    ),
    "a price of the step": case(run_of(), states("step", part(10.0))),
    "a price of the step is the least severity": case(run_of(), states("step", part(10.0), severity=Severity.NOTE)),
    "a fault is worse than its step": case(run_of(), states("step", part(10.0), severity=Severity.CRITICAL)),
    "the step and the run": case(run_of(boundaries=20_000.0), states("both", part(10.0), at_boundaries(20_000.0))),
    "a trifle of the step": case(run_of(boundaries=20_000.0), states("both", part(0.1), at_boundaries(20_000.0))),
    "a trifle of the run": case(run_of(imports=400.0), once(400.0)),
    "much of what recurs": case(run_chart(RECURS), states("epochs", at_boundaries(30.0))),
    "a step that is little of the run": case(run_of(prediction=2_000_000.0), states("step", part(40.0))),
    # A start that dominates a short run changes no severity.
    "a start that dominates": case(run_of(**START), states("step", part(40.0))),
    "a start that dominates, of a warning": case(run_of(**START), states("step", part(6.0))),
    # Without a saving, it is limited by the share of the steps, or of tracing, which may make steps long.
    "typical steps": with_concern(Concern.TYPICAL_STEP),
    "typical steps, a tenth of the run": with_concern(Concern.TYPICAL_STEP, evaluation=900_000.0),
    "typical steps, little of the run": with_concern(Concern.TYPICAL_STEP, evaluation=9_900_000.0),
    "long steps": with_concern(Concern.LONG_STEPS),
    "long steps, a tenth of the run": with_concern(Concern.LONG_STEPS, evaluation=900_000.0),
    "long steps, little of the run": with_concern(Concern.LONG_STEPS, evaluation=9_900_000.0),
    "long steps of tracing": with_concern(Concern.LONG_STEPS, tracing=900_000.0),
    # A finding about money stays as it is, and a fault of the run that takes no time is no trifle.
    "money": with_concern(Concern.MONEY, evaluation=9_000_000.0),
    "a fault of the run": with_concern(Concern.RUN, of(Phase.END, 1.0), end=1.0),
    "what the run fails by comes first": case(
        run_of(),
        states("slow", part(60.0)),
        states("ahead", failure=RunFailure.AHEAD, **FATAL),
        states("died", failure=RunFailure.HAPPENED, **FATAL),
        states("grave", **FATAL),
    ),
    "a general finding saves nothing of the run": case(
        run_of(evaluation=900_000.0), states("hot", part(40.0), general=True)
    ),
    "a general finding of a run of steps": case(run_of(), states("hot", part(40.0), general=True)),
    # Nothing was traced: no step model, and too few steps for a saving of the step.
    "a run without steps": case(
        run_chart(NO_STEPS),
        states("slow-preparation", of(Phase.PREPARING, 8_000.0), concern=Concern.RUN),
        states("out-of-memory", **FATAL),
    ),
    "by severity, then by time of the run": case(
        run_of(imports=60_000.0, boundaries=40_000.0),
        states("step", part(25.0)),
        once(50_000.0),
        states("epochs", at_boundaries(39_000.0)),
    ),
    "a cheaper step and a removed boundary add up": case(
        run_of(boundaries=100_000.0), states("step", part(50.0)), states("epochs", at_boundaries(80_000.0))
    ),
    "two changes of one line save it once": case(
        run_of(preparing=90_000.0), states("a", PREPARES), states("b", PREPARES)
    ),
    "nothing to change": case(run_of(), states("note", severity=Severity.NOTE)),
    # Two epochs of 50 s after a start of 100 s.
    "two epochs": case(
        run_of(TWO_EPOCHS, start=100_000.0), states("step", part(20.0)), states("start", of(Phase.START, 50_000.0))
    ),
}
OF_90 = {"two epochs, of ninety": RUN["two epochs"]}
"""A quarter of the recorded run is little of the real one."""


def test_what_is_said_of_each_case(golden: Callable[[str, str], None]) -> None:
    topics = {"Step": STEP, "Accounts": ACCOUNTS, "Order": ORDER, "Run": RUN | OF_90}
    texts = []
    for topic, cases in topics.items():
        for name, (chart, rules) in cases.items():
            pricing = RunPricing.of(chart, 90 if name in OF_90 else None) if topic == "Run" else None
            texts.append("\n".join([f"## {topic}: {name}", "", *said(chart, rules, pricing), ""]))
    golden("verdicts.txt", "\n".join(texts))
