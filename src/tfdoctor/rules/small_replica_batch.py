"""The batch is divided among so many replicas that each has little to do.

## What it checks

How many examples of a step each replica gets, and the share of the step that does not depend on it: the
device's wait for the host, and the exchange of gradients.

## Why it matters

Dividing a batch of 32 among four GPUs leaves eight examples for each, yet every GPU launches as many kernels
and exchanges as many gradients as before: the step hardly gets shorter, and most of four GPUs idles.

## How to fix

Choose the batch of one replica first, as large as is efficient on one device, and multiply it by
`strategy.num_replicas_in_sync`. Raise the learning rate with the global batch (in proportion, with a warm-up, is
a common start) and compare the accuracy.

## Holds for

Synchronous strategies of TensorFlow 2.4 and later, recorded with `tfdoctor profile`. Where the script makes the
batch of each replica itself (`distribute_datasets_from_function`), that is what counts.

## Sources

- [Distributed training with Keras, TensorFlow tutorial](https://www.tensorflow.org/tutorials/distribute/keras)
- [Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour](https://arxiv.org/abs/1706.02677)
- [Distributed training, TensorFlow guide](https://www.tensorflow.org/guide/distributed_training)
- [Optimize GPU performance, TensorFlow guide](https://www.tensorflow.org/guide/gpu_performance_analysis)
"""

from dataclasses import dataclass

from tfdoctor.facts.run.device import Device
from tfdoctor.facts.scale.replicas import Replicas
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import percent
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    Verdict,
)

TOPIC = Topic.SCALE
SINCE = "0.1.0"

INPUT = "the job waits for its input: larger batches would only wait longer"

UNRECORDED = "the recording does not say into how many replicas the batch is divided"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    examples: float = limit(
        32.0,
        "examples for each replica: from there on the remedies are those of small-batch, as on one device",
    )
    share: float = limit(
        0.3,
        "of the step that does not depend on the batch: below it the replicas are mostly at work",
        most=1.0,
    )


LIMITS = Limits()


def check(
    replicas: Replicas, breakdown: Breakdown, device: Device, limits: Limits = LIMITS
) -> Verdict:
    """Weigh what a step costs whatever its share of the batch."""
    if why := _why_not(replicas, breakdown, device):
        return NotApplicable(reason=why)
    per_replica = replicas.each or 0.0
    parts = {stage: breakdown[stage] for stage in (Stage.HOST, Stage.COLLECTIVE)}
    fixed = sum(parts.values()) / breakdown.step_ms
    each = f"{per_replica:g} examples of each step for each of {replicas.count} replicas"
    evidence = (
        Measure("examples for each replica", count(per_replica), count(limits.examples)),
        Measure("replicas", count(replicas.count or 0)),
        Measure("of the step that does not depend on them", ratio(fixed), ratio(limits.share)),
    )
    if per_replica >= limits.examples or fixed < limits.share:
        return Healthy(
            summary=f"{each}, and {percent(fixed)} of it is fixed cost", evidence=evidence
        )
    return Finding(
        summary=f"{each}: {percent(fixed)} of it is fixed cost",
        evidence=evidence,
        remedies=(Remedy("Give each replica the batch that one device would get", CODE),),
        effects=tuple(
            Effect(stage, per_replica / limits.examples, "", ms(taken), bound=Bound.AT_MOST)
            for stage, taken in parts.items()
            if taken
        ),
    )


def _why_not(replicas: Replicas, breakdown: Breakdown, device: Device) -> str:
    """Return why it cannot be judged; "" when it can."""
    if replicas.count is None:
        return UNRECORDED
    if replicas.count < 2:  # noqa: PLR2004 - several
        return "one replica trains: its batch is not divided"
    if replicas.each is None:
        return "how many examples a step has is not recorded"
    return INPUT if breakdown.waits_for_input else device.missing


CODE = """\
batch_size = 64 * strategy.num_replicas_in_sync  # 64 for each replica
learning_rate = learning_rate * strategy.num_replicas_in_sync  # a start; with a warm-up"""


def sick() -> Verdict:
    """A batch of 32 on four GPUs: half of the step goes by on launching and exchanging."""
    parts = Breakdown.of(device=10.0, host=6.0, collective=4.0)
    return check(
        Replicas("MirroredStrategy", 4, 4, batch=32, divided=True),
        parts,
        Device(DeviceKind.GPU, 4, 4),
    )


def healthy() -> Verdict:
    """A batch of 256 on the same."""
    parts = Breakdown.of(device=50.0, host=1.0, collective=4.0)
    return check(
        Replicas("MirroredStrategy", 4, 4, batch=256, divided=True),
        parts,
        Device(DeviceKind.GPU, 4, 4),
    )
