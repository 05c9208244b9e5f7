"""Steps wait for the gradient exchange between devices.

## What it checks

The time per step in collectives (all-reduce and similar) while the device computes nothing. Where several GPUs of
a host are in the trace, the exchange is separated from waiting for the slowest device: an NCCL kernel runs from
its own device's arrival until all devices are done, so the last device to arrive sees only the exchange. With one
device in the trace the two cannot be separated, and the whole time is an upper bound.

## Why it matters

While gradients are exchanged, every replica computes nothing; with more replicas the exchange takes longer.

## How to fix

First fix what makes devices late (see uneven-replicas, and the report's section on hosts). Then exchange less:
a larger batch per replica, accumulated gradients. (Keras' mixed precision does not help: the weights stay float32,
and so do the exchanged gradients.) Then exchange faster: NCCL over NVLink instead of a ring over the network
(`CommunicationImplementation.NCCL`), machines closer to each other, and packs (`bytes_per_pack`) whose exchange
can overlap the backward pass and the updates. On several hosts, set `AutoShardPolicy.DATA` or `FILE` so that each
host reads only its own shard.

Over a network, even with NCCL, a second host may cost more than it adds where gradients are large and steps are
short: measure the bandwidth between the hosts with NVIDIA's nccl-tests first.

## Holds for

GPUs with NCCL or RCCL, TPUs, and CPU workers whose collective operations are in the trace.

## Sources

- [tf.distribute.experimental.CommunicationOptions](https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CommunicationOptions)
- [Distributed training, TensorFlow guide](https://www.tensorflow.org/guide/distributed_training)
- [Distributed input, TensorFlow tutorial: sharding](https://www.tensorflow.org/tutorials/distribute/input)
- [Optimize GPU performance, TensorFlow guide: gradient AllReduce](https://www.tensorflow.org/guide/gpu_performance_analysis)
- TensorFlow issues [42200](https://github.com/tensorflow/tensorflow/issues/42200) and
  [50178](https://github.com/tensorflow/tensorflow/issues/50178): workers over a slow network, without NCCL;
  [103564](https://github.com/tensorflow/tensorflow/issues/103564): eight A100 of one host
- [NCCL user guide, NVIDIA: operations](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/operations.html)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.scale.collectives import Collectives
from tfdoctor.facts.scale.device_skew import DeviceSkew
from tfdoctor.facts.scale.replicas import Replicas
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import milliseconds, percent
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    StepWork,
    Verdict,
)

TOPIC = Topic.SCALE
SINCE = "0.1.0"
BY_HAND = "how replicas exchange gradients is set outside of the training step"

ONE_DEVICE = "the replicas share one device, so that nothing would have to be exchanged; see shared-device"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    share: float = share_limit(
        0.1, "Smallest share of the step in exposed collectives; a few percent are normal with several devices"
    )


def check(
    breakdown: Breakdown,
    collectives: Collectives | None,
    skew: DeviceSkew | None,
    replicas: Replicas,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the exposed exchange with the step."""
    if replicas.share_a_device:
        return NotApplicable(reason=ONE_DEVICE)
    exposed_ms = exchange_ms = breakdown[Stage.COLLECTIVE]
    if not exposed_ms and not (collectives and collectives.ms):
        return NotApplicable(
            reason="the trace contains no collective: one device trains, or the exchange was not recorded"
        )
    if skew and any(skew.exchanging_ms.values()):
        exchange_ms = min(exposed_ms, skew.exchange_ms)  # without waiting for other devices
    label, share = "share of the step in exposed collectives", exposed_ms / breakdown.step_ms
    times = _times(exposed_ms, exchange_ms if skew else None, collectives)
    evidence = (Measure.share(label, share, limits.share), *times)
    if exchange_ms >= limits.share * breakdown.step_ms:
        waits = "" if skew else ", including waiting for other devices"
        return _finding(exchange_ms, breakdown, replicas, evidence, waits)
    summary = f"The exchange delays each step by {milliseconds(exchange_ms)}"
    if exchange_ms < exposed_ms:
        summary += f"; waiting for other devices adds {milliseconds(exposed_ms - exchange_ms)}"
    return Healthy(summary=summary, evidence=evidence)


def _times(exposed_ms: float, exchange_ms: float | None, collectives: Collectives | None) -> Iterator[Measure]:
    yield Measure("exposed collective time per step", ms(exposed_ms))
    if exchange_ms is not None:
        yield Measure("communication time, excluding waiting", ms(exchange_ms))
    if collectives:
        yield Measure("collective time hidden by other kernels", ms(collectives.hidden_ms))
        calls = ", ".join(f"{name} {number:.3g}" for name, number in collectives.kinds)
        yield Measure(f"collective time per step (calls: {calls})", ms(collectives.ms))


def _finding(
    exchange_ms: float, breakdown: Breakdown, replicas: Replicas, evidence: tuple[Measure, ...], waits: str
) -> Finding:
    part = f"{percent(exchange_ms / breakdown.step_ms)}{waits}"
    batch = f" (now {replicas.each:g} examples)" if replicas.each else ""
    exchange = Effect(Stage.COLLECTIVE, 0.0, StepWork.EXCHANGE, ms(exchange_ms), bound=Bound.AT_MOST)
    return Finding(
        summary=f"Exchanging gradients takes {milliseconds(exchange_ms)} of {breakdown.each_step} ({part})",
        evidence=evidence,
        remedies=(
            Remedy("Overlap the exchange with the backward pass, and use NCCL", OPTIONS),
            Remedy(f"Or exchange less often: use a larger batch per replica{batch}", LARGER),
        ),
        effects=(exchange,),
    )


OPTIONS = """\
options = tf.distribute.experimental.CommunicationOptions(
    bytes_per_pack=50 * 1024 * 1024,
    implementation=tf.distribute.experimental.CommunicationImplementation.NCCL,
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)"""

LARGER = "batch_size = 2 * batch_size  # adjust the learning rate and compare the accuracy"


def sick() -> Verdict:
    """An all-reduce of 5 ms follows 15 ms of compute."""
    return check(Breakdown.of(device=15.0, collective=5.0), None, None, Replicas())


def healthy() -> Verdict:
    """An all-reduce of which 0.5 ms are exposed."""
    return check(Breakdown.of(device=19.5, collective=0.5), None, None, Replicas())
