"""known-fault: a version and its sign together make a finding."""

import pytest

from tests.rules.kit import *
from tfdoctor.recording.agent import TracedFunction
from tfdoctor.rules.run.known_fault import KERAS, BatchTracing, check


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


def test_the_table_says_which_versions() -> None:
    found = [example(keras) for keras in ("2.15.0", "3.0.0", "3.6.0", "3.7.0", "3.10.0")]
    assert kinds(*found) == [Healthy, Finding, Finding, Healthy, Healthy]


def test_a_version_alone_is_no_finding() -> None:
    """Trap: Keras 3.6 that trains with fit, or with new shapes in its first calls."""
    cases = (10, 9), (9, 9), (100, 90), (100, 89), (100, 1)
    found = [example(calls=calls, tracings=tracings) for calls, tracings in cases]
    assert kinds(*found) == [Finding, Healthy, Finding, Healthy, Healthy]


def test_the_time_is_that_of_the_traces() -> None:
    (effect,) = as_finding(example()).run_effects
    expected = (Phase.TRACING, 6_400.0, "one_step_on_iterator train.py:9")
    assert (effect.phase, effect.of.value, effect.subject) == expected
    without = as_finding(example(again_ms=None))
    assert (without.run_effects, without.severity) == ((), Severity.WARNING)


LINE = ("/home/me/train.py", 9)


def measured(source: str = StepSource.KERAS_TRAIN_ON_BATCH, **versions: str) -> BatchTracing:
    """As the agent recorded a run of Keras 3.6."""
    function = TracedFunction(name="one_step_on_iterator", at=LINE, calls=60, tracings=60)
    other = TracedFunction(name="my_step", at=LINE, calls=90, tracings=90)
    steps = StepsSeen(source=source, seen=60, functions=(other, function))
    found: dict[str, Any] = {"versions": versions, "steps": steps}
    at = Location("train.py", 9)
    traced = TracedDefinition(name="one_step_on_iterator", at=at, tracings=60, ms=7_600.0, first_ms=1_200.0)
    return BatchTracing.measure(recording(manifest=manifest(**found)), RunTraces((traced,)))


def test_a_recorded_run_has_the_calls_of_keras_own_function() -> None:
    found = measured(keras="3.6.0", tensorflow="2.16.1", python="3.11.7")
    assert (found.calls, found.tracings, found.again_ms) == (60, 60, 6_400.0)
    assert found.at == Location("train.py", 9)
    assert "60 of 60" in as_finding(check(found)).summary


def test_other_loops_are_not_concerned() -> None:
    found = measured(StepSource.KERAS_FIT, keras="3.6.0")
    assert "does not show" in as_healthy(check(found)).summary


def test_without_versions_nothing_is_judged() -> None:
    with pytest.raises(Unavailable, match="versions"):
        measured()
