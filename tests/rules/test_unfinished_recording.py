"""unfinished-recording: every doubt, the gravest first."""

import pytest

from tfdoctor.facts.quality import Doubt, Quality
from tfdoctor.rules import unfinished_recording
from tfdoctor.verdict import Finding, Healthy, Severity

LIGHT = Doubt("the steps are uneven", "trace more steps", grave=False)
GRAVE = Doubt("only 1 training step was traced", "trace 20", grave=True)


def test_a_recording_without_doubt_is_healthy() -> None:
    said = unfinished_recording.check(Quality(20))
    assert isinstance(said, Healthy)
    assert "20" in said.summary


@pytest.mark.parametrize(
    ("doubts", "severity"),
    [
        ((LIGHT,), Severity.NOTE),
        ((GRAVE,), Severity.WARNING),
        ((GRAVE, LIGHT), Severity.WARNING),
    ],
)
def test_a_grave_doubt_is_a_warning(doubts: tuple[Doubt, ...], severity: Severity) -> None:
    found = unfinished_recording.check(Quality(1, doubts))
    assert isinstance(found, Finding)
    assert found.severity is severity
    assert len(found.remedies) == len(doubts)
    assert found.effects == ()


def test_the_first_doubt_is_the_sentence_and_the_others_are_counted() -> None:
    found = unfinished_recording.check(Quality(1, (GRAVE, LIGHT)))
    assert isinstance(found, Finding)
    assert found.summary == "Only 1 training step was traced (and 1 more)"
    assert found.remedies[1].action == "the steps are uneven: trace more steps"
