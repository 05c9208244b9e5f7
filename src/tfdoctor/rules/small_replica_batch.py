"""Each replica gets too few examples per step.

## What it checks

How many examples of a step each replica gets, and the share of the step that does not depend on them: the device's
wait for the host, and the exchange of gradients.

## Why it matters

Dividing a batch of 32 among four GPUs leaves eight examples for each, yet every GPU launches as many kernels and
exchanges as many gradients as before: the step hardly gets shorter, and the four GPUs are mostly idle.

## How to fix

Choose the batch size of one replica first, as large as is efficient on one device, and multiply it by
`strategy.num_replicas_in_sync`. Raise the learning rate with the global batch (a common start: in proportion, with
a warm-up) and compare the accuracy.

## Holds for

Synchronous strategies of TensorFlow 2.4 and later, recorded with `tfdoctor profile`. Where the script makes the
batch of each replica itself (`distribute_datasets_from_function`), that batch counts.

## Sources

- [Distributed training with Keras, TensorFlow tutorial](https://www.tensorflow.org/tutorials/distribute/keras)
- [Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour](https://arxiv.org/abs/1706.02677)
- TensorFlow issues [35095](https://github.com/tensorflow/tensorflow/issues/35095) and
  [33809](https://github.com/tensorflow/tensorflow/issues/33809): two GPUs with the batch of one are slower than one
- [Distributed training, TensorFlow guide](https://www.tensorflow.org/guide/distributed_training)
- [Optimize GPU performance, TensorFlow guide](https://www.tensorflow.org/guide/gpu_performance_analysis)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.scale.replicas import Replicas
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count
from tfdoctor.terms.verdict import Effect, Finding, Healthy, Measure, NotApplicable, Remedy, Stage, Verdict

TOPIC = Topic.SCALE
SINCE = "0.1.0"
BY_HAND = "a larger batch changes the training, so the learning rate has to be adjusted"

INPUT = "the job waits for its input: larger batches would only wait longer"

ONE_DEVICE = "the replicas share one device, which one replica would use with the whole batch; see shared-device"

UNRECORDED = "the recording does not say among how many replicas the batch is divided"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    examples: float = limit(
        32.0,
        "Number of examples per replica that is enough; with more of them, the remedies of small-batch apply, as "
        "on one device",
    )
    share: float = share_limit(
        0.3, "Smallest share of the step that does not depend on the batch; below it the replicas are mostly busy"
    )


def check(replicas: Replicas, breakdown: Breakdown, device: Device, limits: Limits = Limits()) -> Verdict:
    """Compare the cost of a step that does not depend on the batch with the step."""
    if reason := _why_not(replicas, breakdown, device):
        return NotApplicable(reason=reason)
    per_replica = replicas.each or 0.0
    parts = {stage: breakdown[stage] for stage in (Stage.HOST, Stage.COLLECTIVE)}
    fixed = sum(parts.values()) / breakdown.step_ms
    evidence = (
        Measure("examples per replica", count(per_replica), count(limits.examples)),
        Measure("replicas", count(replicas.count or 0)),
        Measure.share("share of the step that does not depend on the batch", fixed, limits.share),
    )
    examples = f"{replicas.count} replicas with {per_replica:g} examples each per step"
    summary = f"{examples} spend {percent(fixed)} of the step on fixed costs"
    if per_replica >= limits.examples or fixed < limits.share:
        return Healthy(summary=summary, evidence=evidence)
    return Finding(
        summary=summary,
        evidence=evidence,
        remedies=(Remedy("Give each replica the batch that one device would get", BATCH),),
        effects=Effect.of_stages(parts, "", per_replica / limits.examples),
    )


def _why_not(replicas: Replicas, breakdown: Breakdown, device: Device) -> str:
    """Return why the batch cannot be judged; "" when it can."""
    if replicas.count is None:
        return UNRECORDED
    if replicas.count < 2:  # noqa: PLR2004 - several
        return "one replica trains: its batch is not divided"
    if replicas.share_a_device:
        return ONE_DEVICE
    if replicas.each is None:
        return "the number of examples per step is not recorded"
    return INPUT if breakdown.waits_for_input else str(device.missing or "")


BATCH = """\
batch_size = 64 * strategy.num_replicas_in_sync  # 64 for each replica
learning_rate = learning_rate * strategy.num_replicas_in_sync  # a common start, with a warm-up"""


def example(
    batch: int | None = 32,
    step: Breakdown | None = None,
    *,
    replicas: int | None = 4,
    divided: bool = True,
    device: Device = Device(DeviceKind.GPU, 4, 4),
) -> Verdict:
    """A batch of 32 on four GPUs: launches and the exchange take half of the step."""
    job = Replicas("MirroredStrategy", replicas, 4, batch=batch, divided=divided)
    return check(job, step or Breakdown.of(device=10.0, host=6.0, collective=4.0), device)


sick = example


def healthy() -> Verdict:
    """A batch of 256 on four GPUs."""
    return example(256, Breakdown.of(device=50.0, host=1.0, collective=4.0))
