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
of `.cache()` in memory, and fewer worker processes. `AUTOTUNE` lets tf.data's tuner take up to half of the free
memory of the machine for its buffers, whatever the limit of a container: where the pipeline has such stages, the
report names them, and `options.autotune.ram_budget` limits them.

## Holds for

GPUs, from the allocations in a trace of TensorFlow or JAX; hosts sampled by `tfdoctor profile` (pressure needs
Linux 4.20 or later).

## Sources

- [Use a GPU, TensorFlow guide: limiting GPU memory growth](https://www.tensorflow.org/guide/gpu)
- [tf.recompute_grad](https://www.tensorflow.org/api_docs/python/tf/recompute_grad)
- [tf.data.experimental.AutotuneOptions: ram_budget](https://www.tensorflow.org/api_docs/python/tf/data/experimental/AutotuneOptions)
- [TensorFlow issue 33516: AUTOTUNE takes all memory](https://github.com/tensorflow/tensorflow/issues/33516)
- [PSI, pressure stall information, Linux](https://docs.kernel.org/accounting/psi.html)
"""

from dataclasses import dataclass
from typing import Self

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.tuned_buffers import TunedBuffers
from tfdoctor.facts.machine.device_memory import Allocator, DeviceMemory
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.units import nbytes
from tfdoctor.terms.verdict import Finding, Healthy, Measure, NotApplicable, Remedy, Severity, Verdict

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
        remedy = Remedy("Reduce the memory used on the device", ON_DEVICE)
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
        remedy = Remedy("Reduce the memory used on the host", ON_HOST)
        return cls(state, fault, tuple(evidence), remedy, waits, of_the_host=True)


ON_DEVICE = """\
keras.mixed_precision.set_global_policy("mixed_bfloat16")  # half the activations; or a smaller batch
block = tf.recompute_grad(block)  # recomputes the block's activations instead of storing them"""

ON_HOST = """\
dataset = dataset.cache("/tmp/cache")  # on disk, not in memory
dataset = dataset.shuffle(1000)  # a smaller buffer; or shuffle the file names"""


def example(
    allocator: Allocator | None = Allocator("GPU_0_bfc", 15.5e9, 15.4e9, 15.4e9),
    host: HostMemory | Unavailable = HostMemory(64e9, 20e9),
    tuned: TunedBuffers | None = None,
) -> Verdict:
    """On a GPU, 15.4 of 15.5 GB are in use."""
    device = DeviceMemory((allocator,)) if allocator else Unavailable("no accelerator")
    return check(device, host, tuned)


sick = example


def healthy() -> Verdict:
    """The host's memory is a third full, and no task waits for memory."""
    return example(None, HostMemory(64e9, 20e9, stalled=0.0))
