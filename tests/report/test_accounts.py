"""What explains a part of the step, below its bar."""

from dataclasses import replace

from tests.report import diagnoses
from tfdoctor.report.words import accounts


def test_what_was_traced_is_said_beside_bars_without_the_profilers_cost() -> None:
    whole = diagnoses.full()
    without_cost = replace(whole, steps=replace(whole.steps, untraced_ms=30.0))
    told = [accounts(one)[0][2] for one in (whole, without_cost)]
    assert told == [
        "Matmuls run at 71 % of the rate that this GPU reaches.",
        "Matmuls run at 71 % of the rate that this GPU reaches. These are times of traced steps.",
    ]
