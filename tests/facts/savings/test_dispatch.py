"""The time to dispatch operations: what general rules may count, and what goes with those that are removed."""

from dataclasses import replace

import pytest

from tests.rules.cases.hot_operation import group
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.savings.dispatch import Dispatch, DispatchShares
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.facts.step_time.breakdown import PARTS
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Stage, StepWork

ROWS = (
    OperationTime(name="large", type="Mul", ms=6.0, calls=1.0),
    OperationTime(name="small", type="Add", ms=2.0, calls=9.0),
)


def effect(name: str, of: float, scales: float = 0.0, bound: Bound = Bound.EXPECTED) -> Effect:
    return Effect(Stage.DEVICE, scales, name, ms(of), bound=bound)


def left(*effects: Effect) -> float:
    device = Device(DeviceKind.CPU, 1, 1)
    return DispatchShares.measure(Operations(ROWS), device).left(effects)


@pytest.mark.parametrize(
    ("effects", "share"),
    [
        ((), 1.0),
        ((effect("large", 6.0),), 0.25),
        ((effect("large", 6.0), effect("small", 2.0)), 0.0),
        ((effect("large", 6.0, 0.05),), 1.0 - 0.95 * 0.75),
        ((effect("large", 6.0, 0.06),), 1.0),
        ((effect("small", 2.0),), 0.75),
        ((effect("small", 2.0, bound=Bound.AT_MOST),), 0.1),
        ((effect("large", 6.0, 0.5, Bound.AT_MOST),), 1.0 - 0.5 * 0.75),
        ((effect("a group of them", 4.0),), 0.5),
        ((effect(StepWork.LOOP_BODY, 4.0),), 1.0),
        ((effect("", 8.0),), 1.0),
    ],
)
def test_the_hosts_work_goes_with_operations_that_are_removed(effects: tuple[Effect, ...], share: float) -> None:
    """Faster operations are started as before; an upper bound also counts how many there are."""
    assert left(*effects) == pytest.approx(share)


def test_an_accelerators_host_launches_ahead() -> None:
    with pytest.raises(Unavailable):
        DispatchShares.measure(Operations(ROWS), Device(DeviceKind.GPU, 1, 1))


def test_the_step_model_takes_it_from_the_host() -> None:
    exposed = dict.fromkeys(map(str, PARTS), 0.0) | {"device": 8.0, "host": 4.0, "between": 1.0}
    dispatch = DispatchShares.measure(Operations(ROWS), Device(DeviceKind.CPU, 1, 1))
    model = StepModel(device=DeviceKind.CPU, exposed=exposed, dispatch=dispatch)
    assert model.saving([effect("large", 6.0)]) == pytest.approx(6.0 + 3.0)
    assert model.saving([Effect(Stage.HOST, 0.5), effect("large", 6.0)]) == pytest.approx(6.0 + 3.5)


def test_an_effect_that_states_what_the_host_starts_less_counts_once() -> None:
    """Operations on shorter sequences: the loop over time starts fewer, and calling the step stays."""
    exposed = dict.fromkeys(map(str, PARTS), 0.0) | {"device": 8.0, "host": 4.0, "between": 1.0}
    dispatch = DispatchShares.measure(Operations(ROWS), Device(DeviceKind.CPU, 1, 1))
    model = StepModel(device=DeviceKind.CPU, exposed=exposed, dispatch=dispatch)
    host = Effect(Stage.HOST, 0.5, StepWork.SCHEDULING, ms(2.0), bound=Bound.AT_MOST)
    work = effect("large", 6.0, 0.5, Bound.AT_MOST)
    assert model.saving([replace(host, narrows=True), work]) == pytest.approx(3.0 + 1.0)
    assert model.saving([host, work]) == pytest.approx(3.0 + 1.0 + 0.375 * 3.0)


TEN_CALLS = group(calls=10.0)


@pytest.mark.parametrize(
    ("left_ms", "subjects", "counted_ms"),
    [
        (9.0, frozenset(), 5.0),
        (2.0, frozenset(), 2.0),  # what other rules explain is none of theirs
        (9.0, frozenset({StepWork.LAUNCHING}), 0.0),
    ],
)
def test_only_what_is_unexplained_counts(left_ms: float, subjects: frozenset[str], counted_ms: float) -> None:
    dispatch = Dispatch(in_loops_ms=9.0, outside_ms=0.5)
    limited = dispatch.at_most([TEN_CALLS], Unexplained({Stage.HOST: left_ms}, subjects))
    assert limited.of_group(TEN_CALLS) == pytest.approx(counted_ms)
