"""unused-gradients: both sides of the limit."""

import pytest

from tests.rules.kit import *
from tfdoctor.recording.agent import GradientsTaken
from tfdoctor.rules.execution.unused_gradients import UnusedWork, check

MOST = GradientsTaken(
    variables=10,
    unused=6,
    names=("encoder/conv/kernel:0", "encoder/conv/bias:0"),
    types=(("Conv2DBackpropFilter", 3, 4.0), ("Conv2DBackpropInput", 3, 2.0)),
)
UNUSED = UnusedWork(
    calls=20, most=MOST, at=Location("train.py", 43), operations=37.0, kernels_ms=6.0, host_ms=2.0
)  # fmt: skip


def example(unused: UnusedWork = UNUSED, breakdown: Breakdown | None = None) -> Verdict:
    """An eager step asks for the gradients of the head, and computes those of the encoder as well."""
    return check(unused, breakdown or Breakdown.of(host=8.0, device=12.0))


sick = example


def healthy() -> Verdict:
    """The encoder runs before the tape begins."""
    return example(UnusedWork(calls=20))


def test_a_twentieth_of_the_step_is_found() -> None:
    found = [example(replace(UNUSED, kernels_ms=0.0, host_ms=host_ms)) for host_ms in (1.0, 0.99)]
    assert kinds(*found) == [Finding, Healthy]


def test_kernels_and_python_disappear_at_the_line_of_the_gradient() -> None:
    finding = as_finding(example())
    assert finding.remedies[0].at == Location("train.py", 43)
    gone = [(Stage.DEVICE, 6.0, 0.0, Bound.EXPECTED), (Stage.HOST, 2.0, 0.0, Bound.EXPECTED)]
    assert sorted(effects(finding)) == sorted(gone)
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


def test_gradients_that_were_not_followed_are_unknown() -> None:
    for too_few, words in ((True, "--warmup"), (False, "no use of them")):
        for host_ms in (0.0, 0.5):
            line = (Location("train.py", 43), too_few)
            work = replace(UNUSED, unfollowed=line, kernels_ms=0.0, host_ms=host_ms)
            reason = as_not_applicable(example(work)).reason
            assert reason.startswith("unknown whether the gradients taken at train.py:43 are used, because")
            assert words in reason


def test_what_is_known_of_one_line_is_found_beside_an_unknown_one() -> None:
    finding = as_finding(example(replace(UNUSED, unfollowed=(None, True))))
    assert "six variables" in finding.summary


# UnusedWork: useless back-propagation in the time of traced steps.


TAKEN = GradientsTaken(
    ("/home/me/train.py", 43), traced=20, followed=True, operations=40, python_ms=1.0, calls_ms=7.0, step_ms=20.0,
    step_calls_ms=15.0, step_operations=200,
)  # fmt: skip


def measured(*lines: GradientsTaken, kind: DeviceKind = DeviceKind.CPU, operations: float = 200.0) -> UnusedWork:
    run = manifest(steps=StepsSeen(gradients=lines) if lines else StepsSeen(), window=TracedWindow(steps=20))
    eager = EagerWork(operations, 30.0, 0.0)
    times = Breakdown.of(host=25.0, device=15.0)  # twice as slow as before the window
    return UnusedWork.measure(recording(manifest=run), eager, times, Device(kind, 1, 1))


def test_the_share_of_the_noted_step_is_that_of_the_traced_step() -> None:
    found = measured(TAKEN)
    assert found.kernels_ms == near(7.0)  # half of 2 x 7 ms: kernels are 15 of 30 ms
    assert found.kernels_ms + found.host_ms == near(0.4 * 40.0)
    assert (found.operations, found.at) == (40.0, Location("train.py", 43))


def test_two_calls_in_a_step_count_twice() -> None:
    """A noted step is one micro-batch of two, so that the traced step has twice the operations."""
    found = measured(replace(TAKEN, traced=40), operations=400.0)
    assert (found.kernels_ms + found.host_ms, found.operations) == (near(0.4 * 40.0), 80.0)


def test_the_kernels_of_an_accelerator_are_not_in_the_calls() -> None:
    found = measured(TAKEN, kind=DeviceKind.GPU)
    assert (found.kernels_ms, found.host_ms) == (0.0, near(16.0))


def test_a_line_outside_the_traced_steps_or_without_useless_work_is_none() -> None:
    for line in (replace(TAKEN, traced=0), replace(TAKEN, operations=0, calls_ms=0.0, python_ms=0.0)):
        assert measured(line) == UnusedWork(calls=line.traced)


def test_a_line_of_the_traced_steps_that_was_not_followed_is_unknown() -> None:
    for more in ({"followed": False}, {"step_ms": 0.0}):
        line = replace(TAKEN, too_few=True, **more)
        assert measured(line).unfollowed == (Location("train.py", 43), True)
        assert measured(replace(line, traced=0)).unfollowed is None


def test_what_was_not_recorded_is_said() -> None:
    """The operations of Python in the trace, or gradients by an older tfdoctor."""
    with pytest.raises(Unavailable, match="does not have the operations"):
        measured(TAKEN, operations=0.0)
    with pytest.raises(Unavailable, match="does not say"):
        measured()
