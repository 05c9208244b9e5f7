"""The step waits for devices or hosts to exchange gradients.

## What it checks

The time per step in collectives (all-reduce and its like) while the device computes nothing. Where several
GPUs of a host are in the trace, the exchange itself is told from waiting for the slowest: a kernel of NCCL
runs from its own device's arrival until all are done, so the device that comes last sees the exchange alone.
With one device in the trace that cannot be told, and the whole is a ceiling.

## Why it matters

While gradients travel the device does nothing, on every replica, and the more replicas the longer.

## How to fix

First what makes others late (see uneven-replicas, and the report's section on hosts). Then less to exchange:
a larger batch for each replica, accumulated gradients. (Keras' mixed precision does not help: the
weights stay float32, and so do the gradients that are exchanged.) Then a
faster way: NCCL over NVLink instead of a ring over the network (`CommunicationImplementation.NCCL`), machines
nearer to each other, and packs (`bytes_per_pack`) whose exchange may overlap with the backward pass and
the updates. On several hosts, `AutoShardPolicy.DATA` or `FILE` so that each reads its own share.

## Holds for

GPUs with NCCL or RCCL, TPUs, and CPU workers whose collective operations are in the trace.

## Sources

- [tf.distribute.experimental.CommunicationOptions](https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CommunicationOptions)
- [Distributed training, TensorFlow guide](https://www.tensorflow.org/guide/distributed_training)
- [Distributed input, TensorFlow tutorial: sharding](https://www.tensorflow.org/tutorials/distribute/input)
- [Optimize GPU performance, TensorFlow guide: gradient AllReduce](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [NCCL user guide, NVIDIA: operations](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/operations.html)
"""

from dataclasses import dataclass

from tfdoctor.facts.scale.collectives import Collectives
from tfdoctor.facts.scale.device_skew import DeviceSkew
from tfdoctor.facts.scale.replicas import Replicas
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import milliseconds, percent
from tfdoctor.rule import Topic, limit
from tfdoctor.units import ms, ratio
from tfdoctor.verdict import (
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


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        0.1,
        "of the step in exposed collectives: a few per cent are the price of several devices",
        most=1.0,
    )


LIMITS = Limits()


def check(
    breakdown: Breakdown,
    collectives: Collectives | None,
    skew: DeviceSkew | None,
    replicas: Replicas,
    limits: Limits = LIMITS,
) -> Verdict:
    """Weigh the exposed exchange against the step."""
    exposed, step = breakdown["collective"], breakdown.step_ms
    if not exposed and not (collectives and collectives.ms):
        return NotApplicable(
            reason="no collective is in the trace: one device trains, or the exchange was not recorded"
        )
    own = min(exposed, skew.exchange_ms) if skew and any(skew.exchanging_ms.values()) else exposed
    evidence = (
        Measure("of the step in exposed collectives", ratio(exposed / step), ratio(limits.share)),
        *_told(exposed, own, collectives, known=skew is not None),
    )
    if own < limits.share * step:
        waits = (
            f"; {milliseconds(exposed - own)} more go into waiting for others"
            if own < exposed
            else ""
        )
        return Healthy(
            summary=f"The exchange delays each step by {milliseconds(own)}{waits}",
            evidence=evidence,
        )
    unknown = "" if skew else " (waiting for others included)"
    return Finding(
        summary=f"{milliseconds(own)} of each step ({percent(own / step)}) go into exchanging gradients{unknown}",
        evidence=evidence,
        remedies=tuple(_remedies(replicas)),
        effects=(Effect(Stage.COLLECTIVE, 0.0, StepWork.EXCHANGE, ms(own), bound=Bound.AT_MOST),),
    )


def _told(
    exposed: float, own: float, collectives: Collectives | None, *, known: bool
) -> tuple[Measure, ...]:
    found = [Measure("exposed per step", ms(exposed))]
    if known:
        found.append(Measure("of it the exchange itself, once all devices are there", ms(own)))
    if collectives:
        found.append(Measure("hidden behind other kernels", ms(collectives.hidden_ms)))
        kinds = "; ".join(f"{name} {number:.3g}" for name, number in collectives.kinds)
        found.append(
            Measure(f"in collectives per step, calls by kind: {kinds}", ms(collectives.ms))
        )
    return tuple(found)


def _remedies(replicas: Replicas) -> list[Remedy]:
    batch = f" (now {replicas.each:g} examples for each replica)" if replicas.each else ""
    return [
        Remedy("Begin the exchange while the backward pass runs, over the fastest way", OPTIONS),
        Remedy(f"Or exchange less often: a larger batch for each replica{batch}", LARGER),
    ]


OPTIONS = """\
options = tf.distribute.experimental.CommunicationOptions(
    bytes_per_pack=50 * 1024 * 1024,
    implementation=tf.distribute.experimental.CommunicationImplementation.NCCL,
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)"""

LARGER = "batch_size = 2 * batch_size  # with a learning rate to match; compare the accuracy"


def sick() -> Verdict:
    """An all-reduce of 5 ms after 15 ms of computing."""
    return check(Breakdown.of(device=15.0, collective=5.0), None, None, Replicas())


def healthy() -> Verdict:
    """An all-reduce of which 0.5 ms show."""
    return check(Breakdown.of(device=19.5, collective=0.5), None, None, Replicas())
