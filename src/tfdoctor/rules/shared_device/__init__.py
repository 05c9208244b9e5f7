"""Several replicas share one device.

## What it checks

On which physical device each replica of a `tf.distribute` strategy computes, and what a step spends on having
several on one: the operations of the further replicas, the updates of their copies of the variables, the exchange
of gradients between them, and entering the function for each.

## Why it matters

Logical devices of one processor or of one GPU (`LogicalDeviceConfiguration`) have no hardware of their own. Two
replicas on one device start each operation twice on half of the batch, update each variable twice, and wait for
each other to add up gradients that one replica would have had at once.

## How to fix

Leave the strategy out, or make it with the physical devices alone: `tf.distribute.MirroredStrategy()` without a
list takes all GPUs, and one replica where there is none. The batch and the learning rate stay, because the strategy
has divided the batch among the replicas. Logical devices are useful to test code for several devices.

## Holds for

MirroredStrategy and MultiWorkerMirroredStrategy of TensorFlow 2.9 and later, recorded with `tfdoctor profile`.
Where most of the compute time of the further replicas is in operations on large tensors, the rule is not checked:
several replicas may run these side by side. A model of four small layers took 1.8 ms per step with two replicas on
one processor and 0.7 ms without.

## Sources

- [Use a GPU, TensorFlow guide: logical devices](https://www.tensorflow.org/guide/gpu#using_multiple_gpus)
- [tf.distribute.MirroredStrategy](https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy)
- [tf.config.set_logical_device_configuration](https://www.tensorflow.org/api_docs/python/tf/config/set_logical_device_configuration)
- [Distributed training, TensorFlow guide](https://www.tensorflow.org/guide/distributed_training)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.scale.replicas import Replicas
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.python_overhead import PythonOverhead
from tfdoctor.rules.shared_device.copied_work import CopiedWork
from tfdoctor.terms.humanize import counted, percent
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    StepWork,
    Verdict,
)

TOPIC = Topic.SCALE
SINCE = "0.2.0"
BY_HAND = "the strategy may be there for other machines, on which it stays"


@dataclass(frozen=True, slots=True)
class Limits:
    """When replicas on one device are a loss."""

    share: float = share_limit(
        0.05,
        "Smallest share of the step spent on further replicas and their exchange; from there on a saving is a "
        "warning",
    )
    fixed: float = share_limit(
        0.5,
        "Smallest share of the further replicas' compute time in operations that take hardly longer with the "
        "whole batch; below it, replicas side by side may use cores that one would leave idle",
    )


def check(
    replicas: Replicas,
    breakdown: Breakdown,
    copied: CopiedWork | None,
    overhead: PythonOverhead | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the work of the further replicas, and of combining them, with the step."""
    if verdict := _without(replicas):
        return verdict
    if copied is None:
        return NotApplicable(reason="the trace names no operation of a second replica")
    effects = tuple(_effects(replicas, breakdown, copied, overhead))
    spent = sum((1.0 - effect.scales) * effect.of.value for effect in effects if effect.of)
    share, named = breakdown.share(spent), counted(replicas.sharing or 0, "replica")
    evidence = _evidence(replicas, breakdown, copied, share, limits)
    if share < limits.share:
        summary = f"{named} on one device cost {percent(share)} of {breakdown.each_step}"
        return Healthy(summary=summary, evidence=evidence)
    if copied.fixed_share < limits.fixed:
        return NotApplicable(reason=GROWS.format(named, percent(1.0 - copied.fixed_share)))
    return Finding(
        summary=f"{named} share one device: {percent(share)} of {breakdown.each_step} is for having several",
        evidence=evidence,
        remedies=(_remedy(replicas.at),),
        effects=effects,
    )


GROWS = (
    "{} share one device, but {} of the compute time of the further ones is in operations on large tensors, which "
    "several may run side by side: time the program without the strategy"
)


def _without(replicas: Replicas) -> Verdict | None:
    """Return the verdict where no device is shared, or where that is unknown."""
    if replicas.count == 1:
        return NotApplicable(reason="one replica trains")
    if replicas.sharing is None:
        return NotApplicable(reason="the recording does not say on which device each replica computes")
    if not replicas.share_a_device:
        return Healthy(summary="Each replica has a device of its own")
    return None


def _effects(
    replicas: Replicas, breakdown: Breakdown, copied: CopiedWork, overhead: PythonOverhead | None
) -> Iterator[Effect]:
    """Yield what a single replica does without; the host's time for these operations goes with them."""
    for row in copied.spared:
        if row.ms:
            yield row.scaled(0.0, Bound.AT_MOST)
    parts = {Stage.COLLECTIVE: breakdown[Stage.COLLECTIVE]}
    yield from Effect.of_stages(parts, StepWork.EXCHANGE)
    entry = {Stage.HOST: overhead.edges_ms} if overhead else {}
    yield from Effect.of_stages(entry, StepWork.STEP_ENTRY, 1.0 / (replicas.sharing or 1))


def _evidence(
    replicas: Replicas, breakdown: Breakdown, copied: CopiedWork, share: float, limits: Limits
) -> tuple[Measure, ...]:
    further = (*copied.fixed, *copied.growing)
    return (
        Measure("replicas on one device", count(replicas.sharing or 0)),
        Measure.share("share of the step for having several", share, limits.share),
        Measure("operations per step of the further replicas", count(_calls(*further, *copied.updates))),
        Measure("compute time of the further replicas, per step", ms(sum(row.ms for row in further))),
        Measure.share(
            "share of the further replicas' compute time on small tensors", copied.fixed_share, limits.fixed
        ),
        Measure("updates of the further replicas' variables, per step", ms(sum(row.ms for row in copied.updates))),
        Measure("waiting for the exchange, per step", ms(breakdown[Stage.COLLECTIVE])),
    )


def _calls(*rows: OperationTime) -> float:
    return sum(row.calls for row in rows)


def _remedy(at: Location | None) -> Remedy:
    return Remedy("Train one replica on each physical device", ONE_EACH, at, "one-replica", changes=ONE)


ONE = "one replica trains on the whole batch"

ONE_EACH = """\
strategy = tf.distribute.MirroredStrategy()  # all GPUs; one replica where there is none
# or without replicas: strategy = tf.distribute.get_strategy()
# without tf.config.set_logical_device_configuration(...)"""


SMALL = OperationTime(name="replica_1/dense/MatMul", type="MatMul", ms=0.017, calls=1.0)
UPDATES = OperationTime(name="adam/update_1/Mul", type="Mul", ms=0.3, calls=217.0)


def example(
    replicas: Replicas = Replicas("MirroredStrategy", 2, 0, batch=128, divided=True, sharing=2),
    copied: CopiedWork | None = CopiedWork((SMALL,), updates=(UPDATES,)),
    step: Breakdown | None = None,
    overhead: PythonOverhead | None = PythonOverhead(0.8, 0.1),
) -> Verdict:
    """Two replicas of a small model on one processor."""
    parts = step or Breakdown.of(device=1.0, host=1.2, collective=0.3)
    return check(replicas, parts, copied, overhead)


sick = example


def healthy() -> Verdict:
    """Two replicas, each on a GPU."""
    return example(Replicas("MirroredStrategy", 2, 2, batch=128, divided=True, sharing=1))
