"""retracing: functions that are retraced repeatedly, and what changes."""

from tests.rules.kit import *
from tfdoctor.rules.tracing import retracing


def example(
    traced: Retracing | Unavailable, breakdown: Breakdown | None = None, *functions: TracedDefinition,
    phases: RunPhases | None = None, calls: tuple[MadeCall, ...] = (),
) -> Verdict:  # fmt: skip
    """Judge the traced steps, if there are any, and functions that the run traced in ten epochs."""
    traces = RunTraces(functions) if functions else None
    made = RunCalls(calls, epochs=10, fits=10) if calls else None
    return retracing.check(traced, breakdown, None, traces, phases, made)


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


def check(*functions: Retraced) -> Verdict:
    traced = Retracing(functions, host_ms=4.0, between_ms=6.0)
    return example(traced, Breakdown.of(device=5.0, host=5.0, between=7.0))


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
