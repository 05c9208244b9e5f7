"""between-steps: what the loop and callbacks do beside the call that trains, by line and by the time of the run."""

from tests.rules.kit import *
from tfdoctor.rules.execution import between_steps

WEIGHTS, LOGS = "Weights.on_train_batch_end", "numpy.histogram"
FEW = tuple(Breakdown.of(between=9.0 if at < 10 else 0.1, device=6.0).median for at in range(30))


def works(
    ms: float, number: int = 27, callback: str = WEIGHTS, calls: str = LOGS, *, aside: bool = True, **more: Any
) -> LoopLines:  # fmt: skip
    """Lines with so many ms of the steps."""
    line = run_line(Phase.STEPS, script(number), ms, calls, callback=callback, **more)
    return LoopLines(LineGroup((line,)), callback, aside)


def example(  # noqa: PLR0913 - the rule's own
    *places: LoopLines, breakdown: Breakdown | None = None, on: Device | None = None, whole: bool = True,
    retracing: Retracing | None = None, source: StepSource = StepSource.KERAS_FIT, saving_ms: float = 0.0,
    shown_ms: float = 0.0, counted: bool = True,
) -> Verdict:  # fmt: skip
    """Judge a run of a minute with 4,000 steps of 13 ms, in which these lines work."""
    phases = divided_run(60_000.0, {Phase.SAVING: saving_ms, Phase.IMPORTS: 8_000.0})
    phases = replace(phases, once_ms=8_000.0, whole=whole, missing="the run as a whole was not recorded")
    steps, run = replace(even_steps(20, 13.0), source=source), equal_steps(script(1), 4_000, 13.0)
    known = run if counted else None
    return between_steps.check(phases, breakdown, LoopPlaces(places, shown_ms), known, on, retracing, steps)


def traced(between: float, step: float = 20.0, **more: Any) -> Verdict:
    """Judge a trace alone."""
    return example(breakdown=Breakdown.of(between=between, device=step - between), whole=False, **more)


sick = described("A callback takes 28 of the 52 s of all steps.", example, works(28_000.0))
healthy = described(
    "Steps of 6 ms with a pause of 0.1 ms between them.",
    example, breakdown=Breakdown.of(between=0.1, device=6.0),
)  # fmt: skip
LOOP = partial(works, callback="")


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of what recurs, and less"] = [example(works(ms)) for ms in (2_627.0, 2_600.0)]
    told["lines of a loop that make no argument of the call that trains"] = example(LOOP(9_000.0, function="log"))
    told["lines of a loop that could not be read, which may need to run in each step"] = example(
        LOOP(9_000.0, aside=False)
    )
    told["a loop over items, which arrays do at once"] = example(LOOP(9_000.0, calls="", repeats=True))
    told["a loop within a graph, whose steps are not counted"] = example(
        LOOP(9_000.0, calls="json.dumps"), counted=False
    )
    told["work of a few long steps"] = example(works(9_000.0, long_ms=4_501.0)), example(LOOP(9_000.0, long_ms=9e3))
    told["half of the time in long steps is work of each"] = example(works(9_000.0, long_ms=4_500.0))
    told["waits for TensorFlow are no work of its own"] = example(works(9_000.0, executes_ms=6_500.0))
    told["several places, of which one takes little"] = example(works(9_000.0), LOOP(8_000.0, 40), LOOP(99.0, 60))
    told["an accelerator hides what the steps do not wait for"] = [
        example(one, breakdown=Breakdown.of(host=1.0, device=12.0), on=Device(DeviceKind.GPU, 1, 1))
        for one in (works(28_000.0), works(28_000.0, long_ms=20_000.0))
    ]
    told["Keras' own loop takes half a millisecond at most; in another nothing says what takes it"] = [
        example(breakdown=Breakdown.of(between=0.49, device=6.0), source=source)
        for source in (StepSource.KERAS_FIT, StepSource.REPEATED_CALL)
    ]
    between = Breakdown.of(between=3.0, device=6.0)
    told["saving takes the time between steps"] = example(breakdown=between, saving_ms=10_100.0)
    told["one step in three has the time between steps"] = example(breakdown=replace(between, steps=FEW))
    for shown_ms in (8_000.0, 11_000.0):
        told[f"3 ms between steps, of which samples show lines for {shown_ms / 4_000} ms"] = example(
            breakdown=between, shown_ms=shown_ms
        )
    told["a trace alone: a twentieth of the step, and less"] = [traced(ms) for ms in (1.0, 0.99)]
    told["a trace alone: half a millisecond, and less"] = [traced(ms, step=2.0) for ms in (0.5, 0.49)]
    told["a trace alone: calls and traces of functions are not counted"] = [
        traced(10.0, retracing=Retracing((), 0.0, *called)) for called in ((9.5, 0.0), (0.0, 8.9))
    ]
    told["nothing is known"] = example(whole=False)


@golden_cases
def test_what_the_input_hides(told: Cases) -> None:
    """Python of 4 of 10 ms beside an input of 9 ms saves 1 ms of each step, and all of it without the input."""
    (effect,) = as_finding(example(works(16_000.0))).run_effects
    told["of 16 s in the steps"] = lambda: [
        f"{name}: {model.saving_ms((), [effect]):,.0f} ms" for name, model in (
            ("nothing limits the step", priced()), ("an input of 9 ms", priced(input_ms=9.0)),
            ("a step that has no such time", priced(host=0.0)),
            ("the traced steps are another training's", priced(input_ms=9.0, traced=False)),
        )
    ]  # fmt: skip


def priced(host: float = 4.0, input_ms: float = 0.0, *, traced: bool = True) -> RunModel:
    """Price 4,000 steps of 10 ms."""
    ahead = (PipelineSegment({"Root": input_ms}, overlapped=True),) if input_ms else ()
    exposed = Breakdown.of(host=host, device=10.0 - host).median
    model = StepModel(device=DeviceKind.CPU, exposed=exposed, segments=ahead)
    steps = replace(equal_steps(script(1), 4_000, 10.0), traced_ms=10.0 if traced else None)
    return RunModel(divided_run(40_000.0, {}), steps, model)
