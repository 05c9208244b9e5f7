"""retracing: functions that are retraced repeatedly, and what changes."""

from tests.rules.kit import *
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.typed import read
from tfdoctor.rules.tracing import retracing
from tfdoctor.rules.tracing.retracing.run_tracing import RunTracing, TracedInRun


def example(
    traced: Retracing | Unavailable, breakdown: Breakdown | None = None, *functions: TracedDefinition,
    run: RunTracing | None = None, phases: RunPhases | None = None, calls: tuple[MadeCall, ...] = (),
) -> Verdict:  # fmt: skip
    """Judge the traced steps, if there are any, and functions that the run traced in ten epochs."""
    traces = RunTraces(functions) if functions else None
    made = RunCalls(calls, epochs=10, fits=10) if calls else None
    return retracing.check(traced, breakdown, None, run, traces, phases, made)


def sick() -> Verdict:
    """Each of ten epochs compiles the model again, so each traces the training function."""
    step = TracedDefinition(
        name="one_step_on_iterator", at=Location("train.py", 33), tracings=10, ms=10_300.0, first_ms=1_050.0,
        made=10, within=RunCall.EPOCH, starts_s=tuple(8.0 + epoch for epoch in range(10)),
    )  # fmt: skip
    compiled = made_call(
        RunCall.COMPILE, Location("train.py", 31), 10, 8.0, name="Sequential.compile", looped=True, models=1
    )  # fmt: skip
    times = {Phase.IMPORTS: 8_000.0, Phase.TRACING: 10_300.0}
    phases = divided_run(18_400.0, times)
    untraced = Unavailable("the run was recorded without a trace")
    return example(untraced, None, step, phases=phases, calls=(compiled,))


def healthy() -> Verdict:
    """The function was traced before the traced steps."""
    traced = Retracing((Retraced("train_step", 19, 0, 1),))
    return example(traced, Breakdown.of(device=6.0, host=0.4))


def check(*functions: Retraced, run: RunTracing | None = None) -> Verdict:
    traced = Retracing(functions, host_ms=4.0, between_ms=6.0)
    return example(traced, Breakdown.of(device=5.0, host=5.0, between=7.0), run=run)


def test_the_first_traces_and_a_last_smaller_batch_are_no_fault() -> None:
    """Trap: a trace that holds a function's first calls; one smaller batch at the end of an epoch."""
    found = [check(Retraced("train_step", 20, *traced)) for traced in ((2, 3), (1, 9), (2, 2))]
    assert kinds(*found, check()) == [Finding, Healthy, Healthy, NotApplicable]


def test_the_remedy_follows_what_changes() -> None:
    for changed, words in (
        (("1", "2"), "a tensor instead of a Python number"),
        (("True", "False"), "a tensor instead of a Python number"),
        (("TensorSpec(shape=(31, 4))", "TensorSpec(shape=(32, 4))"), "one shape"),
        (("TensorSpec(shape=(32, 41))", "TensorSpec(shape=(32, 57))"), "a few lengths"),
        (("TensorSpec(shape=(3,), dtype=tf.int32)", "TensorSpec(shape=(3,), dtype=tf.int64)"), "what changes"),
        (("TensorSpec(shape=<unknown>)", "TensorSpec(shape=(3,))"), "what changes"),
        (("<object at 1>", "<object at 2>"), "what changes"),
        ((), "what changes"),
    ):
        finding = as_finding(check(Retraced("train_step", 20, 20, 30, changed)))
        assert words in finding.remedies[0].action


def test_the_code_has_the_shapes_that_were_given() -> None:
    """A regression: the lengths of the advice were those of no data that the function saw."""
    seen = ["TensorSpec(shape=(32, 41), dtype=tf.int64)", "TensorSpec(shape=(32, 57), dtype=tf.int64)"]
    (lengths,) = as_finding(check(Retraced("train_step", 20, 20, 30, tuple(seen)))).remedies
    assert "input_signature=[tf.TensorSpec([32, None], tf.int64)]" in lengths.code
    assert "bucket_boundaries=[49, 65], bucket_batch_sizes=[batch_size] * 3" in lengths.code

    smaller = ["TensorSpec(shape=(31, 4), dtype=tf.float32)", "TensorSpec(shape=(64, 4), dtype=tf.float32)"]
    (size,) = as_finding(check(Retraced("train_step", 20, 20, 30, tuple(smaller)))).remedies
    assert "dataset.batch(64, drop_remainder=True)" in size.code
    assert "input_signature=[tf.TensorSpec([None, 4], tf.float32)]" in size.code


def test_the_effects_are_the_tracing_time_of_each_stage() -> None:
    found = effects(check(Retraced("train_step", 20, 20, 30)))
    assert {part: of for part, of, *_ in found} == {Stage.HOST: 4.0, Stage.BETWEEN: 6.0}


def in_run(tracings: int = 6, last: int = 75, step_ms: float = 8.0) -> RunTracing:
    return RunTracing((TracedInRun("train_step", 150, tracings, last, step_ms),))


def test_tracing_that_goes_on_outside_of_the_window_is_found() -> None:
    """Trap: warm-up, such as one trace for each of a few buckets. The limit is 5 % of it and of a step of 17 ms."""
    runs = in_run(), in_run(tracings=5), in_run(last=74), in_run(step_ms=0.9), in_run(step_ms=0.89)
    found = [check(Retraced("train_step", 20, 1, 9), run=run) for run in runs]
    assert kinds(*found) == [Finding, Healthy, Healthy, Finding, Healthy]


def test_tracing_over_the_run_has_no_saving_of_a_typical_step() -> None:
    finding = as_finding(check(Retraced("train_step", 20, 0, 9), run=in_run(step_ms=51.0)))
    assert (finding.effects, finding.severity) == ((), Severity.CRITICAL)
    assert "6 of 150 calls" in finding.summary


def test_a_function_that_is_made_again_is_to_be_made_once() -> None:
    for made, in_fit, words in (
        (6, True, "Compile the model once"),
        (6, False, "Create train_step once"),
        (1, True, "Find what"),
    ):
        function = TracedInRun("train_step", 150, 6, 75, 8.0, made=made, in_fit=in_fit)
        finding = as_finding(check(Retraced("train_step", 20, 0, 1), run=RunTracing((function,))))
        assert words in finding.remedies[0].action
        assert ("6 separate function objects" in finding.summary) == (made == 6)
        assert finding.concern is Concern.LONG_STEPS


def test_what_the_window_shows_comes_first() -> None:
    assert as_finding(check(Retraced("train_step", 20, 20, 30), run=in_run())).effects


def counted(**parts: Any) -> RunTracing:
    function = {
        "name": "step",
        "calls": 150,
        "traced": [0, 1, 80],
        "tracings": 3,
        "traced_ms": 302.0,
        "call_ms": 2.0,
    }
    steps = read(StepsSeen, {"seen": 100, "functions": [function | parts]}, [])
    return chart(trace([]), recording(manifest=Manifest(steps=steps))).fact(RunTracing)


def test_the_time_is_that_of_calls_after_the_first() -> None:
    (function,) = counted().functions
    assert (function.traced - 1, function.last, function.step_ms) == (2, 80, near(2 * 300.0 / 100))
    without: tuple[dict[str, Any], ...] = {"traced_ms": None}, {"call_ms": None}, {"traced": []}
    for missing in without:
        assert counted(**missing).functions == ()
