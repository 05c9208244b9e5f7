"""The cases of doubtful-recording: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.recording.doubtful_recording import check


def sick() -> Verdict:
    """Only one step was traced."""
    return check(Quality(1, (Doubt("only 1 training step was traced", "trace more (--steps 20)", grave=True),)))


def healthy() -> Verdict:
    """Twenty steady steps were traced."""
    return check(Quality(20))
