from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    steps: float = limit(3.0)


def check(
    device: Device, replicas: Replicas, steps: Steps, framework: Framework, limits: Limits = Limits()
) -> Verdict:
    """Compare the devices that worked with those that TensorFlow may use."""
    several = f"{replicas.workers} processes train, and the recording does not show which device each one uses"
    few = "too few steps were traced to call a device idle; trace more with --steps"
    reason = why_not(
        (device.missing, str(device.missing)),
        (device.kind == DeviceKind.CPU, "the run used no accelerator"),
        (replicas.workers > 1, several),
        (steps.count < limits.steps, few),
    )
    if reason:
        return NotApplicable(reason=reason)
    kind, usable = device.kind, device.visible
    if replicas.granted is not None:
        usable = min(usable, replicas.granted)
    working = f"All {usable} {kind}s are in use" if usable > 1 else f"The only {kind} is in use"
    hidden = device.visible - usable
    return judged(
        Measure("devices in the trace", count(device.visible)),
        Measure("devices that the run may use", count(usable)),
        Measure("devices in use", count(device.used)),
        healthy=f"{working}; the script hides {hidden} more from TensorFlow" if hidden > 0 else working,
        finding=f"{usable - device.used} of {usable} {kind}s are idle",
        wrong=device.used < usable,
        remedies=[
            Remedy("Divide the batch among all devices", "" if framework.foreign else CODE["strategy"]),
            Remedy("Or release the idle devices", CODE["hidden"] if kind == DeviceKind.GPU else ""),
        ],
        effects=[Effect(Stage.DEVICE, device.used / max(1, usable), bound=Bound.AT_MOST)],
    )
