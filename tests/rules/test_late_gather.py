"""late-gather: both sides of its limits, and where its saving is a ceiling."""

import pytest

from tests.rules.applied import applied
from tests.rules.cases.late_gather import example
from tests.rules.verdicts import as_finding
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.rules import late_gather
from tfdoctor.rules.late_gather import Limits, SelectedProducts
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Bound, Finding, Healthy, NotApplicable

CPU = Device(DeviceKind.CPU, visible=1, used=1)


def test_the_product_and_its_gradient_shrink_to_the_selected_rows() -> None:
    finding = as_finding(example())
    assert [effect.scales for effect in finding.effects] == pytest.approx([10 / 64] * 2)
    assert all(effect.narrows for effect in finding.effects)


@pytest.mark.parametrize(("kept", "kind"), [(0.5, Finding), (0.52, Healthy)])
def test_both_sides_of_the_kept_rows(kept: float, kind: type) -> None:
    assert isinstance(example(kept), kind)


@pytest.mark.parametrize(("more", "kind"), [(0.99, Finding), (1.01, Healthy)])
def test_both_sides_of_the_share(more: float, kind: type) -> None:
    assert isinstance(example(total=more * 64.0 * (54 / 64) / Limits().share), kind)


@pytest.mark.parametrize(("kind", "bound"), [(DeviceKind.CPU, Bound.EXPECTED), (DeviceKind.GPU, Bound.AT_MOST)])
def test_the_saving_is_a_ceiling_where_it_was_not_measured(kind: DeviceKind, bound: Bound) -> None:
    assert {effect.bound for effect in as_finding(example(kind=kind)).effects} == {bound}


def test_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    verdict = applied(late_gather, SelectedProducts(()), Operations((unnamed,)), CPU)
    assert isinstance(verdict, NotApplicable)
