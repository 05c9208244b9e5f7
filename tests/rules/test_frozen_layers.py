"""frozen-layers: both sides of its limits, and work that only looks the same."""

from tests.rules.kit import *
from tfdoctor.facts.savings.dispatch import Dispatch
from tfdoctor.facts.savings.layer_work import FrozenWork
from tfdoctor.rules.operations.frozen_layers import Limits, check

TEACHER = OperationTime(name="teacher/conv/Relu", type="Conv2D", ms=20.0, layer="conv", at=Location("train.py", 34))

FROZEN = FrozenWork(("conv",), (TEACHER,), features_bytes=1280, passes=4.0, batches=25)


def example(
    frozen: FrozenWork = FROZEN,
    memory: HostMemory | None = None,
    dispatch: Dispatch | None = None,
    rest: str = "Conv2DBackpropFilter",
) -> Verdict:
    """A frozen teacher takes 20 of 30 ms of compute in each of four epochs."""
    return check(frozen, Operations.training(30.0, *frozen.rows, rest=rest), memory, dispatch)


sick = example


def healthy() -> Verdict:
    """The same in a run of a single epoch."""
    return example(replace(FROZEN, passes=1.0))


def test_the_frozen_part_is_saved_whole() -> None:
    finding = as_finding(example())
    (effect,) = finding.effects
    assert (effect.stage, effect.scales, effect.subject) == (Stage.DEVICE, 0.0, TEACHER.name)
    assert effect.of is not None
    assert effect.of.value == 20.0
    assert finding.remedies[0].at == TEACHER.at


def test_the_host_no_longer_dispatches_the_frozen_part() -> None:
    finding = as_finding(example(dispatch=Dispatch(in_loops_ms=9.0, outside_ms=0.5)))
    (host,) = (effect for effect in finding.effects if effect.stage is Stage.HOST)
    assert host.of is not None
    assert host.of.value == 0.5


CONV = FrozenWork(("conv",), (), passes=4.0)


def fitting(free: float) -> Verdict:
    return example(memory=HostMemory(total=1e9, used=1e9 - free))


test_both_sides_of_each_limit = each_is(
    (example(replace(FROZEN, rows=(replace(TEACHER, ms=30 * Limits().share),))), Finding),
    (example(replace(FROZEN, rows=(replace(TEACHER, ms=1.4),))), Healthy),
    (example(replace(FROZEN, passes=Limits().passes)), Finding),
    (example(replace(FROZEN, passes=1.9)), Healthy),
    (example(replace(FROZEN, passes=None)), NotApplicable),
    (fitting(64_000.0), Finding),
    (fitting(63_000.0), Healthy),
    (example(replace(FROZEN, differs="flip in the pipeline draws random numbers")), Healthy, "flip"),
    (example(FrozenWork((), ())), Healthy),
    (example(CONV), Healthy),  # trap: augmentation layers in the model, before a frozen base
    (example(CONV, rest="compiled or unnamed"), NotApplicable),
)


def test_one_layer_computes_and_two_compute() -> None:
    assert said(example()).startswith("one frozen layer computes the same")
    assert said(example(replace(FROZEN, layers=("a", "b")))).startswith("two frozen layers compute the same")
