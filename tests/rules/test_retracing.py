"""retracing: functions that are retraced repeatedly, and what changes."""

import pytest

from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.retracing import Retraced, Retracing
from tfdoctor.rules import retracing
from tfdoctor.verdict import Finding, Healthy, NotApplicable, Stage, Verdict


def check(*functions: Retraced) -> Verdict:
    return retracing.check(
        Retracing(functions, host_ms=4.0, between_ms=6.0),
        Breakdown.of(device=5.0, host=5.0, between=7.0),
        None,
    )


@pytest.mark.parametrize(
    ("traced", "tracings", "kind"), [(2, 3, Finding), (1, 9, Healthy), (2, 2, Healthy)]
)
def test_the_first_traces_and_a_last_smaller_batch_are_no_fault(
    traced: int, tracings: int, kind: type
) -> None:
    """Trap: a trace that holds a function's first calls; one smaller batch at the end of an epoch."""
    assert isinstance(check(Retraced("train_step", 20, traced, tracings)), kind)


def test_without_a_function_nothing_is_judged() -> None:
    assert isinstance(check(), NotApplicable)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("1", "2"), "a tensor instead of a Python number"),
        (("True", "False"), "a tensor instead of a Python number"),
        (("TensorSpec(shape=(31, 4))", "TensorSpec(shape=(32, 4))"), "one shape"),
        (("TensorSpec(shape=(32, 41))", "TensorSpec(shape=(32, 57))"), "a few lengths"),
        (
            ("TensorSpec(shape=(3,), dtype=tf.int32)", "TensorSpec(shape=(3,), dtype=tf.int64)"),
            "what changes",
        ),
        (("TensorSpec(shape=<unknown>)", "TensorSpec(shape=(3,))"), "what changes"),
        (("<object at 1>", "<object at 2>"), "what changes"),
        ((), "what changes"),
    ],
)
def test_the_remedy_follows_what_changes(changed: tuple[str, ...], words: str) -> None:
    finding = check(Retraced("train_step", 20, 20, 30, changed))
    assert isinstance(finding, Finding)
    assert words in finding.remedies[0].action


def test_the_effects_are_the_tracing_time_of_each_stage() -> None:
    finding = check(Retraced("train_step", 20, 20, 30))
    assert isinstance(finding, Finding)
    times = {effect.stage: effect.of and effect.of.value for effect in finding.effects}
    assert times == {Stage.HOST: 4.0, Stage.BETWEEN: 6.0}
