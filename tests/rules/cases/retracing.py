"""The cases of retracing: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.tracing.retracing import check
from tfdoctor.rules.tracing.retracing.run_tracing import RunTracing


def example(
    retracing: Retracing | Unavailable,
    breakdown: Breakdown | None = None,
    *functions: TracedDefinition,
    run: RunTracing | None = None,
    phases: RunPhases | None = None,
    calls: tuple[MadeCall, ...] = (),
) -> Verdict:
    """Judge the traced steps, if there are any, and functions that the run traced in ten epochs."""
    traces = RunTraces(functions) if functions else None
    made = RunCalls(calls, epochs=10, fits=10) if calls else None
    return check(retracing, breakdown, None, run, traces, phases, made)


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
    retracing = Retracing((Retraced("train_step", 19, 0, 1),))
    return example(retracing, Breakdown.of(device=6.0, host=0.4))
