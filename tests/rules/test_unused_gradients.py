"""unused-gradients: both sides of the limit."""

from dataclasses import replace

import pytest

from tests.rules.cases.unused_gradients import UNUSED, example
from tests.rules.verdicts import as_finding, as_healthy, as_not_applicable
from tfdoctor.rules.unused_gradients import Limits
from tfdoctor.rules.unused_gradients.unused_work import UnusedWork
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Stage


@pytest.mark.parametrize(("host_ms", "kind"), [(1.0, Finding), (0.99, Healthy)])
def test_a_twentieth_of_the_step_is_found(host_ms: float, kind: type) -> None:
    assert Limits().share == 0.05
    assert isinstance(example(replace(UNUSED, kernels_ms=0.0, host_ms=host_ms)), kind)


def test_kernels_and_python_disappear_at_the_line_of_the_gradient() -> None:
    finding = as_finding(example())
    assert finding.remedies[0].at == Location("train.py", 43)
    gone = {effect.stage: effect.of.value for effect in finding.effects if effect.of}
    assert gone == {Stage.DEVICE: 6.0, Stage.HOST: 2.0}
    assert {(effect.scales, effect.bound) for effect in finding.effects} == {(0.0, Bound.EXPECTED)}
    assert "six variables" in finding.summary


def test_a_returned_gradient_may_be_read_by_numpy() -> None:
    """Trap: np.linalg.norm(gradient) takes the value through the buffer protocol, which nothing sees."""
    finding = as_finding(example(replace(UNUSED, returned=6)))
    assert {effect.bound for effect in finding.effects} == {Bound.AT_MOST}
    assert finding.severity is None
    assert finding.remedies[0].action.startswith("If the script does not read")
    assert "no operation uses" in finding.summary


def test_no_unused_gradient_is_healthy() -> None:
    assert "is used" in as_healthy(example(UnusedWork(calls=20))).summary
    assert "No traced step" in as_healthy(example(UnusedWork())).summary


@pytest.mark.parametrize("host_ms", [0.0, 0.5])
@pytest.mark.parametrize(("too_few", "words"), [(True, "--warmup"), (False, "no use of them")])
def test_gradients_that_were_not_followed_are_unknown(host_ms: float, words: str, *, too_few: bool) -> None:
    line = (Location("train.py", 43), too_few)
    work = replace(UNUSED, unfollowed=line, kernels_ms=0.0, host_ms=host_ms)
    reason = as_not_applicable(example(work)).reason
    assert reason.startswith("unknown whether the gradients taken at train.py:43 are used, because")
    assert words in reason


def test_what_is_known_of_one_line_is_found_beside_an_unknown_one() -> None:
    finding = as_finding(example(replace(UNUSED, unfollowed=(None, True))))
    assert "six variables" in finding.summary
