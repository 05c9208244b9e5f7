"""The cases of slow-start: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.run.slow_start import check
from tfdoctor.rules.run.slow_start.start_load import StartLoad

IMPORTED = run_line(Phase.IMPORTS, Location("serve.py", 1), 6_000.0, "tensorflow", repeats=False)


def example(
    *calls: MadeCall,
    lines: tuple[RunLine, ...] = (IMPORTED,),
    total_ms: float = 60_000.0,
    load: StartLoad | None = None,
    program: Program | None = None,
    traces: RunTraces | None = None,
) -> Verdict:
    """Judge a run with these imports and calls, whose other time is in training steps."""
    times = {Phase.BUILDING: sum(call.ms for call in calls)}
    for line in lines:
        times[line.phase] = times.get(line.phase, 0.0) + line.ms
    return check(divided_run(total_ms, times, *lines), RunCalls(calls), load, program, traces)


def sick() -> Verdict:
    """A loop loads the model before each of 40 predictions: 32 of 60 s."""
    at = Location("serve.py", 14)
    return example(made_call(RunCall.BUILD, at, 40, 800.0, name="load_model", looped=True))


def healthy() -> Verdict:
    """TensorFlow is imported in 6 s and one model is built in 2 s, in a run of 36 s."""
    at = Location("serve.py", 14)
    return example(made_call(RunCall.BUILD, at, 1, 2_000.0, name="Sequential"), total_ms=36_000.0)
