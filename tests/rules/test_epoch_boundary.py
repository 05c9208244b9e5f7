"""epoch-boundary: work between epochs is found by line; a first slow epoch and a usual validation are not."""

from tests.rules.kit import *
from tfdoctor.rules.run.epoch_boundary import check
from tfdoctor.terms.run_time import PhaseSegment

FIT = script(40)
PHASES = {RunCall.EVALUATE: Phase.EVALUATION, RunCall.PREDICT: Phase.PREDICTION, RunCall.SAVE: Phase.SAVING}
EPOCHS = 10
FROM_SLICES = "tensorflow.python.data.ops.dataset_ops.DatasetV2.from_tensor_slices"


def example(
    *calls: MadeCall, lines: tuple[RunLine, ...] = (), total_ms: float = 67_000.0, epochs: int = 10,
    long: LongSteps | None = None, spans: tuple[PhaseSegment, ...] = (), fits: int = 1,
) -> Verdict:  # fmt: skip
    """Judge a run of 5,000 steps of 4 ms with these calls and lines."""
    times: dict[Phase, float] = defaultdict(float)
    for call in calls:
        if call.call in PHASES:
            times[PHASES[call.call]] += call.ms
    for one in lines:
        times[one.phase] += one.ms
    run = replace(divided_run(total_ms, times, *lines), spans=spans)
    return check(run, RunCalls(calls, epochs, fits=fits), equal_steps(FIT, 5_000, 4.0, long), None)


def _validated(each_ms: float, batches: float) -> MadeCall:
    given = {"batches": batches, "examples": 32 * batches, "within": RunCall.EPOCH}
    return made_call(RunCall.EVALUATE, FIT, 10, each_ms, **given)


def validated(ms: float, *, count: int = EPOCHS, **more: Any) -> MadeCall:
    return calls_at(RunCall.EVALUATE, 40, count, ms / count, **{"within": RunCall.EPOCH, **more})


def predicted(each_ms: float, count: int = EPOCHS, **more: Any) -> MadeCall:
    return calls_at(RunCall.PREDICT, 12, count, each_ms, **more)


def between(ms: float, calls: str = "", *, repeats: bool = True, number: int = 50) -> RunLine:
    return at_line(Phase.BOUNDARIES, number, ms, calls, repeats=repeats)


def long(count: int, ms: float, beyond_ms: float, first: int, median_ms: float) -> LongSteps:
    more: dict[str, Any] = {"first": first, "first_beyond_ms": beyond_ms, "first_median_ms": median_ms}
    return LongSteps(count=count, ms=ms, beyond_ms=beyond_ms, **more)


def waited(longest_s: float) -> tuple[PhaseSegment, ...]:
    return tuple(
        PhaseSegment(Phase.BOUNDARIES, start, start + took, script(50))
        for start, took in ((0.0, 2.0), (20.0, longest_s), (40.0, 2.0), (60.0, 2.0), (80.0, 2.0))
    )


sick = described(
    "A validation of 3,000 batches in each of 10 epochs takes 40 s beside 20 s of training steps.",
    example,
    _validated(4_000.0, 3_125.0),
)
healthy = described(
    "A validation of 100 batches in each of 10 epochs takes 3 s beside 20 s of training steps.",
    example,
    _validated(300.0, 100.0),
    total_ms=30_000.0,
)
judged = partial(example, total_ms=100_000.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["2 ms a batch: validate every few epochs"] = judged(validated(40_000.0, batches=2e3, examples=512e3))
    told["10 ms a batch, and 4 ms a training step"] = judged(validated(40_000.0, batches=400.0))
    told["a validation in small batches"] = judged(validated(40_000.0, batches=4_000.0, examples=128_000.0))
    told["many validations in each epoch"] = judged(validated(40_000.0, count=100))
    told["one fit validates, and a second one does not"] = judged(validated(40_000.0, count=6, batches=2_000.0))
    told["a validation that is not long beside the training"] = judged(validated(19_000.0, batches=100.0))
    told["predictions in a callback, and in a loop over epochs"] = judged(predicted(2_000.0, within=RunCall.EPOCH))
    told[...] = judged(predicted(2_000.0, looped=True))
    told["predictions of a twentieth of the run"] = [judged(predicted(ms, looped=True)) for ms in (500.0, 499.0)]
    told["predictions after the training"] = judged(predicted(2_000.0, looped=True, after_training=True))
    told["a loop in a callback is left to slow-prediction"] = judged(predicted(40.0, 500, within=RunCall.EPOCH))
    told["each epoch saves"] = judged(calls_at(RunCall.SAVE, 40, EPOCHS, 1_500.0, within=RunCall.EPOCH))
    told["the first epoch is slow by tracing, a step by all"] = judged(long=long(1, 9_000.0, 9_000.0, 1, 9_000.0))
    told[...] = judged(long=long(10, 9_000.0, 9_000.0, 10, 10.0))
    told["one epoch"] = judged(epochs=1)
    part = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    told["what is missing is said"] = applied(check, part, RunCalls((), 5))
    told["of several fits no epochs are counted"] = judged(lines=(between(20_000.0, FROM_SLICES),), fits=1)
    told[...] = judged(lines=(between(20_000.0, FROM_SLICES),), fits=2)


@golden_cases
def test_lines(told: Cases) -> None:
    for calls in (FROM_SLICES, "gc.collect", "matplotlib.pyplot.savefig", "keras.src.ops.nn.ctc_decode"):
        told[f"a line calls {calls} between epochs"] = judged(lines=(between(30_000.0, calls, repeats=False),))
    told["a loop in Python; a decoder's results depend on the training"] = judged(lines=(between(30_000.0),))
    told[...] = judged(lines=(between(30_000.0, "keras.src.ops.nn.ctc_decode"),))
    fit, lines = calls_at(RunCall.FIT, 50, 1, 90_000.0), (between(30_000.0, "keras.Model.fit", repeats=False),)
    told["fit's own work in ten epochs; in nine it may be the recorder's"] = judged(fit, lines=lines, epochs=10)
    told[...] = judged(fit, lines=lines, epochs=9)
    told["a longest wait of 12 s, which is no wait of each epoch, and one of 2 s: in six and in seven epochs"] = [
        judged(lines=(between(30_000.0, repeats=False),), spans=waited(longest_s), epochs=epochs)
        for longest_s in (12.0, 2.0)
        for epochs in (6, 7)
    ]
    told["a second of the run, and less"] = example(lines=(between(1_000.0, "gc.collect"),), total_ms=15_000.0)
    told[...] = example(lines=(between(999.0, "gc.collect"),), total_ms=15_000.0)
    told["several lines between epochs are a loop"] = judged(lines=(between(20_000.0), between(9_000.0, number=51)))
    told["what saves most comes first"] = judged(
        lines=(between(9_000.0, "gc.collect"), between(30_000.0, "scipy.signal.fft", repeats=False, number=90))
    )
    own = "keras.src.backend.tensorflow.trainer.TensorFlowTrainer.fit"
    for name, runs, ms in (
        ("of 0.1 s", own, 1_000.0),
        ("of less", own, 990.0),
        ("of another function", "gc.collect", 1e3),
        ("of another library's fit", "sklearn.cluster._kmeans.KMeans.fit", 1e3),
    ):
        freed = replace(between(ms, "Model.fit", repeats=False), runs=runs)
        told[f"a wait in fit itself at the end of each pass, {name}"] = judged(
            fit, lines=(freed,), total_ms=10_000.0
        )
    validates = validated(100.0, count=10)
    in_fit = replace(at_line(Phase.BOUNDARIES, 40, 9_000.0, "Model.fit"), runs=own)
    told["a wait of a fit that validates"] = judged(
        validates, calls_at(RunCall.FIT, 40, 1, 90_000.0), lines=(in_fit,)
    )
    off = DataOptions({"autotune.enabled": False})
    phases = divided_run(90_000.0, {Phase.BOUNDARIES: 9_000.0}, in_fit)
    at_fit = calls_at(RunCall.FIT, 40, 1, 90_000.0)
    told["trap: autotuning is off"] = check(phases, RunCalls((at_fit,), EPOCHS), None, off)
    iterates = at_line(Phase.PREPARING, 50, 100.0, "tensorflow.python.data.ops.dataset_ops.DatasetV2.__iter__")
    for name, more in (("over a dataset", [iterates]), ("over something else", [])):
        told[f"the end of a loop {name}"] = judged(lines=(between(9_000.0, repeats=True), *more))
    again = tuple(PhaseSegment(Phase.EVALUATION, 1e3 * n, 1e3 * n + 900, script(50)) for n in range(EPOCHS))
    for calls, spans in (
        ("PIL.Image.Image.save", again),
        ("PIL.Image.Image.save", again[:2]),
        ("json.dumps", again),
    ):
        drawn = at_line(Phase.EVALUATION, 50, 9_000.0, calls, repeats=False)
        told[f"{calls} in {len(spans)} evaluations of the script's own"] = judged(lines=(drawn,), spans=spans)
    for ms in (20_000.0, 19_999.0):
        timed = replace(at_line(Phase.EVALUATION, 50, ms, "generate"), exact=True)
        told[f"a function evaluates for {ms} ms beside 20,000 of training"] = judged(lines=(timed,), spans=again)
    waits = replace(long(12, 16_000.0, 14_000.0, 10, 1_300.0), beyond_ms=15_000.0)
    told["an epoch's first wait, found once"] = judged(lines=(at_line(Phase.BOUNDARIES, 40, 14_000.0),), long=waits)
