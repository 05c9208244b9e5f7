"""eager-step: more time in operations outside of tf.functions than in functions."""

import pytest

from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.eager_work import EagerWork
from tfdoctor.rules import eager_step
from tfdoctor.verdict import Finding, Healthy, Verdict


def check(
    operations: float, single: float, whole: float = 0.0, *, asked: bool | None = None
) -> Verdict:
    return eager_step.check(
        EagerWork(operations, single, whole, asked=asked), Breakdown.of(host=10.0, device=5.0)
    )


@pytest.mark.parametrize(
    ("operations", "single", "whole", "kind"),
    [
        (20.0, 5.0, 0.0, Finding),
        (19.0, 5.0, 0.0, Healthy),
        (100.0, 2.0, 2.0, Healthy),
        (100.0, 2.1, 2.0, Finding),
    ],
)
def test_operations_next_to_a_function_are_no_eager_step(
    operations: float, single: float, whole: float, kind: type
) -> None:
    """Trap: metrics and losses that are read next to a step that is a function."""
    assert isinstance(check(operations, single, whole), kind)


def test_the_call_of_one_function_remains() -> None:
    finding = check(200.0, 5.0)
    assert isinstance(finding, Finding)
    assert finding.effects[0].scales == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("asked", "edit_id", "words"),
    [
        (True, "run-eagerly-off", "run_eagerly"),
        (None, "", "tf.function"),
        (False, "", "tf.function"),
    ],
)
def test_the_remedy_is_what_the_loop_needs(*, asked: bool | None, edit_id: str, words: str) -> None:
    finding = check(200.0, 5.0, asked=asked)
    assert isinstance(finding, Finding)
    assert (finding.remedies[0].edit_id, words in finding.remedies[0].action) == (edit_id, True)
