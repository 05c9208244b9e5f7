"""The cases of known-fault: what its tests judge, and the examples of its page."""

from tfdoctor.rules.run.known_fault import KERAS, check
from tfdoctor.rules.run.known_fault.batch_tracing import BatchTracing
from tfdoctor.terms.verdict import Location, Verdict


def example(keras: str = "3.6.0", calls: int = 60, tracings: int = 60, again_ms: float | None = 6_400.0) -> Verdict:
    """All of 60 calls of train_on_batch trace, with Keras 3.6."""
    major, minor, *_ = map(int, keras.split("."))
    texts = {"tensorflow": "2.16.1", KERAS: keras}
    versions = {"tensorflow": (2, 16), KERAS: (major, minor)}
    at = Location("train.py", 9)
    return check(BatchTracing(versions, texts, calls, tracings, again_ms, "one_step_on_iterator", at))


sick = example


def healthy() -> Verdict:
    """Only the first call traces, with Keras 3.7."""
    return example("3.7.0", tracings=1)
