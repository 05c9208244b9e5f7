"""loss-scaling: which runs must scale the loss, which do, and which are unknown."""

from tests.rules.kit import *
from tfdoctor.rules.precision.loss_scaling import check


def example(
    dtype: str = "float16", name: str = "gradient_tape/model/dense/MatMul", also: str = "",
    optimizer: str | None = "SGD", *, loss_scale: bool = False,
) -> Verdict:  # fmt: skip
    """A custom loop computes float16 gradients with a plain SGD optimizer."""
    matmul = Operation(name=name, type="MatMul", outputs=((dtype, (16, 32)),), layer="dense")
    others = (Operation(name="check", type=also),) if also else ()
    settings = RunSettings(optimizer=optimizer, loss_scale=loss_scale)
    return check(Program((matmul, *others), settings=settings))


sick = example


def healthy() -> Verdict:
    """The custom loop uses a LossScaleOptimizer."""
    return example(loss_scale=True)


def test_a_warning_though_it_saves_nothing() -> None:
    verdict = as_finding(example())
    assert (verdict.severity, verdict.effects) == (Severity.WARNING, ())
    assert kinds(example("float32"), example("bfloat16")) == [Healthy, Healthy]  # need no scaling


def test_a_frozen_backbone_in_float16_needs_none() -> None:
    """Its forward operations are in float16, the gradients are not."""
    forward = Operation(name="backbone/MatMul", type="MatMul", outputs=(("float16", (8, 8)),))
    head = Operation(name="gradient_tape/head/MatMul", type="MatMul", outputs=(("float32", (8,)),))
    assert isinstance(check(Program((forward, head), settings=RunSettings(optimizer="SGD"))), Healthy)


def test_a_script_that_checks_for_infinities_may_scale_the_loss() -> None:
    for kind in ("IsFinite", "IsNan", "CheckNumerics"):
        assert isinstance(example(also=kind), NotApplicable)


def test_an_unknown_optimizer_or_a_graph_without_gradients_is_not_judged() -> None:
    assert kinds(example(optimizer=None), example(name="model/dense/MatMul")) == [NotApplicable, NotApplicable]
