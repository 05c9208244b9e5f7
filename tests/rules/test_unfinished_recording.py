"""unfinished-recording: every doubt, the gravest first."""

import pytest

from tfdoctor.facts.quality import Doubt, Quality
from tfdoctor.rules import unfinished_recording
from tfdoctor.verdict import Finding, Healthy, Severity

LIGHT = Doubt("the steps are uneven", "trace more steps", grave=False)
GRAVE = Doubt("only 1 training step was traced", "trace 20", grave=True)


def test_a_recording_without_doubt_is_healthy() -> None:
    verdict = unfinished_recording.check(Quality(20))
    assert isinstance(verdict, Healthy)
    assert "20" in verdict.summary


@pytest.mark.parametrize(
    ("doubts", "severity"),
    [
        ((LIGHT,), Severity.NOTE),
        ((GRAVE,), Severity.WARNING),
        ((GRAVE, LIGHT), Severity.WARNING),
    ],
)
def test_a_grave_doubt_is_a_warning(doubts: tuple[Doubt, ...], severity: Severity) -> None:
    verdict = unfinished_recording.check(Quality(1, doubts))
    assert isinstance(verdict, Finding)
    assert verdict.severity is severity
    assert len(verdict.remedies) == len(doubts)
    assert verdict.effects == ()


def test_the_first_doubt_is_the_sentence_and_the_others_are_counted() -> None:
    verdict = unfinished_recording.check(Quality(1, (GRAVE, LIGHT)))
    assert isinstance(verdict, Finding)
    assert verdict.summary == "Only 1 training step was traced (and 1 more)"
    assert verdict.remedies[1].action == "the steps are uneven: trace more steps"
