"""Some visible accelerators do no work.

## What it checks

How many of the accelerators that TensorFlow may use do any work in the traced steps; a device with less than a
hundredth of the busiest device's work counts as idle. Devices that the script hides, and those that other
processes of the job may use, are not counted.

## Why it matters

Idle devices cost money, and other jobs could use them. Where a batch is divided over N devices, the compute
time of a step falls to 1/N at best.

## How to fix

`tf.distribute.MirroredStrategy` copies the model to every GPU of the machine and divides each batch among them.
Keep the current batch size for each replica, so that the global batch is this size times the number of replicas,
and raise the learning rate accordingly. Or release the devices: `CUDA_VISIBLE_DEVICES=0`.

## Holds for

TensorFlow 2.4 and later, GPUs and TPUs of one machine. The saving is an upper bound: exchanging the gradients takes
time, and the input has to keep up with all devices.

## Sources

- [Distributed training, TensorFlow guide](https://www.tensorflow.org/guide/distributed_training)
- [Optimize GPU performance, TensorFlow guide](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [Multi-GPU distributed training with TensorFlow, Keras guide](https://keras.io/guides/distributed_training_with_tensorflow/)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit
from tfdoctor.facts.run.device import Device, MissingWork
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.scale.replicas import Replicas
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count
from tfdoctor.terms.verdict import Bound, Effect, Finding, Healthy, Measure, NotApplicable, Remedy, Stage, Verdict

TOPIC = Topic.SCALE
SINCE = "0.1.0"
BY_HAND = "batch size and learning rate have to be chosen for several devices"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    steps: float = limit(
        3.0, "Smallest number of traced steps; a part of one step may lack the work of some devices"
    )


def check(
    device: Device, replicas: Replicas, steps: Steps, framework: Framework, limits: Limits = Limits()
) -> Verdict:
    """Compare the devices that worked with those that TensorFlow may use."""
    if reason := _why_not(device, replicas, steps, limits):
        return NotApplicable(reason=reason)
    usable = device.visible if replicas.granted is None else min(device.visible, replicas.granted)
    evidence = (
        Measure("devices in the trace", count(device.visible)),
        Measure("devices that the run may use", count(usable)),
        Measure("devices in use", count(device.used)),
    )
    if device.used >= usable:
        return Healthy(summary=_healthy(device, usable), evidence=evidence)
    release = HIDE if device.kind == DeviceKind.GPU else ""
    return Finding(
        summary=f"{usable - device.used} of {usable} {device.kind}s are idle",
        evidence=evidence,
        remedies=(
            Remedy("Divide the batch among all devices", "" if framework.foreign else STRATEGY),
            Remedy("Or release the idle devices", release),
        ),
        effects=(Effect(Stage.DEVICE, device.used / usable, bound=Bound.AT_MOST),),
    )


def _why_not(device: Device, replicas: Replicas, steps: Steps, limits: Limits) -> str:
    """Return why idleness cannot be judged; "" when it can."""
    if device.missing:
        return str(device.missing)
    if device.kind == DeviceKind.CPU:
        return "the run used no accelerator"
    if replicas.workers > 1:
        return f"{replicas.workers} processes train, and the recording does not show which device each one uses"
    if steps.count < limits.steps:
        return "too few steps were traced to call a device idle; trace more with --steps"
    return ""


def _healthy(device: Device, usable: int) -> str:
    working = f"All {usable} {device.kind}s are in use" if usable > 1 else f"The only {device.kind} is in use"
    hidden = device.visible - usable
    return f"{working}; the script hides {hidden} more from TensorFlow" if hidden > 0 else working


STRATEGY = """\
strategy = tf.distribute.MirroredStrategy()
batch_size = batch_size * strategy.num_replicas_in_sync  # adjust the learning rate
with strategy.scope():
    model = make_model()
    model.compile(...)"""

HIDE = "# in the shell: CUDA_VISIBLE_DEVICES=0 python train.py"


def example(
    used: int = 1,
    visible: int = 4,
    replicas: Replicas = Replicas(),
    *,
    kind: DeviceKind = DeviceKind.GPU,
    steps: int = 20,
    missing: MissingWork | None = None,
) -> Verdict:
    """One of four GPUs works."""
    device = Device(kind, visible, used, missing=missing)
    return check(device, replicas, Steps.uniform(steps, 50.0), Framework())


sick = example


def healthy() -> Verdict:
    """All of four GPUs work."""
    return example(used=4)
