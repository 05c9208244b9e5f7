"""Device or host memory is nearly full.

## What it checks

On each GPU, the peak memory in use by TensorFlow's allocator in the traced steps, compared with the allocator's
limit. (The peak of the whole run says little: at the start cuDNN tries algorithms with all available memory.) On
the host, the peak memory in use, and the share of the time in which some task waited for memory (the kernel's
pressure figure, which includes swapping and the search for free pages). The memory use that `nvidia-smi` shows
says little: TensorFlow takes nearly all memory when it starts.

## Why it matters

A run at the limit fails with an out-of-memory error at the first slightly larger batch, and kernels that could use
more scratch memory fall back to slower ones. A host that waits for memory slows every stage, above all the input.
A GPU that is mostly empty has room for a larger batch.

## How to fix

On the accelerator: use a smaller batch or a 16-bit policy, recompute activations (`tf.recompute_grad`), and check
what else runs on it. On the host: use smaller shuffle and prefetch buffers, `.cache(path)` on disk instead
of `.cache()` in memory, and fewer worker processes.

## Holds for

GPUs, from the allocations in a trace of TensorFlow or JAX; hosts sampled by `tfdoctor profile` (pressure needs
Linux 4.20 or later).

## Sources

- [Use a GPU, TensorFlow guide: limiting GPU memory growth](https://www.tensorflow.org/guide/gpu)
- [tf.recompute_grad](https://www.tensorflow.org/api_docs/python/tf/recompute_grad)
- [PSI, pressure stall information, Linux](https://docs.kernel.org/accounting/psi.html)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.device_memory import Allocator, DeviceMemory
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.units import nbytes
from tfdoctor.terms.verdict import (
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Verdict,
)

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
        "Smallest share of the host's memory in use by all programs; above it the kernel drops caches and "
        "swaps",
    )
    stalled: float = share_limit(
        0.02,
        "Smallest share of the sampled time with a task that waits for memory; 0 on a machine with enough "
        "memory",
    )


def check(
    device: DeviceMemory | Unavailable, host: HostMemory | Unavailable, limits: Limits = Limits()
) -> Verdict:
    """Compare the memory in use with the memory there is, on the device and on the host."""
    if isinstance(device, Unavailable) and isinstance(host, Unavailable):
        return NotApplicable(reason=f"{device}; {host}")
    faults = tuple(_faults(device, host, limits))
    evidence = (*_of_device(device, limits), *_of_host(host, limits))
    if not faults:
        return Healthy(summary=_healthy(device, host), evidence=evidence)
    stalls = isinstance(host, HostMemory) and _stalls(host, limits)
    return Finding(
        summary="Memory is nearly full: " + "; ".join(fault for fault, _ in faults),
        evidence=evidence,
        remedies=tuple(remedy for _, remedy in faults),
        severity=Severity.WARNING if stalls else Severity.NOTE,
    )


ON_DEVICE = """\
keras.mixed_precision.set_global_policy("mixed_bfloat16")  # half the activations; or a smaller batch
block = tf.recompute_grad(block)  # recomputes the block's activations instead of storing them"""

ON_HOST = """\
dataset = dataset.cache("/tmp/cache")  # on disk, not in memory
dataset = dataset.shuffle(1000)  # a smaller buffer; or shuffle the file names"""


def _faults(
    device: DeviceMemory | Unavailable, host: HostMemory | Unavailable, limits: Limits
) -> Iterator[tuple[str, Remedy]]:
    """Yield what is nearly full, or makes tasks wait, with what to do."""
    if isinstance(device, DeviceMemory) and device.fullest.share >= limits.device:
        yield _device_full(device), Remedy("Reduce the memory used on the device", ON_DEVICE)
    if isinstance(host, Unavailable):
        return
    if host.stalled is not None and _stalls(host, limits):
        waited = f"tasks on the host waited for memory {percent(host.stalled)} of the time"
        yield waited, Remedy("Reduce the memory used on the host", ON_HOST)
    elif host.share >= limits.host:
        yield _host_full(host), Remedy("Reduce the memory used on the host", ON_HOST)


def _stalls(host: HostMemory, limits: Limits) -> bool:
    return host.stalled is not None and host.stalled >= limits.stalled


def _device_full(device: DeviceMemory) -> str:
    return f"{device.fullest.name} was {percent(device.fullest.share)} full"


def _host_full(host: HostMemory) -> str:
    return f"the host's memory was {percent(host.share)} full"


def _of_device(device: DeviceMemory | Unavailable, limits: Limits) -> Iterator[Measure]:
    if isinstance(device, DeviceMemory):
        memory = device.fullest
        yield Measure(f"memory of {memory.name} in use", nbytes(memory.used))
        label = f"share of the memory of {memory.name} in use"
        yield Measure.share(label, memory.share, limits.device)
        yield Measure("peak use since the program started", nbytes(memory.peak))


def _of_host(host: HostMemory | Unavailable, limits: Limits) -> Iterator[Measure]:
    if isinstance(host, Unavailable):
        return
    yield Measure.share("share of host memory in use", host.share, limits.host)
    if host.by_run is not None:
        yield Measure("memory used by this run (RSS)", nbytes(host.by_run))
    if host.stalled is not None:
        label = "share of the time in which tasks wait for memory"
        yield Measure.share(label, host.stalled, limits.stalled)


def _healthy(device: DeviceMemory | Unavailable, host: HostMemory | Unavailable) -> str:
    clauses = []
    if isinstance(device, DeviceMemory):
        clauses.append(_device_full(device))
    if isinstance(host, HostMemory):
        clauses.append(_host_full(host))
    summary = " and ".join(clauses)
    return summary[0].upper() + summary[1:]


def example(
    allocator: Allocator | None = Allocator("GPU_0_bfc", 15.5e9, 15.4e9, 15.4e9),
    host: HostMemory | Unavailable = HostMemory(64e9, 20e9),
) -> Verdict:
    """On a GPU, 15.4 of 15.5 GB are in use."""
    device = DeviceMemory((allocator,)) if allocator else Unavailable("no accelerator")
    return check(device, host)


sick = example


def healthy() -> Verdict:
    """The host's memory is a third full, and no task waits for memory."""
    return example(None, HostMemory(64e9, 20e9, stalled=0.0))
