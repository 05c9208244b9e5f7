from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.scale.replicas import Replicas

__doc__, CODE = page(__file__)

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
            Remedy("Divide the batch among all devices", "" if framework.foreign else CODE["strategy"]),
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


HIDE = "# in the shell: CUDA_VISIBLE_DEVICES=0 python train.py"
