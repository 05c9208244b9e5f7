"""UnusedWork: useless back-propagation in the time of traced steps."""

from dataclasses import replace

import pytest

from tests.builders import manifest, recording
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.python_work import EagerWork
from tfdoctor.recording.agent import GradientsTaken, StepsSeen, TracedWindow
from tfdoctor.rules.unused_gradients.unused_work import UnusedWork
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Location

TAKEN = GradientsTaken(
    ("/home/me/train.py", 43),
    traced=20,
    followed=True,
    operations=40,
    python_ms=1.0,
    calls_ms=7.0,
    step_ms=20.0,
    step_calls_ms=15.0,
    step_operations=200,
)


def measured(*lines: GradientsTaken, kind: DeviceKind = DeviceKind.CPU, operations: float = 200.0) -> UnusedWork:
    run = manifest(steps=StepsSeen(gradients=lines), window=TracedWindow(steps=20))
    eager = EagerWork(operations, 30.0, 0.0)
    times = Breakdown.of(host=25.0, device=15.0)  # twice as slow as before the window
    return UnusedWork.measure(recording(manifest=run), eager, times, Device(kind, 1, 1))


def test_the_share_of_the_noted_step_is_that_of_the_traced_step() -> None:
    found = measured(TAKEN)
    assert found.kernels_ms == pytest.approx(7.0)  # half of 2 x 7 ms: kernels are 15 of 30 ms
    assert found.kernels_ms + found.host_ms == pytest.approx(0.4 * 40.0)
    assert (found.operations, found.at) == (40.0, Location("train.py", 43))


def test_two_calls_in_a_step_count_twice() -> None:
    """A noted step is one micro-batch of two, so that the traced step has twice the operations."""
    found = measured(replace(TAKEN, traced=40), operations=400.0)
    assert found.kernels_ms + found.host_ms == pytest.approx(0.4 * 40.0)
    assert found.operations == 80.0


def test_the_kernels_of_an_accelerator_are_not_in_the_calls() -> None:
    found = measured(TAKEN, kind=DeviceKind.GPU)
    assert found.kernels_ms == 0.0
    assert found.host_ms == pytest.approx(16.0)


@pytest.mark.parametrize(
    "line", [replace(TAKEN, traced=0), replace(TAKEN, operations=0, calls_ms=0.0, python_ms=0.0)]
)
def test_a_line_outside_the_traced_steps_or_without_useless_work_is_none(line: GradientsTaken) -> None:
    assert measured(line) == UnusedWork(calls=line.traced)


@pytest.mark.parametrize("line", [replace(TAKEN, followed=False), replace(TAKEN, step_ms=0.0)])
def test_a_line_of_the_traced_steps_that_was_not_followed_is_unknown(line: GradientsTaken) -> None:
    line = replace(line, too_few=True)
    assert measured(line).unfollowed == (Location("train.py", 43), True)
    assert measured(replace(line, traced=0)).unfollowed is None


def test_a_trace_without_operations_of_python_does_not_say() -> None:
    with pytest.raises(Unavailable, match="does not have the operations"):
        measured(TAKEN, operations=0.0)


def test_an_older_recording_does_not_say() -> None:
    steps = StepsSeen()
    run = manifest(steps=steps, window=TracedWindow(steps=20))
    with pytest.raises(Unavailable, match="does not say"):
        UnusedWork.measure(
            recording(manifest=run),
            EagerWork(200.0, 30.0, 0.0),
            Breakdown.of(host=25.0, device=15.0),
            Device(DeviceKind.CPU, 1, 1),
        )
