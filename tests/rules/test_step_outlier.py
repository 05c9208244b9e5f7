"""step-outlier: long steps that recur, and those that show no pattern."""

from itertools import accumulate
from types import MappingProxyType

from tests.rules.kit import *
from tfdoctor.rules.execution import step_outlier

EXAMPLE_SAVE = TimedLine(script(30), 40, callback="Save.on_train_batch_end", calls={"keras.Model.save_weights": 40})
SAVES = LongStepLines({Stage.BETWEEN: (EXAMPLE_SAVE,)})
BUSY = Cores(2.0, 1.5, 1.0)
"""Other programs use a core of two, and none is free."""
AT = script(9)
PREDICT = "keras.src.backend.tensorflow.trainer.TensorFlowTrainer.predict"
FIT = TimedLine(AT, 40, calls={"keras.Model.fit": 40})
EVAL = TimedLine(AT, 40, callback="Eval.on_train_batch_end", calls={PREDICT: 40})


def example(  # noqa: PLR0913 - the rule's own
    extra: Mapping[int, tuple[str, float]] = MappingProxyType(dict.fromkeys((5, 15, 25), (Stage.BETWEEN, 100.0))),
    *, count: int = 30, compiling: CompileTime | None = None, lines: LongStepLines | None = SAVES,
    program: Program | None = None, starts: PassStarts | None = None, cores: Cores | None = None,
    pace: UntracedPace | None = None, run: RunSteps | None = None, phases: RunPhases | None = None,
    sampled: RunLongLines | None = None, source: StepSource = StepSource.MARKERS,
) -> Verdict:  # fmt: skip
    """A checkpoint of 100 ms follows every tenth step."""
    rows = [{**Breakdown.of(device=10.0).steps[0]} for _ in range(count)]
    for at, (part, more) in extra.items():
        rows[at][part] += more
    ends = [0, *accumulate(round(sum(row.values()) * PS_PER_MS) for row in rows)]
    steps = [Step(at, start, end, end) for at, (start, end) in enumerate(pairwise(ends))]
    parts = Breakdown(tuple(rows), rows[0])
    found = Steps.of(steps, source)
    return step_outlier.check(found, parts, compiling, lines, program, starts, cores, pace, run, phases, sampled)


def long(part: str, more: float = 100.0, *at: int, **others: Any) -> Verdict:
    """Judge twenty steps, of which those two, or others, take so much longer in a part."""
    return check(dict.fromkeys(at or (4, 14), (part, more)), **others)


def between(
    *lines: TimedLine, part: str = "between", more: float = 100.0, timed: bool = True, **others: Any
) -> Verdict:
    """Two long steps, with samples of lines between them."""
    return long(part, more, lines=LongStepLines({Stage.BETWEEN: lines}, timed) if lines else None, **others)


def paced(count: int, total_ms: float) -> Verdict:
    untraced = UntracedSteps(count, 10.0, "steps", total_ms=total_ms)
    return long("between", pace=UntracedPace(1.0, 10.0, untraced, 20))


def fitting(epochs: int | None = 50, steps: int | None = None, at: Location | None = AT) -> Program:
    return Program(settings=RunSettings(epochs=epochs, steps_per_epoch=steps), fit_at=at)


def checkpoint(seen: int = 8, at: tuple[int, ...] = (4, 9, 14, 19), more: float = 6.0) -> Verdict:
    """A checkpoint in some steps, among device times that vary so much that no step is an outlier."""
    extra = {n: ("device", 3.0 * (n % 4)) for n in range(20)} | dict.fromkeys(at, ("host", more))
    calls = {"tf_keras.src.engine.training.Model.fit": 8}
    saves = TimedLine(AT, seen, callback="ModelCheckpoint.on_train_batch_end", calls=calls, steps=frozenset(at))
    return check(extra, lines=LongStepLines(callbacks=((Stage.HOST, saves),)), cores=BUSY)


sick = example
healthy = described("Thirty steps of the same length.", example, {}, lines=None)
check = partial(example, count=20, lines=None)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["trap: a period is told where there is a strict one of four, as other programs hit steps"] = [
        long("input", 30.0, *at) for at in ((3, 8, 13, 18), (3, 8, 14, 18), (3, 8, 13))
    ]
    told["trap: one long step is no pattern: on a shared machine there always is one"] = long("device", 40.0, 4)
    told["one occasion that takes half of the trace"] = check(dict.fromkeys((4, 5), ("input", 100.0)))
    told["one occasion of two causes: the end of an epoch"] = check({4: ("between", 100.0), 5: ("input", 100.0)})
    told["two occasions of different causes"] = check({4: ("between", 50.0), 14: ("input", 50.0)})
    told["long steps without a common cause that take little"] = check({4: ("device", 20.0), 14: ("input", 20.0)})
    told["trap: adjacent long steps are one occasion, of another program's work"] = long("device", 20.0, 4, 5)
    told[...] = long("device", 20.0, 4, 6)
    told["a twentieth of the time, and less"] = long("between", 5.5), long("between", 5.0)
    told["without steady steps nothing is judged"] = long("between", 50.0, 2, count=5)
    compiling = CompileTime(2, 20, 1, share=0.5, apart=frozenset((4, 14)))
    assert long("between", starts=PassStarts(7, 30, 392.0, 28.0, 0.25, 12.0)) == long("between")
    told["steps that compile are left to recompilation"] = long("host", compiling=compiling)
    told["another long step beside those that compile"] = long("host", 100.0, 4, 9, 14, compiling=compiling)
    for source in (StepSource.EAGER_GRADIENT, StepSource.KERAS_FIT):
        told[f"long host work of {source}: single operations trace no function"] = long("host", source=source)
    told["first steps of untraced passes, and too short"] = [
        check({}, starts=PassStarts(7, 30, 392.0, 28.0, share, 12.0)) for share in (0.051, 0.049)
    ]
    told["long steps that the untraced ones lack"] = paced(100, 1000.0)
    told["long steps that the untraced ones have as well, or that are too few to tell"] = paced(100, 1900.0)
    told[...] = paced(19, 190.0)


@golden_cases
def test_busy_machine(told: Cases) -> None:
    told["long steps of a device while other programs use a core of two"] = long("device", cores=BUSY)
    told["long steps of a device while other programs use less"] = long("device", cores=Cores(2.0, 1.5, 0.4))
    callback = dict.fromkeys((4, 14), ("between", 100.0))
    told["a callback that is sampled in long steps is the cause, busy or not"] = example(callback, cores=BUSY)
    told["long steps without a strict period of four"] = long("host", 40.0, *(4, 9, 14), cores=BUSY)
    told[...] = long("host", 40.0, *(4, 9, 15, 19), cores=BUSY)
    told["a strict period is a note that says so"] = long("between", 40.0, 4, 9, 14, 19, cores=BUSY)
    told["the same on an idle machine"] = long("between", 40.0, 4, 9, 14, 19)


@golden_cases
def test_lines(told: Cases) -> None:
    told["the line of a callback and its call are named"] = between(EVAL)
    told["five samples, and four"] = [between(TimedLine(AT, seen, calls={PREDICT: seen})) for seen in (5, 4)]
    predicts, *others = TimedLine(AT, 10, calls={PREDICT: 10}), *(TimedLine(script(n), 1) for n in range(20, 31))
    told["half of the samples name a line, and less none"] = between(predicts, *others[:10])
    told[...] = between(predicts, *others)
    told["trap: a callback is sampled as in any other step while the device is slow"] = between(EVAL, part="device")
    told["samples without times count where long steps take half"] = between(EVAL, more=101.0, timed=False)
    told[...] = between(EVAL, more=99.0, timed=False)


@golden_cases
def test_ends_of_epochs(told: Cases) -> None:
    told["trap: fit is called once, and ends short epochs in long steps"] = between(FIT, program=fitting())
    own, ends = replace(FIT, callback="Eval.on_epoch_end"), LongStepLines({Stage.BETWEEN: (FIT,)})
    told["a callback in the line of fit is the user's own"] = between(own, program=fitting())
    told["another line than that of fit, and where that is unknown"] = between(FIT, program=fitting(at=script(1)))
    told[...] = between(FIT, program=fitting(at=None))

    for steps, number, epochs in (
        *((10, number, 5) for number in (9, 10, 11, 14)),
        *((None, 14, epochs) for epochs in (5, 1, None)),  # a fit over one epoch may be called for each
    ):
        verdict = long("between", 100.0, 4, number, lines=ends, program=fitting(epochs, steps))
        told[f"{epochs} epochs of {steps} steps, of which step {number} is long"] = first_action(verdict)


@golden_cases
def test_callbacks(told: Cases) -> None:
    told["a callback in every fifth step is found without outliers"] = checkpoint()
    told["a callback with few samples"] = checkpoint(seen=4)
    told["a callback that takes 3 % of the time"] = checkpoint(more=2.0)
    told["a callback in every other step is left to other rules"] = checkpoint(at=tuple(range(0, 20, 2)))
    told["a callback in successive steps is one occasion"] = checkpoint(at=(4, 5, 6))


# Long steps of the whole run
def run(beyond_ms: float) -> RunSteps:
    """Steps of 10 ms of a whole run, without the boundaries of its epochs; long ones have so many ms more."""
    beyond = LongSteps(count=20, ms=200.0 + beyond_ms, beyond_ms=beyond_ms)
    total = 10_000.0 + beyond_ms
    return replace(equal_steps(AT, 1000, 10.0, beyond), total_ms=total, mean_ms=total / 1000)


def seen(number: int, time: float, work: RunWork = RunWork.OTHER, **more: Any) -> LongLine:
    at = script(number)
    return LongLine(at=at, ms=time, samples=more.pop("samples", 50), work=work, **more)


def occasional(
    *lines: LongLine, beyond_ms: float = 6_000.0, every: tuple[RunLine, ...] = (), cores: Cores | None = None,
    extra: dict[int, tuple[str, float]] | None = None, **more: Any,
) -> Verdict:  # fmt: skip
    """A run of a minute with 120 long steps of 600, none of them traced, and with lines of all its steps."""
    beyond = LongSteps(count=120, ms=7_000.0, beyond_ms=beyond_ms, every=5)
    run = equal_steps(script(40), 600, 20.0, beyond)
    every = every or tuple(run_line(Phase.STEPS, one.at, one.ms) for one in lines)
    phases, sampled = divided_run(60_000.0, {}, *every), RunLongLines(lines)
    return check(extra or {}, run=run, phases=phases, sampled=sampled, cores=cores, **more)


@golden_cases
def test_run(told: Cases) -> None:
    told["untraced work in some steps"] = occasional(seen(23, 5_000.0, calls="matplotlib.figure.Figure.savefig"))
    special = seen(23, 5_000.0, calls="keras.src.layers.layer.Layer.__call__")
    told["a special method is named with its class"] = occasional(special)
    traced = dict.fromkeys((4, 14), ("between", 100.0))
    told["a traced pattern gets the price of the run"] = occasional(
        seen(30, 5_000.0), extra=traced, lines=LongStepLines({Stage.BETWEEN: (EVAL,)})
    )
    told["less than a second, and less than 5 % of the run"] = occasional(seen(23, 5_000.0), beyond_ms=900.0)
    told[...] = occasional(seen(23, 5_000.0), beyond_ms=2_000.0)
    told["two thirds of what long steps take beyond usual, as another line takes a third"] = occasional(
        seen(23, 2_000.0), seen(24, 1_000.0, RunWork.INPUT)
    )
    told["waits for input and tracing are no work of their own"] = occasional(seen(23, 5_000.0, RunWork.INPUT))
    told[...] = occasional(seen(23, 5_000.0, RunWork.TRACING))
    told["a line that is seen twice, and the one that trains"] = occasional(seen(23, 5_000.0, samples=2))
    told[...] = occasional(seen(40, 5_000.0, trains=True))
    update, save, own = seen(23, 1_000.0, calls="Optimizer.apply_gradients"), seen(30, 5_000.0), seen(31, 500.0)
    every = tuple(run_line(Phase.STEPS, at, ms) for at, ms in ((update.at, 2_001.0), (save.at, 6_000.0)))
    told["an optimizer's update is in each step; Python may be rarer"] = occasional(update, save, own, every=every)
    told["the optimizer's update alone, which other programs make long"] = occasional(
        update, every=every, cores=BUSY
    )
    evaluates = run_line(Phase.EVALUATION, save.at, 5_000.0)
    told["an evaluation that delays the next step is none of its own"] = occasional(save, every=(evaluates,))
    told["half of a line's time is in long steps"] = occasional(
        update, every=(run_line(Phase.STEPS, update.at, 2_000.0),)
    )
    told["what lies between epochs in the account of the run is no long step"] = between(run=run(0.0))
    told[...] = between(FIT, run=run(0.0))
    told["a callback, or a line of the user's, is none of an epoch's end"] = (
        between(replace(FIT, callback="Save.on_train_batch_end"), run=run(0.0)),
        between(replace(FIT, calls={"train.save": 40}), run=run(0.0)),
    )
    told["long steps in all of the run"] = between(run=run(10_000.0))
    told["a slow device is no boundary of an epoch"] = long("device", run=run(0.0))
