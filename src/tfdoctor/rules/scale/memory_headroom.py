from tfdoctor.facts.input.feeding_datasets import TunedBuffers
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    device: float = share_limit(0.95)
    host: float = share_limit(0.95)
    stalled: float = share_limit(0.02)


def check(
    device: DeviceMemory | Unavailable, host: HostMemory | Unavailable, tuned: TunedBuffers | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare the memory in use with the memory there is, on the device and on the host."""
    if isinstance(device, Unavailable) and isinstance(host, Unavailable):
        return NotApplicable(reason=f"{device}; {host}")
    states, faults = [], []
    evidence: list[Measure] = []
    remedies: list[Remedy] = []
    severity = Severity.NOTE
    if isinstance(device, DeviceMemory):
        memory = device.fullest
        states.append(f"{memory.name} was {percent(memory.share)} full")
        evidence += [
            Measure(f"memory of {memory.name} in use", nbytes(memory.used)),
            Measure.share(f"share of the memory of {memory.name} in use", memory.share, limits.device),
            Measure("peak use since the program started", nbytes(memory.peak)),
        ]
        if memory.share >= limits.device:
            faults.append(states[0])
            remedies.append(Remedy("Reduce the memory used on the device", CODE["on-device"]))
    if isinstance(host, HostMemory):
        states.append(f"the host's memory was {percent(host.share)} full")
        evidence.append(Measure.share("share of host memory in use", host.share, limits.host))
        if host.by_run is not None:
            evidence.append(Measure("memory used by this run (RSS)", nbytes(host.by_run)))
        if host.stalled is not None:
            label = "share of the time in which tasks wait for memory"
            evidence.append(Measure.share(label, host.stalled, limits.stalled))
        waits = host.stalled is not None and host.stalled >= limits.stalled
        if waits or host.share >= limits.host:
            waited = f"tasks on the host waited for memory {percent(host.stalled)} of the time"
            faults.append(waited if waits else states[-1])
            severity = Severity.WARNING if waits else severity
            remedies += [
                Remedy("Reduce the memory used on the host", CODE["on-host"]),
                *([tuned.remedy] if tuned else []),
            ]
            evidence += tuned.evidence if tuned else ()
    summary = " and ".join(states)
    return judged(
        *evidence,
        healthy=summary[0].upper() + summary[1:],
        finding="Memory is nearly full: " + "; ".join(faults),
        wrong=bool(faults),
        remedies=remedies,
        severity=severity,
    )
