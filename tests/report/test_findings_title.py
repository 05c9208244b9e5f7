"""The title of a finding and what is credited to it: the first change, and those like it at other places."""

import pytest

from tfdoctor.report.findings import _first_change
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Effect, Finding, Location, Remedy, Stage

HERE, THERE = Location("train.py", 3), Location("train.py", 9)
SAVES = (Effect(Stage.DEVICE, 0.0, "", ms(2.0)),)


@pytest.mark.parametrize(
    ("others", "title"),
    [
        ((), "Choose 32 in a"),
        ((Remedy("Choose 64 in b", at=HERE),), "Choose 32 in a, and one more change"),
        (
            (Remedy("Choose 64 in b", at=HERE), Remedy("Widen c", at=THERE)),
            "Choose 32 in a, and two more changes",
        ),
        ((Remedy("Or train in bfloat16", at=THERE),), "Choose 32 in a"),
        ((Remedy("Clone the model if one line makes many layers", at=THERE),), "Choose 32 in a"),
        ((Remedy("Compile the step", at=HERE),), "Choose 32 in a"),
        ((Remedy("Choose fewer layers"),), "Choose 32 in a"),
    ],
)
def test_a_title_counts_the_changes_that_its_saving_is_of(
    others: tuple[Remedy, ...], title: str
) -> None:
    found = Finding(
        summary="Padding",
        evidence=(),
        remedies=(Remedy("Choose 32 in a", at=HERE), *others),
        effects=SAVES,
    )
    assert _first_change(found) == title


def test_a_finding_without_a_saving_has_nothing_to_credit() -> None:
    found = Finding(
        summary="Padding", evidence=(), remedies=(Remedy("a", at=HERE), Remedy("b", at=THERE))
    )
    assert _first_change(found) == "A"
