"""Accelerators are visible to the run and do nothing.

## What it checks

How many of the accelerators that TensorFlow may use do any of the work of the traced steps; a device with
less than a hundredth of the busiest one's work does none. Devices that the script has hidden by itself,
and those that other processes of the job may use, are not counted.

## Why it matters

They are paid for, or taken from somebody else. Where a batch is divided over N devices that work at the same
time, the compute time of a step falls to a Nth at best.

## How to fix

`tf.distribute.MirroredStrategy` copies the model to every GPU of the machine and divides each batch
among them. Keep the batch of each replica as it is now, so that the global batch is that times the number of
replicas, and raise the learning rate with it. Or give the devices back: `CUDA_VISIBLE_DEVICES=0`.

## Holds for

TensorFlow 2.4 and later, GPUs and TPUs of one machine. The saving is a ceiling: exchanging the gradients costs
time, and the input has to keep up with all devices.

## Sources

- [Distributed training, TensorFlow guide](https://www.tensorflow.org/guide/distributed_training)
- [Optimize GPU performance, TensorFlow guide](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [Multi-GPU distributed training with TensorFlow, Keras guide](https://keras.io/guides/distributed_training_with_tensorflow/)
"""

from dataclasses import dataclass

from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.scale.replicas import Replicas
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count
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


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    steps: float = limit(
        3.0, "traced steps at least: a part of one step may lack the work of some devices"
    )


LIMITS = Limits()


def check(
    device: Device, replicas: Replicas, steps: Steps, framework: Framework, limits: Limits = LIMITS
) -> Verdict:
    """Compare the devices that worked with those that could have."""
    if device.kind == DeviceKind.CPU or device.missing:
        return NotApplicable(reason=device.missing or "the run used no accelerator")
    if replicas.workers > 1:
        return NotApplicable(
            reason=f"{replicas.workers} processes train: which of them uses which device is not known here"
        )
    if steps.count < limits.steps:
        return NotApplicable(reason="too few steps were traced to say that a device does nothing")
    usable = device.visible if replicas.granted is None else min(device.visible, replicas.granted)
    evidence = (
        Measure("devices in the trace", count(device.visible)),
        Measure("that the script lets TensorFlow use", count(usable)),
        Measure("that work", count(device.used)),
    )
    if device.used >= usable:
        hidden = device.visible - usable
        but = f"; the script hides {hidden} more from TensorFlow" if hidden > 0 else ""
        who = f"All {usable} {device.kind}s work" if usable > 1 else f"The one {device.kind} works"
        return Healthy(summary=f"{who}{but}", evidence=evidence)
    return Finding(
        summary=f"{usable - device.used} of {usable} {device.kind}s do nothing",
        evidence=evidence,
        remedies=(
            Remedy("Divide the batch among all devices", "" if framework.foreign else CODE),
            Remedy(
                "Or leave the idle ones to others", HIDE if device.kind == DeviceKind.GPU else ""
            ),
        ),
        effects=(Effect(Stage.DEVICE, device.used / usable, bound=Bound.AT_MOST),),
    )


CODE = """\
strategy = tf.distribute.MirroredStrategy()
batch_size = batch_size * strategy.num_replicas_in_sync  # and a learning rate to match
with strategy.scope():
    model = make_model()
    model.compile(...)"""

HIDE = "# in the shell: CUDA_VISIBLE_DEVICES=0 python train.py"


def sick() -> Verdict:
    """Four GPUs of which one works."""
    return check(Device(DeviceKind.GPU, 4, 1), Replicas(), Steps.uniform(20, 50.0), Framework())


def healthy() -> Verdict:
    """Four GPUs that all work."""
    return check(Device(DeviceKind.GPU, 4, 4), Replicas(), Steps.uniform(20, 50.0), Framework())
