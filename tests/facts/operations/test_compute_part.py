"""A part of the compute time, as it is stated."""

import pytest

from tfdoctor.facts.operations.operation_time import ComputePart
from tfdoctor.terms.units import ms, ratio
from tfdoctor.terms.verdict import Measure


def test_it_is_stated_with_its_share() -> None:
    assert str(ComputePart(5.0, 20.0)) == "5.00 ms per step, 25 % of the compute time"


@pytest.mark.parametrize("least", [None, 0.1])
def test_its_evidence_names_the_work(least: float | None) -> None:
    assert ComputePart(5.0, 20.0).measures("in casts", least) == (
        Measure("time in casts per step", ms(5.0)),
        Measure("share of the compute time in casts", ratio(0.25), ratio(least) if least else None),
    )


def test_of_no_compute_it_is_nothing() -> None:
    assert ComputePart(0.0, 0.0).share == 0.0
