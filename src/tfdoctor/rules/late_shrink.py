"""A buffer holds elements that are much smaller before it, or behind it.

## What it checks

What `shuffle`, `cache` and large `prefetch` buffers hold when they are full (the bytes of an element, as its
`element_spec` tells, times the number of elements), and whether a neighbouring `map` makes the elements
larger before the buffer (decoding, one-hot codes, a cast to float) or smaller behind it (resizing,
cropping, a cast to `uint8`).

## Why it matters

The host's memory. A full shuffle buffer of 10,000 float images of 224 by 224 is 6 GB; of their file names, it is
a megabyte. What the buffers take is not there for the files' cache and for other programs, and filling a
shuffle buffer delays the first batch of every epoch.

## How to fix

Put the buffer where the elements are small: shuffle file names or records, then read and decode them; resize
before the cache, cast and encode behind it. For the order of a `shuffle` it makes no difference which side of a
`map` it stands on. Two things must stay: what is random stays behind a `cache`, and a `shuffle` stays
behind it too, or every epoch has the same order.

## Holds for

All versions of TensorFlow 2, in recordings of `tfdoctor profile`. A buffer right behind what lies in memory
anyway (arrays that `from_tensor_slices` was given, or a cache) does not count: it mostly holds references. The
size of encoded texts and images is not known, so it is never said that they are smaller; names of files
are.
It is a matter of memory: no time is promised.

## Sources

- [Better performance with the tf.data API: reducing memory footprint](https://www.tensorflow.org/guide/data_performance#reducing_memory_footprint)
- [tf.data.Dataset.shuffle](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#shuffle)
- [tf.data.Dataset.cache](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#cache)
"""

from dataclasses import dataclass

from tfdoctor.facts.input.buffers import Buffer, Buffers
from tfdoctor.facts.input.dataset_properties import kind_of
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.facts.run.program import Dataset, DatasetParameters
from tfdoctor.humanize import counted, quantity
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, nbytes, ratio
from tfdoctor.verdict import (
    Evidence,
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


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    spared_bytes: float = limit(
        2.0**28,
        "bytes that a buffer would not hold elsewhere: less is little beside TensorFlow itself, which "
        "takes 400 to 500 MB",
    )
    times: float = limit(
        2.0,
        "times as large as elsewhere that an element is: for less, nobody need change the order",
        least=1.0,
    )
    stalled: float = limit(
        0.02,
        "of the time with a task that waits for memory, from which on it is a warning: a machine with "
        "room for all has 0",
        most=1.0,
    )


LIMITS = Limits()


def check(buffers: Buffers, memory: HostMemory | None, limits: Limits = LIMITS) -> Verdict:
    """Compare what each buffer holds with what it would hold on the other side of a map."""
    late = [one for one in buffers.known if _late(one, limits)]
    held = sum(one.nbytes for one in buffers.known)
    if not late and buffers.unknown:
        names = ", ".join(kind_of(one).lower() for one in buffers.unknown)
        return NotApplicable(
            reason=f"how much the {names} of the pipeline holds is not known: the shapes or the number of its "
            "elements are open, or they hold text"
        )
    if not late:
        return Healthy(summary=_fine(buffers, held))
    most = max(late, key=lambda one: one.spared)
    stalls = memory is not None and (memory.stalled or 0.0) >= limits.stalled
    return Finding(
        summary=f"{_name(most)} holds {quantity(nbytes(most.nbytes))}; {_place(most)} the same elements "
        f"are {quantity(nbytes(most.nbytes - most.spared))}",
        evidence=(*_measures(most, memory, limits), _table(late)),
        remedies=tuple(_remedy(one) for one in late),
        severity=Severity.WARNING if stalls else Severity.NOTE,
    )


def _late(buffer: Buffer, limits: Limits) -> bool:
    large = buffer.each >= limits.times * buffer.least
    return buffer.by is not None and large and buffer.spared >= limits.spared_bytes


def _fine(buffers: Buffers, held: int) -> str:
    if not buffers.known:
        return "No shuffle, cache or large prefetch keeps elements that it does not share with what made them"
    holds = counted(len(buffers.known), "buffer").capitalize()
    verb = "holds" if len(buffers.known) == 1 else "hold"
    return f"{holds} of the pipeline {verb} {quantity(nbytes(held))} at most"


def _name(buffer: Buffer) -> str:
    kind = kind_of(buffer.dataset).lower()
    return "cache()" if kind == "cache" else f"{kind}({buffer.dataset.parameters.buffer_size})"


def _stage(dataset: Dataset | None) -> str:
    name = dataset.function if dataset else ""
    return name if name.isidentifier() else "the map"


def _place(buffer: Buffer) -> str:
    return f"{'before' if buffer.grows else 'after'} {_stage(buffer.by)}"


def _measures(most: Buffer, memory: HostMemory | None, limits: Limits) -> tuple[Evidence, ...]:
    spared = nbytes(most.spared), nbytes(limits.spared_bytes)
    found: list[Evidence] = [Measure("that it would not hold elsewhere", *spared)]
    if memory is not None:
        found.append(
            Measure("of the host's memory in it, when full", ratio(most.nbytes / memory.total))
        )
    if memory is not None and memory.stalled is not None:
        label = "of the time with a task that waits for memory"
        found.append(Measure(label, ratio(memory.stalled), ratio(limits.stalled)))
    return tuple(found)


def _table(late: list[Buffer]) -> Table:
    columns = ("buffer", "your line", "elements", "bytes of each", "holds", "elsewhere", "where")
    return Table(
        columns,
        tuple(
            (
                _name(one),
                one.dataset.at or "unknown",
                count(one.elements),
                nbytes(one.each),
                nbytes(one.nbytes),
                nbytes(one.nbytes - one.spared),
                _place(one),
            )
            for one in late
        ),
    )


def _remedy(buffer: Buffer) -> Remedy:
    name, stage = _name(buffer), _stage(buffer.by)
    function = "function" if stage == "the map" else stage
    mapped = f"dataset = dataset.map({function}, num_parallel_calls=tf.data.AUTOTUNE)"
    kept = f"dataset = dataset.{name}"
    first, then = (kept, mapped) if buffer.grows else (mapped, kept)
    side = "before" if buffer.grows else "behind"
    return Remedy(f"Put {name} {side} {stage}", f"{first}\n{then}", buffer.dataset.at)


def sick() -> Verdict:
    """A shuffle of 10,000 images that a map read and decoded before."""
    return check(Buffers((_images(grows=True),)), None)


def healthy() -> Verdict:
    """The same shuffle, of file names."""
    names = Dataset(id=1, kind="_ShuffleDataset", parameters=DatasetParameters(buffer_size=10_000))
    return check(Buffers((Buffer(dataset=names, elements=10_000, each=100, least=100),)), None)


def _images(*, grows: bool) -> Buffer:
    shuffle = Dataset(
        id=1,
        kind="_ShuffleDataset",
        parameters=DatasetParameters(buffer_size=10_000),
        at=Location("train.py", 9),
    )
    decode = Dataset(id=0, kind="_ParallelMapDataset", function="decode")
    return Buffer(
        dataset=shuffle, elements=10_000, each=602_112, least=1024, by=decode, grows=grows
    )
