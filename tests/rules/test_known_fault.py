"""known-fault: a version and its sign together make a finding."""

from tests.rules.kit import *
from tests.run_logs import Run
from tfdoctor.facts.phases.run_calls import TracedDefinition
from tfdoctor.rules.run.known_fault import KERAS, check
from tfdoctor.rules.run.known_fault.batch_tracing import BatchTracing


def example(keras: str = "3.6.0", calls: int = 60, tracings: int = 60, again_ms: float = 6_400.0) -> Verdict:
    """All of 60 calls of train_on_batch trace, with Keras 3.6."""
    versions, at = {"tensorflow": "2.16.1", KERAS: keras}, script(9)
    traced = TracedDefinition(
        name="one_step_on_iterator", at=at, tracings=tracings, ms=1_200.0 + again_ms, first_ms=1_200.0
    )
    return check(BatchTracing(versions, calls, traced))


def measured(source: str = StepSource.KERAS_TRAIN_ON_BATCH, **versions: str) -> BatchTracing:
    """As the agent recorded a run of Keras 3.6."""
    run = Run(source=StepSource.KERAS_TRAIN_ON_BATCH)
    for number in range(60):
        run.trace(0.1 if number else 1.2, "train.py:9", "one_step_on_iterator", trains=True)
    for _ in range(90):
        run.trace(0.1, "train.py:5", "my_step")
    opened = run.recording(versions=versions, steps=StepsSeen(source=source, seen=60))
    return BatchTracing.measure(opened, RunTraces.measure(opened))


sick = example
healthy = described("Only the first call traces, with Keras 3.7.", example, "3.7.0", tracings=1)


@golden_cases
def test_verdicts(told: Cases) -> None:
    for keras in ("3.0.0", "3.6.0", "2.15.0", "3.7.0", "3.10.0"):
        told[f"Keras {keras}"] = example(keras)
    told["Keras 3.6 with new shapes in its first calls: nine of ten calls trace"] = [
        example(calls=calls, tracings=tracings) for calls, tracings in ((10, 9), (9, 9), (100, 90), (100, 89))
    ]
    told["Keras 3.6 that trains with fit"] = example(calls=100, tracings=1)
    told["without the time of the traces"] = example(again_ms=0.0)
    # A recorded run has the calls of Keras' own function
    recorded = measured(keras="3.6.0", tensorflow="2.16.1", python="3.11.7")
    told["a recorded run"] = recorded, check(recorded)
    told["other loops"] = check(measured(StepSource.KERAS_FIT, keras="3.6.0"))
    told["without versions"] = measured
