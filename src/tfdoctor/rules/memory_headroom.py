from typing import Self

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.tuned_buffers import TunedBuffers
from tfdoctor.facts.machine.device_memory import Allocator, DeviceMemory
from tfdoctor.facts.machine.host_memory import HostMemory

__doc__, CODE = page(__file__)

TOPIC = Topic.SCALE
SINCE = "0.1.0"
BY_HAND = "a smaller batch or model changes the training"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    device: float = share_limit(
        0.95,
        "Smallest share of the limit of TensorFlow's allocator in use on a device; fragmentation soon takes "
        "the rest",
    )
    host: float = share_limit(
        0.95,
        "Smallest share of the host's memory in use by all programs; above it the kernel drops caches and swaps",
    )
    stalled: float = share_limit(
        0.02,
        "Smallest share of the sampled time with a task that waits for memory; 0 on a machine with enough memory",
    )


def check(
    device: DeviceMemory | Unavailable,
    host: HostMemory | Unavailable,
    tuned: TunedBuffers | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the memory in use with the memory there is, on the device and on the host."""
    if isinstance(device, Unavailable) and isinstance(host, Unavailable):
        return NotApplicable(reason=f"{device}; {host}")
    memories = []
    if isinstance(device, DeviceMemory):
        memories.append(Filled.of_device(device.fullest, limits))
    if isinstance(host, HostMemory):
        memories.append(Filled.of_host(host, limits))
    evidence = tuple(measure for memory in memories for measure in memory.evidence)
    faults = [memory for memory in memories if memory.fault]
    if not faults:
        summary = " and ".join(memory.state for memory in memories)
        return Healthy(summary=summary[0].upper() + summary[1:], evidence=evidence)
    buffers = tuned if any(memory.of_the_host for memory in faults) else None
    return Finding(
        summary="Memory is nearly full: " + "; ".join(memory.fault for memory in faults),
        evidence=(*evidence, *(buffers.evidence if buffers else ())),
        remedies=(*(memory.remedy for memory in faults), *((buffers.remedy,) if buffers else ())),
        severity=Severity.WARNING if any(memory.waits for memory in faults) else Severity.NOTE,
    )


@dataclass(frozen=True, slots=True)
class Filled:
    """How full a memory is, in words; ``fault`` is "" where it is not nearly full."""

    state: str
    fault: str
    evidence: tuple[Measure, ...]
    remedy: Remedy
    waits: bool = False  # whether tasks wait for it
    of_the_host: bool = False

    @classmethod
    def of_device(cls, memory: Allocator, limits: Limits) -> Self:
        """Compare the peak of the traced steps with the allocator's limit."""
        state = f"{memory.name} was {percent(memory.share)} full"
        label = f"share of the memory of {memory.name} in use"
        evidence = (
            Measure(f"memory of {memory.name} in use", nbytes(memory.used)),
            Measure.share(label, memory.share, limits.device),
            Measure("peak use since the program started", nbytes(memory.peak)),
        )
        remedy = Remedy("Reduce the memory used on the device", CODE["on-device"])
        return cls(state, state if memory.share >= limits.device else "", evidence, remedy)

    @classmethod
    def of_host(cls, host: HostMemory, limits: Limits) -> Self:
        """Judge the time that tasks wait for memory, and where they do not, the memory in use."""
        fault = state = f"the host's memory was {percent(host.share)} full"
        evidence = [Measure.share("share of host memory in use", host.share, limits.host)]
        if host.by_run is not None:
            evidence.append(Measure("memory used by this run (RSS)", nbytes(host.by_run)))
        waits = host.stalled is not None and host.stalled >= limits.stalled
        if host.stalled is not None:
            label = "share of the time in which tasks wait for memory"
            evidence.append(Measure.share(label, host.stalled, limits.stalled))
        if waits:
            fault = f"tasks on the host waited for memory {percent(host.stalled)} of the time"
        elif host.share < limits.host:
            fault = ""
        remedy = Remedy("Reduce the memory used on the host", CODE["on-host"])
        return cls(state, fault, tuple(evidence), remedy, waits, of_the_host=True)
