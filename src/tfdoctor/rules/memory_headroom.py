"""Memory is nearly full, on the accelerator or on the host.

## What it checks

What TensorFlow's own allocator had handed out on each GPU at most, during the traced steps, against what it
may hand out (the peak of the whole run is no measure: cuDNN tries algorithms with all memory there is at the
start); and on the host how full the
memory was at most, and the share of the time in which some task waited for memory (the kernel's pressure
figure, which counts swapping and the search for free pages). What `nvidia-smi` shows as used is no measure:
TensorFlow takes nearly all memory when it starts.

## Why it matters

A run that is at the limit fails with an out-of-memory error at the first batch that is a little larger, and
kernels that could use more scratch memory fall back to slower ones. A host that waits for memory slows every
stage, input above all. A GPU that is mostly empty has room for a larger batch.

## How to fix

On the accelerator: a smaller batch or a 16-bit policy, recompute activations (`tf.recompute_grad`), and see
what else runs on it. On the host: smaller shuffle and prefetch buffers, `.cache(path)` on disk instead of
`.cache()` in memory, fewer worker processes.

## Holds for

GPUs, from the allocations in a trace of TensorFlow or JAX; the host where `tfdoctor profile` sampled it
(pressure needs Linux 4.20 or later).

## Sources

- [Use a GPU, TensorFlow guide: limiting GPU memory growth](https://www.tensorflow.org/guide/gpu)
- [tf.recompute_grad](https://www.tensorflow.org/api_docs/python/tf/recompute_grad)
- [PSI, pressure stall information, Linux](https://docs.kernel.org/accounting/psi.html)
"""

from dataclasses import dataclass

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.device_memory import Allocator, DeviceMemory
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.humanize import percent
from tfdoctor.rule import Topic, limit
from tfdoctor.units import nbytes, ratio
from tfdoctor.verdict import (
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


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    device: float = limit(
        0.95,
        "of what TensorFlow's allocator may hand out on a device: the rest is lost to fragments soon",
        most=1.0,
    )
    host: float = limit(
        0.95,
        "of the host's memory in use by all programs: the kernel begins to drop caches and to swap",
        most=1.0,
    )
    stalled: float = limit(
        0.02,
        "of the sampled time with a task that waits for memory: a machine with room for all has 0",
        most=1.0,
    )


LIMITS = Limits()


def check(
    device: DeviceMemory | Unavailable,
    host: HostMemory | Unavailable,
    limits: Limits = LIMITS,
) -> Verdict:
    """Compare both with what there is."""
    if isinstance(device, Unavailable) and isinstance(host, Unavailable):
        return NotApplicable(reason=f"{device}; {host}")
    faults: list[str] = []
    remedies: list[Remedy] = []
    if isinstance(device, DeviceMemory) and device.fullest.share >= limits.device:
        faults.append(f"{device.fullest.name} was {percent(device.fullest.share)} full")
        remedies.append(Remedy("Give the device less to hold", ON_DEVICE))
    if isinstance(host, HostMemory) and _short(host, limits):
        faults.append(_host_words(host, limits))
        remedies.append(Remedy("Give the host less to hold", ON_HOST))
    evidence = (*_of_device(device, limits), *_of_host(host, limits))
    if not faults:
        return Healthy(summary=_healthy(device, host), evidence=evidence)
    return Finding(
        summary="Little memory is left: " + "; ".join(faults),
        evidence=evidence,
        remedies=tuple(remedies),
        severity=Severity.WARNING
        if isinstance(host, HostMemory) and _stalls(host, limits)
        else Severity.NOTE,
    )


ON_DEVICE = """\
keras.mixed_precision.set_global_policy("mixed_bfloat16")  # half the activations; or a smaller batch
block = tf.recompute_grad(block)  # computes the block's activations again instead of keeping them"""

ON_HOST = """\
dataset = dataset.cache("/tmp/cache")  # on disk, not in memory
dataset = dataset.shuffle(1000)  # a smaller buffer; or shuffle file names"""


def _short(host: HostMemory, limits: Limits) -> bool:
    return host.share >= limits.host or _stalls(host, limits)


def _stalls(host: HostMemory, limits: Limits) -> bool:
    return host.stalled is not None and host.stalled >= limits.stalled


def _host_words(host: HostMemory, limits: Limits) -> str:
    if host.stalled is not None and _stalls(host, limits):
        return f"tasks on the host waited for memory {percent(host.stalled)} of the time"
    return f"the host's memory was {percent(host.share)} full"


def _of_device(device: DeviceMemory | Unavailable, limits: Limits) -> tuple[Measure, ...]:
    if isinstance(device, Unavailable):
        return ()
    one = device.fullest
    return (
        Measure(f"of {one.name} in use in the traced steps", nbytes(one.used)),
        Measure("of what it may hand out", ratio(one.share), ratio(limits.device)),
        Measure("the most since the program began", nbytes(one.peak)),
    )


def _of_host(host: HostMemory | Unavailable, limits: Limits) -> tuple[Measure, ...]:
    if isinstance(host, Unavailable):
        return ()
    found = [Measure("of the host's memory in use", ratio(host.share), ratio(limits.host))]
    if host.by_run is not None:
        found.append(Measure("of it by the run, resident", nbytes(host.by_run)))
    if host.stalled is not None:
        label = "of the time with a task that waits for memory"
        found.append(Measure(label, ratio(host.stalled), ratio(limits.stalled)))
    return tuple(found)


def _healthy(device: DeviceMemory | Unavailable, host: HostMemory | Unavailable) -> str:
    said = []
    if isinstance(device, DeviceMemory):
        said.append(f"{device.fullest.name} was {percent(device.fullest.share)} full")
    if isinstance(host, HostMemory):
        said.append(f"the host's memory was {percent(host.share)} full")
    text = " and ".join(said)
    return text[0].upper() + text[1:]


def sick() -> Verdict:
    """A GPU of which 15.4 of 15.5 GB were in use."""
    return check(
        DeviceMemory((Allocator("GPU_0_bfc", 15.5e9, 15.4e9, 15.4e9),)), HostMemory(64e9, 20e9)
    )


def healthy() -> Verdict:
    """A host that is a third full and never waits for memory."""
    return check(Unavailable("no accelerator"), HostMemory(64e9, 20e9, stalled=0.0))
