"""The title of a finding and what is credited to it: the first change, and those like it at other places."""

import pytest

from tests.report import diagnoses
from tfdoctor.diagnosis import Result
from tfdoctor.report.findings import what
from tfdoctor.terms.verdict import Finding, Location, Remedy

FIRST = Remedy("choose 32 in a", at=Location("train.py", 3))
INSTEAD = Remedy("Or train in bfloat16", at=Location("train.py", 9))


@pytest.mark.parametrize(
    ("alike", "title"),
    [
        (0, "Choose 32 in a"),
        (1, "Choose 32 in a, and one more change"),
        (7, "Choose 32 in a, and seven more changes"),
    ],
)
def test_a_title_counts_the_changes_that_its_saving_is_of(alike: int, title: str) -> None:
    found = Finding(summary="Padding", evidence=(), remedies=(FIRST, INSTEAD), alike=alike)
    assert what(Result(rule=diagnoses.rule("padding"), outcome=found)) == title


def test_a_finding_without_a_remedy_is_called_by_its_summary() -> None:
    found = Finding(summary="Padding", evidence=(), remedies=())
    assert what(Result(rule=diagnoses.rule("padding"), outcome=found)) == "Padding."
