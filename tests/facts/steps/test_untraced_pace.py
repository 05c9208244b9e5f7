"""How long the steps outside of the traced window took."""

import pytest

from tests.builders import manifest, recording
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.recording.agent import StepsSeen, UntracedSteps


def pace(of: str, median_ms: float | None) -> UntracedPace:
    seen = StepsSeen(untraced=UntracedSteps(count=90, median_ms=median_ms, of=of))
    run = recording(manifest=manifest(steps=seen))
    return UntracedPace.measure(run, Steps.uniform(10, 4.0))


def test_untraced_steps_are_compared_with_the_traced_ones() -> None:
    assert pace("steps", 6.0) == UntracedPace(1.5, 6.0)


@pytest.mark.parametrize(("of", "median_ms"), [("calls", 6.0), ("steps", None)])
def test_calls_are_no_steps(of: str, median_ms: float | None) -> None:
    """The time of a call leaves out what is between two steps."""
    with pytest.raises(Unavailable):
        pace(of, median_ms)
