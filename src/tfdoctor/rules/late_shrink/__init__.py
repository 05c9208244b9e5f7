from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.facts.run.passes import kind_of
from tfdoctor.rules.late_shrink import full_size_finding
from tfdoctor.rules.late_shrink.buffers import Buffer, Buffers
from tfdoctor.rules.late_shrink.full_size_work import FullSizeWork
from tfdoctor.terms.humanize import quantity

__doc__, CODE = page(__file__)

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
