"""One slow accelerator makes the others wait.

## What it checks

The compute time of each GPU or TPU core per step, without collectives, on devices that train synchronously: by how
much the slowest device is behind the median of the others, and whether the others spend that time in collectives.
Hosts of one job are compared in the report's section on hosts.

## Why it matters

A synchronous step ends when the last replica has its gradients: every other device waits for the slowest.

## How to fix

Give all replicas equal work: `drop_remainder=True` so that the last batch is not divided unevenly, examples of
similar length together (`bucket_by_sequence_length`), the same kind of device for all. Then check the slow
device: its temperature and clock, other programs on it, its place on the bus.

## Holds for

GPUs and TPU cores of one host that exchange gradients. Devices that hold different parts of one model differ by
design and are not compared.

## Sources

- [Distributed training, TensorFlow guide](https://www.tensorflow.org/guide/distributed_training)
- [Optimize GPU performance, TensorFlow guide](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [tf.data.Dataset: bucket_by_sequence_length](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#bucket_by_sequence_length)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.scale.device_skew import DeviceSkew
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import milliseconds
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
    Table,
    Verdict,
)

TOPIC = Topic.SCALE
SINCE = "0.1.0"
BY_HAND = "how the batch is divided is set outside of the training step"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    lag: float = share_limit(
        0.05, "Smallest share of the step by which the slowest device lags; the same limit as between hosts"
    )
    waited: float = share_limit(
        0.5, "Smallest share of that lag which the other devices spend in collectives; below it they do not wait"
    )


def check(skew: DeviceSkew, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Compare the compute times of devices that wait for each other."""
    if not any(skew.exchanging_ms.values()):
        return NotApplicable(reason="the devices exchange nothing in the traced steps, so none waits for another")
    lag, share = milliseconds(skew.lag_ms), skew.lag_ms / breakdown.step_ms
    evidence = (
        Measure.share("share of the step by which the slowest device lags", share, limits.lag),
        Measure("extra time other devices wait in collectives", ms(max(0.0, skew.waited_ms))),
        Table.of(
            sorted(skew.computing_ms, key=lambda name: -skew.computing_ms[name]),
            ("device", str),
            ("compute time", lambda name: ms(skew.computing_ms[name])),
            ("time in collectives", lambda name: ms(skew.exchanging_ms[name])),
        ),
    )
    if skew.lag_ms < limits.lag * breakdown.step_ms:
        return Healthy(summary=f"The devices' compute times differ by {lag}", evidence=evidence)
    if skew.waited_ms < limits.waited * skew.lag_ms:
        return NotApplicable(
            reason=f"{skew.slowest} computes {lag} longer than the others, but they do not wait for it in "
            "collectives: they may hold different parts of the model"
        )
    return Finding(
        summary=f"{skew.slowest} computes {lag} longer than the other devices, which wait for it",
        evidence=evidence,
        remedies=(EVEN, Remedy(f"Find what slows {skew.slowest}", INSPECT)),
        effects=(_effect(skew),),
    )


def _effect(skew: DeviceSkew) -> Effect:
    """Let the slowest be as fast as the next: it computes less, or the device that is shown waits less."""
    others = skew.exchanging_ms.keys() - {skew.slowest}
    stage = Stage.COLLECTIVE if skew.shown in others else Stage.DEVICE
    return Effect(stage, 0.0, StepWork.SLOWEST_REPLICA, ms(skew.gain_ms), bound=Bound.AT_MOST)


EVEN = Remedy(
    "Divide each batch evenly",
    """\
dataset = dataset.batch(global_batch_size, drop_remainder=True)
# examples of different lengths: dataset.bucket_by_sequence_length(...)""",
)

INSPECT = "# in a terminal, during training: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,CLOCK"


def example(lag: float = 4.0, waited: float = 4.0, each: float = 8.0, step: Breakdown | None = None) -> Verdict:
    """One GPU computes for 12 ms, and the other one for 8 ms, after which it waits for 4 ms."""
    computing = {"GPU 0": each + lag, "GPU 1": each}
    skew = DeviceSkew(computing, {"GPU 0": 1.0, "GPU 1": 1.0 + waited})
    return check(skew, step or Breakdown.of(device=12.0, collective=1.0))


sick = example


def healthy() -> Verdict:
    """Two GPUs with the same compute time."""
    return example(0.1, 0.1, 11.9)
