"""One accelerator of the host computes longer than the others, which wait for it.

## What it checks

The computing time of each GPU or TPU core in a step, collectives left out, on devices that train in step:
by how much the slowest is behind the median of the others, and whether those spend the difference in
collectives. Hosts of one job are compared in the report's section on hosts.

## Why it matters

A synchronous step ends when the last replica has its gradients: every other device pays for the slowest.

## How to fix

Give all replicas equal work: `drop_remainder=True` so that the last batch is not divided unevenly, examples of
similar length together (`bucket_by_sequence_length`), the same kind of device for all. Then look at the
slow device: its temperature and clock, other programs on it, its place on the bus.

## Holds for

GPUs and TPU cores of one host that exchange gradients. Devices that hold different parts of one model differ
by design and are not judged.

## Sources

- [Distributed training, TensorFlow guide](https://www.tensorflow.org/guide/distributed_training)
- [Optimize GPU performance, TensorFlow guide](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [tf.data.Dataset: bucket_by_sequence_length](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#bucket_by_sequence_length)
"""

from dataclasses import dataclass

from tfdoctor.facts.scale.device_skew import DeviceSkew
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import milliseconds
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
    Table,
    Verdict,
)

TOPIC = Topic.SCALE
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    lag: float = limit(
        0.05,
        "of the step that the slowest is behind the others: as between the hosts of a job",
        most=1.0,
    )
    waited: float = limit(
        0.5,
        "of that which the others spend in collectives: otherwise they do not wait for it there",
        most=1.0,
    )


LIMITS = Limits()


def check(skew: DeviceSkew, breakdown: Breakdown, limits: Limits = LIMITS) -> Verdict:
    """Compare the computing times of devices that wait for each other."""
    if not any(skew.exchanging_ms.values()):
        return NotApplicable(
            reason="the devices exchange nothing in these steps: they do not train in step"
        )
    lag, step = skew.lag_ms, breakdown.step_ms
    evidence = (
        Measure(
            "of the step that the slowest is behind the others",
            ratio(lag / step),
            ratio(limits.lag),
        ),
        Measure("that the others are longer in collectives", ms(max(0.0, skew.waited_ms))),
        _table(skew),
    )
    if lag < limits.lag * step:
        return Healthy(
            summary=f"The devices' computing times differ by {milliseconds(lag)}", evidence=evidence
        )
    if skew.waited_ms < limits.waited * lag:
        return NotApplicable(
            reason=f"{skew.slowest} computes {milliseconds(lag)} longer than the others, but they do not wait "
            "for it in collectives: they may hold different parts of the model"
        )
    return Finding(
        summary=f"{skew.slowest} computes {milliseconds(lag)} longer than the other devices, which wait for it",
        evidence=evidence,
        remedies=(
            Remedy("Divide each batch evenly", CODE),
            Remedy(f"See what slows {skew.slowest}", SEE),
        ),
        effects=(_effect(skew),),
    )


def _effect(skew: DeviceSkew) -> Effect:
    """Let the slowest be as fast as the next: it computes less, or the device that is shown waits less."""
    stage = (
        Stage.COLLECTIVE
        if skew.shown in skew.exchanging_ms.keys() - {skew.slowest}
        else Stage.DEVICE
    )
    return Effect(stage, 0.0, StepWork.SLOWEST_REPLICA, ms(skew.gain_ms), bound=Bound.AT_MOST)


CODE = """\
dataset = dataset.batch(global_batch_size, drop_remainder=True)
# examples of different lengths: dataset.bucket_by_sequence_length(...)"""

SEE = "# in a terminal, while it trains: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,CLOCK"


def _table(skew: DeviceSkew) -> Table:
    names = sorted(skew.computing_ms, key=lambda name: -skew.computing_ms[name])
    rows = tuple((n, ms(skew.computing_ms[n]), ms(skew.exchanging_ms[n])) for n in names)
    return Table(("device", "computing", "in collectives"), rows)


def sick() -> Verdict:
    """Two GPUs of which one computes 12 ms and the other 8, which then waits for 4."""
    skew = DeviceSkew({"GPU 0": 12.0, "GPU 1": 8.0}, {"GPU 0": 1.0, "GPU 1": 5.0})
    return check(skew, Breakdown.of(device=12.0, collective=1.0))


def healthy() -> Verdict:
    """Two GPUs that compute equally long."""
    skew = DeviceSkew({"GPU 0": 12.0, "GPU 1": 11.9}, {"GPU 0": 1.0, "GPU 1": 1.1})
    return check(skew, Breakdown.of(device=12.0, collective=1.0))
