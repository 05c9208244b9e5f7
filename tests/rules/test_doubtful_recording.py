"""doubtful-recording: every doubt, the most severe first."""

from tests.rules.kit import *
from tfdoctor.rules.recording.doubtful_recording import check

sick = described(
    "Only one step was traced.",
    check,
    Quality(1, (Doubt("only 1 training step was traced", "trace more (--steps 20)", grave=True),)),
)
healthy = described("Twenty steady steps were traced.", check, Quality(20))
LIGHT = Doubt("the steps are uneven", "trace more steps", grave=False)
GRAVE = Doubt("only 1 training step was traced", "trace 20", grave=True)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a recording without doubt"] = check(Quality(20))
    told["a grave doubt is a warning, and a light one a note"] = check(Quality(1, (GRAVE,)))
    told[...] = check(Quality(1, (LIGHT,)))
    told["the summary has the first doubt and counts the others"] = check(Quality(1, (GRAVE, LIGHT)))
    failed = Doubt("no step was found", "", grave=True, cause="the script failed: fix that first")
    told["a problem without a remedy has its cause"] = check(Quality(0, (failed,)))
