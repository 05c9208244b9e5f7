"""doubtful-recording: every doubt, the most severe first."""

import pytest

from tests.rules.kit import *
from tfdoctor.rules.recording import doubtful_recording
from tfdoctor.rules.recording.doubtful_recording import check


def sick() -> Verdict:
    """Only one step was traced."""
    return check(Quality(1, (Doubt("only 1 training step was traced", "trace more (--steps 20)", grave=True),)))


def healthy() -> Verdict:
    """Twenty steady steps were traced."""
    return check(Quality(20))


LIGHT = Doubt("the steps are uneven", "trace more steps", grave=False)
GRAVE = Doubt("only 1 training step was traced", "trace 20", grave=True)


test_a_recording_without_doubt_is_healthy = each_is((doubtful_recording.check(Quality(20)), Healthy, "20"))


@pytest.mark.parametrize(
    ("doubts", "severity"),
    [((LIGHT,), Severity.NOTE), ((GRAVE,), Severity.WARNING), ((GRAVE, LIGHT), Severity.WARNING)],
)
def test_a_grave_doubt_is_a_warning(doubts: tuple[Doubt, ...], severity: Severity) -> None:
    verdict = as_finding(doubtful_recording.check(Quality(1, doubts)))
    assert verdict.severity is severity
    assert len(verdict.remedies) == len(doubts)
    assert verdict.effects == ()


def test_the_summary_has_the_first_doubt_and_counts_the_others() -> None:
    verdict = as_finding(doubtful_recording.check(Quality(1, (GRAVE, LIGHT))))
    assert verdict.summary.startswith("Only 1 training step was traced")
    assert "1 more" in verdict.summary
    assert verdict.remedies[1].action == "The steps are uneven: trace more steps"


def test_a_problem_without_a_remedy_has_its_cause() -> None:
    doubt = Doubt("no step was found", "", grave=True, cause="the script failed: fix that first")
    verdict = as_finding(doubtful_recording.check(Quality(0, (doubt,))))
    assert verdict.remedies[0].action == ("No step was found, because the script failed: fix that first")
