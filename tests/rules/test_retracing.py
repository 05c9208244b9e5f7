"""retracing: functions that are retraced repeatedly, and what changes."""

from tests.rules.kit import *
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
        name="one_step_on_iterator", at=script(33), tracings=10, ms=10_300.0, first_ms=1_050.0,
        made=10, within=RunCall.EPOCH, starts_s=tuple(8.0 + epoch for epoch in range(10)),
    )  # fmt: skip
    compiled = made_call(RunCall.COMPILE, script(31), 10, 8.0, name="Sequential.compile", looped=True, models=1)
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


def in_run(tracings: int = 6, last: int = 75, step_ms: float = 8.0) -> RunTracing:
    return RunTracing((TracedInRun("train_step", 150, tracings, last, step_ms),))


def counted(**parts: Any) -> RunTracing:
    function = {"name": "step", "calls": 150, "traced": [0, 1, 80], "tracings": 3}
    known = function | {"traced_ms": 302.0, "call_ms": 2.0} | parts
    steps = read(StepsSeen, {"seen": 100, "functions": [known]}, [])
    return chart(trace([]), recording(manifest=Manifest(steps=steps))).fact(RunTracing)


@golden_cases
def test_verdicts(told: Cases) -> None:
    for name, traced in (
        ("two of twenty calls", (2, 3)),
        ("trap: one smaller batch at the end of an epoch", (1, 9)),
        ("trap: a function's first calls", (2, 2)),
    ):
        told[name] = check(Retraced("train_step", 20, *traced))
    told["no function"] = check()
    changes: dict[str, tuple[str, ...]] = {
        "numbers": ("1", "2"),
        "truth values": ("True", "False"),
        "sizes of batches": ("TensorSpec(shape=(31, 4))", "TensorSpec(shape=(64, 4), dtype=tf.float32)"),
        "lengths": ("TensorSpec(shape=(32, 41), dtype=tf.int64)", "TensorSpec(shape=(32, 57), dtype=tf.int64)"),
        "types": ("TensorSpec(shape=(3,), dtype=tf.int32)", "TensorSpec(shape=(3,), dtype=tf.int64)"),
        "unknown shapes": ("TensorSpec(shape=<unknown>)", "TensorSpec(shape=(3,))"),
        "objects": ("<object at 1>", "<object at 2>"),
        "what is unknown": (),
    }
    for name, changed in changes.items():
        told[f"the remedy follows what changes: {name}"] = check(Retraced("train_step", 20, 20, 30, changed))
    told["what the window shows comes before the run"] = check(Retraced("train_step", 20, 20, 30), run=in_run())


@golden_cases
def test_outside_of_the_window(told: Cases) -> None:
    """The limit is 5 % of the run, and of a step of 17 ms."""
    for name, run in (
        ("tracing goes on: 6 of 150 calls", in_run()),
        ("trap: warm-up, such as one trace for each of a few buckets", in_run(tracings=5)),
        ("the last tracing is in the first half of the run", in_run(last=74)),
        ("a twentieth of a step", in_run(step_ms=0.9)),
        ("less than a twentieth of a step", in_run(step_ms=0.89)),
    ):
        told[name] = check(Retraced("train_step", 20, 1, 9), run=run)
    (function,) = counted().functions
    told["the time is that of calls after the first"] = function.traced - 1, function.last, function.step_ms
    without: tuple[dict[str, Any], ...] = {"traced_ms": None}, {"call_ms": None}, {"traced": []}
    told["a record without times, or calls that traced"] = [counted(**missing).functions for missing in without]
    told["no saving of a typical step"] = check(Retraced("train_step", 20, 0, 9), run=in_run(step_ms=51.0))
    for name, made, in_fit in (
        ("a function that fit makes again", 6, True),
        ("a function that is made again", 6, False),
        ("one function of fit", 1, True),
    ):
        function = TracedInRun("train_step", 150, 6, 75, 8.0, made=made, in_fit=in_fit)
        told[name] = check(Retraced("train_step", 20, 0, 1), run=RunTracing((function,)))
