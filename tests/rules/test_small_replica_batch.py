"""small-replica-batch: both sides of each limit, and batches that nobody divides."""

from tests.rules.kit import *
from tfdoctor.facts.run.device import NO_CUPTI
from tfdoctor.rules.scale.small_replica_batch import Limits, check


def example(
    batch: int | None = 32, step: Breakdown | None = None, *, replicas: int | None = 4, divided: bool = True,
    device: Device = Device(DeviceKind.GPU, 4, 4),
) -> Verdict:  # fmt: skip
    """A batch of 32 on four GPUs: launches and the exchange take half of the step."""
    job = Replicas("MirroredStrategy", replicas, 4, batch=batch, divided=divided)
    return check(job, step or Breakdown.of(device=10.0, host=6.0, collective=4.0), device)


sick = example


def healthy() -> Verdict:
    """A batch of 256 on four GPUs."""
    return example(256, Breakdown.of(device=50.0, host=1.0, collective=4.0))


def test_both_sides_of_each_limit() -> None:
    """Examples for each replica, of which there are four, and replicas that are busy."""
    assert kinds(example(124), example(128)) == [Finding, Healthy]
    steps = (Breakdown.of(host=fixed, device=100 - fixed) for fixed in (100 * Limits().share, 29.9))
    assert kinds(*(example(step=step) for step in steps)) == [Finding, Healthy]


def test_a_batch_that_is_each_replicas_own_is_not_divided_again() -> None:
    """Trap: distribute_datasets_from_function makes the batch of one replica."""
    assert kinds(example(64, divided=False), example(64, divided=True)) == [Healthy, Finding]


def test_what_is_not_judged() -> None:
    """One replica, an unknown batch, a wait for input, and kernels that were not recorded."""
    waits = Breakdown.of(host=50.0, device=50.0, input=20.0)
    unrecorded = Device(DeviceKind.GPU, 4, 0, missing=NO_CUPTI)
    found = example(32, replicas=1), example(32, replicas=None), example(None), example(step=waits)
    assert set(kinds(*found, example(32, device=unrecorded))) == {NotApplicable}


def test_the_same_examples_in_fewer_steps_pay_the_fixed_cost_less_often() -> None:
    """8 examples each instead of 32: at best a quarter of the launches and exchanges remains."""
    found = {(part, left, bound) for part, _, left, bound in effects(example(32))}
    assert found == {(part, 0.25, Bound.AT_MOST) for part in (Stage.HOST, Stage.COLLECTIVE)}
