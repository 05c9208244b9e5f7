"""A buffer stores elements larger than necessary.

## What it checks

How much memory full `shuffle`, `cache` and large `prefetch` buffers take (the bytes of an element, by its
`element_spec`, times the number of elements), and whether a neighboring `map` makes the elements larger before
the buffer (decoding, one-hot encoding, a cast to float) or smaller after it (resizing, cropping, a cast to
`uint8`).

## Why it matters

Host memory. A full shuffle buffer of 10,000 float images of 224 by 224 takes 6 GB; a buffer of their file names
takes a megabyte. Memory in these buffers is not available to the page cache and to other programs, and filling
a shuffle buffer delays the first batch of every epoch.

## How to fix

Put the buffer where the elements are small: shuffle file names or records, then read and decode them; resize
before the cache; cast and encode after it. A `shuffle` gives the same order before and after a `map`.
Two constraints remain: random operations stay after a `cache`, and so does `shuffle`, or every epoch has the
same order.

## Holds for

All versions of TensorFlow 2, in recordings of `tfdoctor profile`. A buffer directly after data that is in
memory already (arrays given to `from_tensor_slices`, or a cache) does not count, because it mostly holds
references. The size of encoded text and images is unknown, so they are never reported as smaller; file names
are. This rule is about memory and predicts no time saving.

## Sources

- [Better performance with the tf.data API: reducing memory footprint](https://www.tensorflow.org/guide/data_performance#reducing_memory_footprint)
- [tf.data.Dataset.shuffle](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#shuffle)
- [tf.data.Dataset.cache](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#cache)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.facts.run.passes import kind_of
from tfdoctor.facts.run.program import Dataset, DatasetParameters
from tfdoctor.rules.late_shrink.buffers import Buffer, Buffers
from tfdoctor.terms.humanize import counted, quantity
from tfdoctor.terms.units import count, nbytes
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
    "moving a stage changes which examples the later stages get, unless each example stays the same"
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


def check(buffers: Buffers, memory: HostMemory | None, limits: Limits = Limits()) -> Verdict:
    """Compare what each buffer holds with what it would hold on the other side of a map."""
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
    held = Buffer(
        dataset=shuffle, elements=elements, each=each, least=least, by=decode, grows=grows
    )
    return check(Buffers((held,), unknown), memory)


sick = example


def healthy() -> Verdict:
    """The same shuffle buffer holds file names."""
    return example(each=100, least=100)
