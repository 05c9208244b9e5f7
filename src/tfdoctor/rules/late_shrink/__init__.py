"""Elements become small later than they could.

## What it checks

**Time.** Operations of `map` functions on images that a later operation resizes or crops: by the recorded graphs of
the functions, also across several maps, which operations work on the full image although nothing but the shrinking
needs their result, and by the trace, how long they take. Their time after the shrinking is their time now times the
share of the pixels that is left. It is reported where the step waits for that stage, or where this work takes cores
from the compute of a CPU run.

**Memory.** How much memory full `shuffle`, `cache` and large `prefetch` buffers take (the bytes of an element, by
its `element_spec`, times the number of elements), and whether a neighboring `map` makes the elements larger before
the buffer (decoding, one-hot encoding, a cast to float) or smaller after it (resizing, cropping, a cast to
`uint8`).

## Why it matters

Flips, conversions, and changes of brightness or color take time in proportion to the pixels. At 224 by 224 they
take twelve times as long as at 64 by 64.

Host memory: a full shuffle buffer of 10,000 float images of 224 by 224 takes 6 GB; a buffer of their file names
takes a megabyte. Memory in these buffers is not available to the page cache and to other programs, and filling
a shuffle buffer delays the first batch of every epoch.

## How to fix

Resize or crop first, then change what is left: move the line of the shrinking before the lines of the table. The
images differ slightly from those of the other order: a resize mixes pixels before their values are changed instead
of after it, and a contrast uses the mean of what is left. So compare the accuracy once.

Put a buffer where the elements are small: shuffle file names or records, then read and decode them; resize
before the cache; cast and encode after it. A `shuffle` gives the same order before and after a `map`.
Two constraints remain: random operations stay after a `cache`, and so does `shuffle`, or every epoch has the
same order.

## Holds for

All versions of TensorFlow 2, in recordings of `tfdoctor profile`. A buffer directly after data that is in
memory already (arrays given to `from_tensor_slices`, or a cache) does not count, because it mostly holds
references. The size of encoded text and images is unknown, so they are never reported as smaller; file names
are. A finding about a buffer predicts no time saving.
Work before a shrinking is counted where each operation on the way changes pixels one by one, mirrors or rotates the
image, and where sizes are known. Filters, such as a blur, are not counted, nor is a mirroring before a crop at a
fixed place, and for a resize not the conversion of stored integers to float.

## Sources

- [Data augmentation](https://www.tensorflow.org/tutorials/images/data_augmentation)
- [Better performance with the tf.data API: reducing memory footprint](https://www.tensorflow.org/guide/data_performance#reducing_memory_footprint)
- [tf.data.Dataset.shuffle](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#shuffle)
- [tf.data.Dataset.cache](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#cache)
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.facts.run.passes import kind_of
from tfdoctor.facts.run.program import Dataset, DatasetParameters
from tfdoctor.rules.late_shrink import full_size_finding
from tfdoctor.rules.late_shrink.buffers import Buffer, Buffers
from tfdoctor.rules.late_shrink.full_size_work import FullSizeOperation, FullSizeWork, LateShrinking
from tfdoctor.terms.humanize import counted, quantity
from tfdoctor.terms.units import count, ms, nbytes
from tfdoctor.terms.verdict import (
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Table,
    Verdict,
)

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = (
    "in the other order the images differ slightly, or the later stages get other elements, so the accuracy has to "
    "be compared"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Which buffers are reported, and when as a warning."""

    spared_bytes: float = limit(
        2.0**28,
        "Memory in bytes that moving a buffer must save; smaller savings are negligible: TensorFlow itself "
        "takes 400 to 500 MB",
    )
    times: float = limit(
        2.0,
        "Factor by which elements must be larger in the buffer than elsewhere; with a smaller factor, changing "
        "the order is not worth the effort",
        least=1.0,
    )
    stalled: float = share_limit(
        0.02,
        "Smallest share of time with a task waiting for memory that makes the finding a warning; a machine "
        "with enough memory has 0",
    )
    pixels: float = limit(
        2.0,
        "Factor by which an image must have more pixels before it is made smaller than after it; random crops that "
        "only shift an image take less than a half away",
        least=1.0,
    )
    share: float = share_limit(
        0.2,
        "Smallest share of the work of a stage that the step waits for; below it, other work limits the stage, as "
        "in oversized-decode",
    )
    taken: float = share_limit(
        0.2,
        "Smallest share of the step that this work takes from the compute, on a CPU run that does not wait for "
        "input; as in oversized-decode",
    )


def check(
    buffers: Buffers | Unavailable,
    work: FullSizeWork | Unavailable,
    memory: HostMemory | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare work and buffers with what they would be where the elements are small."""
    held = _of_buffers(buffers, memory, limits)
    if isinstance(work, Unavailable):
        return held
    late = [one for one in work.shrinkings if one.kept * limits.pixels <= 1.0]
    costly = [one for one in late if work.matters(one, limits.share, limits.taken)]
    if costly:
        return full_size_finding.finding(costly, work.contention, held, limits.pixels)
    if late and isinstance(held, Healthy):
        spared = sum(one.spared_ms for one in late)
        return replace(held, evidence=(*held.evidence, Measure(full_size_finding.DROPPED, ms(spared))))
    return held


def _of_buffers(buffers: Buffers | Unavailable, memory: HostMemory | None, limits: Limits) -> Verdict:
    """Compare what each buffer holds with what it would hold on the other side of a map."""
    if isinstance(buffers, Unavailable):
        return NotApplicable(reason=str(buffers))
    moved = [buffer for buffer in buffers.known if buffer.by is not None]
    large = [buffer for buffer in moved if buffer.each >= limits.times * buffer.least]
    late = [buffer for buffer in large if buffer.spared >= limits.spared_bytes]
    if late:
        return _finding(late, memory, limits)
    if buffers.unknown:
        kinds = ", ".join(kind_of(dataset).lower() for dataset in buffers.unknown)
        return NotApplicable(
            reason=f"the memory that the {kinds} of the pipeline takes is unknown: the shapes or the number of "
            "its elements are not fixed, or they hold text"
        )
    return Healthy(summary=_memory_in_use(buffers))


def _memory_in_use(buffers: Buffers) -> str:
    if not buffers.known:
        return "No shuffle, cache or large prefetch buffer takes memory of its own"
    number = counted(len(buffers.known), "buffer").capitalize()
    verb = "takes" if len(buffers.known) == 1 else "take"
    held = sum(buffer.nbytes for buffer in buffers.known)
    return f"{number} of the pipeline {verb} at most {quantity(nbytes(held))}"


def _finding(late: list[Buffer], memory: HostMemory | None, limits: Limits) -> Finding:
    largest = max(late, key=lambda buffer: buffer.spared)
    held, left = nbytes(largest.nbytes), nbytes(largest.nbytes - largest.spared)
    stalls = memory is not None and (memory.stalled or 0.0) >= limits.stalled
    table = Table.of(
        late,
        ("buffer", lambda buffer: buffer.name),
        ("your line", lambda buffer: buffer.dataset.at),
        ("elements", lambda buffer: count(buffer.elements)),
        ("bytes per element", lambda buffer: nbytes(buffer.each)),
        ("memory", lambda buffer: nbytes(buffer.nbytes)),
        ("memory after moving", lambda buffer: nbytes(buffer.nbytes - buffer.spared)),
        ("new position", lambda buffer: buffer.place),
    )
    return Finding(
        summary=f"{largest.name} holds {quantity(held)}; {largest.place} the same elements take {quantity(left)}",
        evidence=(*_measures(largest, memory, limits), table),
        remedies=tuple(_remedy(buffer) for buffer in late),
        severity=Severity.WARNING if stalls else Severity.NOTE,
    )


def _measures(buffer: Buffer, memory: HostMemory | None, limits: Limits) -> Iterator[Measure]:
    spared = nbytes(buffer.spared), nbytes(limits.spared_bytes)
    yield Measure("memory saved by moving the buffer", *spared)
    if memory is not None:
        yield Measure.share("share of host memory in the full buffer", buffer.nbytes / memory.total)
    if memory is not None and memory.stalled is not None:
        label = "share of time in which a task waits for memory"
        yield Measure.share(label, memory.stalled, limits.stalled)


def _remedy(buffer: Buffer) -> Remedy:
    function = buffer.function or "function"
    mapped = f"dataset = dataset.map({function}, num_parallel_calls=tf.data.AUTOTUNE)"
    kept = f"dataset = dataset.{buffer.name}"
    first, second = (kept, mapped) if buffer.grows else (mapped, kept)
    return Remedy(f"Move {buffer.name} {buffer.place}", f"{first}\n{second}", buffer.dataset.at)


def example(
    elements: int = 10_000,
    each: int = 602_112,
    least: int = 1024,
    *,
    grows: bool = True,
    unknown: tuple[Dataset, ...] = (),
    memory: HostMemory | None = None,
) -> Verdict:
    """A shuffle buffer holds 10,000 images that a map reads and decodes before it."""
    size = DatasetParameters(buffer_size=elements)
    shuffle = Dataset.of("Shuffle", id=1, parameters=size, at=Location("train.py", 9))
    decode = Dataset.of("ParallelMap", function="decode")
    held = Buffer(dataset=shuffle, elements=elements, each=each, least=least, by=decode, grows=grows)
    return check(Buffers((held,), unknown), FullSizeWork(), memory)


def order(
    large: tuple[int, int] = (224, 224),
    small: tuple[int, int] = (64, 64),
    spent: float = 24.0,
    *,
    kind: str = "ResizeBilinear",
    waits: bool = True,
    contention: CpuContention | None = None,
) -> Verdict:
    """Images are flipped and saturated at 224 by 224 pixels, and resized to 64 by 64 after that."""
    made = Dataset.of("ParallelMap", function="augment", at=Location("train.py", 31))
    stage = StageTime.of("Root::Prefetch::ParallelMapV2", 30.0, 2, dataset=made)
    work = FullSizeOperation(stage, "adjust", "AdjustSaturation", spent, Location("train.py", 21))
    late = LateShrinking(kind, large, small, (work,), Location("train.py", 26))
    awaited = frozenset((stage.path,)) if waits else frozenset()
    return check(Buffers(()), FullSizeWork((late,), awaited, contention, 25.0), None)


sick = order


def healthy() -> Verdict:
    """The same work is done on images that are hardly larger."""
    return order((72, 72))
