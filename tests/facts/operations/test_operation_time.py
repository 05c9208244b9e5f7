"""Operations by layer, and a part of the compute time, as it is stated."""

import pytest

from tfdoctor.facts.operations.operation_time import ComputePart, OperationTime, by_layer
from tfdoctor.terms.units import ms, ratio
from tfdoctor.terms.verdict import Measure


def test_operations_are_grouped_by_layer_or_by_their_own_name_the_longest_first() -> None:
    rows = (
        OperationTime(name="c", type="Add", ms=1),
        OperationTime(name="a", type="Mul", ms=1, layer="l"),
        OperationTime(name="b", type="Add", ms=1, layer="l"),
    )
    layers = by_layer(rows)
    assert [(layer.name, len(layer.rows), layer.ms) for layer in layers] == [("l", 2, 2), ("c", 1, 1)]


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
