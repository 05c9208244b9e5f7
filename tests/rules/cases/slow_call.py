"""The cases of slow-call: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.step_time.host_lines import SlowCalls
from tfdoctor.facts.step_time.timed_line import SlowCall
from tfdoctor.rules.execution.slow_call import check
from tfdoctor.rules.execution.slow_call.single_calls import SingleCalls


def example(  # noqa: PLR0913 - the calls, and all that says what a change may spare with them
    *lines: TimedLine,
    step: Breakdown | None = None,
    long: LongStepLines | None = None,
    single: SingleOperations | None = None,
    body: LoopBody | None = None,
    examples: SingleCalls | None = None,
    phases: RunPhases | None = None,
    run: RunSteps | None = None,
    operations: Operations | None = None,
) -> Verdict:
    """Judge these lines of a loop, of which 30 steps were sampled."""
    whole = step or Breakdown.of(between=153.0, host=5.0, device=10.0)
    return check(SlowCalls(lines, 30), whole, long, single, body, examples, phases, run, operations)


def sick() -> Verdict:
    """A reinforcement learning step calls predict on one batch: 150 of 168 ms."""
    at = Location("train.py", 51)
    return example(TimedLine.slow(at, SlowCall.PREDICT, 60, range(29), {Stage.BETWEEN: 150.0}))


def healthy() -> Verdict:
    """The same loop calls predict_on_batch."""
    return example(step=Breakdown.of(between=2.0, host=2.0, device=10.0))
