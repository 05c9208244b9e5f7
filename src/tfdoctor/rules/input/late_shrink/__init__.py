from tfdoctor.families.kit import *
from tfdoctor.rules.input.late_shrink.full_size_work import CROPS, FullSizeWork

__doc__, CODE = page(__file__)


# Kinds that pass on each element as one, so that a buffer may move past them.
ONE_TO_ONE = frozenset(
    ("Map", "ParallelMap", "Shuffle", "Prefetch", "Options", "Repeat", "Take", "Skip", "Shard", "Filter")
)  # fmt: skip
# Kinds whose elements are in memory already: a buffer holds references to them.
SHARED = frozenset(("TensorSlice", "Tensor", "Range", "Cache"))
# Types of operations that are not worth caching: they cost as much as reading the element.
CHEAP = frozenset(
    ("Cast", "Placeholder", "Const", "Identity", "NoOp", "Mul", "RealDiv", "Sub", "AddV2", "OneHot", "ExpandDims")
)  # fmt: skip
PATH_BYTES = 1024  # An upper bound for the size of a file's path


class Buffer(Record, kw_only=True):
    """A buffer of ``elements`` with ``each`` bytes, and ``least`` bytes where they are smallest.

    ``by`` is the stage that changes their size; None where they are nowhere smaller.
    """

    dataset: Dataset
    elements: int
    each: int
    least: int
    by: Dataset | None = None
    grows: bool = False  # the stage enlarges them before the buffer, else it shrinks them after it

    @property
    def nbytes(self) -> int:
        """The bytes of the full buffer."""
        return self.elements * self.each

    @property
    def spared(self) -> int:
        """The bytes saved by moving the buffer to the other side of the stage."""
        return self.elements * (self.each - self.least)

    @property
    def name(self) -> str:
        """The call that makes it."""
        kind = kind_of(self.dataset).lower()
        return "cache()" if kind == "cache" else f"{kind}({self.dataset.parameters.buffer_size})"

    @property
    def function(self) -> str:
        """The name of the stage's function; "" for a lambda."""
        return self.by.function if self.by and self.by.function.isidentifier() else ""

    @property
    def place(self) -> str:
        """Where it holds less."""
        return f"{'before' if self.grows else 'after'} {self.function or 'the map'}"

    @property
    def remedy(self) -> Remedy:
        """The change that moves it there."""
        mapped = f"dataset = dataset.map({self.function or 'function'}, num_parallel_calls=tf.data.AUTOTUNE)"
        kept = f"dataset = dataset.{self.name}"
        code = f"{kept}\n{mapped}" if self.grows else f"{mapped}\n{kept}"
        return Remedy(f"Move {self.name} {self.place}", code, self.dataset.at)


class Buffers(Record):
    """The buffers of the feeding pipeline whose size is known, and the datasets whose buffer size is unknown."""

    known: tuple[Buffer, ...]
    unknown: tuple[Dataset, ...] = ()

    @classmethod
    def measure(cls, properties: DatasetProperties) -> Self:
        """Examine each shuffle, cache and prefetch from the trainer to the source, or to where sources meet."""
        line = properties.line()
        known, unknown = [], []
        for at, dataset in enumerate(line):
            caches, size = kind_of(dataset) == "Cache", dataset.parameters.buffer_size or 0
            if not caches and (kind_of(dataset) not in {"Shuffle", "Prefetch"} or size <= 1):
                continue
            # Whether elements are created for the buffer, not references to existing memory.
            makes = (one for one in line[at + 1 :] if one.function or kind_of(one) not in ONE_TO_ONE)
            maker = next(makes, None)
            if maker is None or (kind_of(maker) in SHARED and not maker.function):
                continue
            there, each = dataset.cardinality, properties.element_bytes(dataset)
            elements = size if there is None or there < 0 else min(size, there)
            held = properties.elements(dataset) if caches else elements
            if held is None or each is None:
                unknown.append(dataset)
                continue
            places = [(each, None, False), *_places(line, at, properties)]
            least, by, grows = min(places, key=lambda place: place[0])
            known.append(Buffer(dataset=dataset, elements=held, each=each, least=least, by=by, grows=grows))
        return cls(tuple(known), tuple(unknown))


# The bytes of an element there, the stage that changes them, and whether that enlarges them.
Target = tuple[int, Dataset | None, bool]


def _places(line: tuple[Dataset, ...], at: int, properties: DatasetProperties) -> Iterator[Target]:
    """Yield each place before an upstream stage, then each after a downstream stage, that the buffer may move to.

    A shuffle before a cache would fix one order, and a cache before an expensive function would repeat the
    function in every epoch, behind random stages their draws would be the same in each. A prefetch belongs at the
    end.
    """
    kind = kind_of(line[at])
    upstream = () if kind == "Prefetch" else zip(line[at + 1 :], line[at + 2 :], strict=False)
    for stage, source in upstream:
        expensive = stage.function and not (stage.types is not None and stage.types <= CHEAP)
        if kind_of(stage) not in ONE_TO_ONE or (kind == "Cache" and expensive):
            break
        size = properties.element_bytes(source)
        if size is None and stage.types and "ReadFile" in stage.types:
            size = PATH_BYTES
        if size is not None and stage.function:
            yield size, stage, True
    for stage in reversed(line[:at]):
        if kind_of(stage) not in ONE_TO_ONE or (kind == "Cache" and not repeatable(stage)):
            break
        size = properties.element_bytes(stage)
        if size is not None and stage.function:
            yield size, stage, False


class Limits(RuleLimits):
    spared_bytes: float = limit(2.0**28)
    times: float = limit(2.0, least=1.0)
    stalled: float = share_limit(0.02)
    pixels: float = limit(2.0, least=1.0)
    share: float = share_limit(0.2)
    taken: float = share_limit(0.2)


def check(
    buffers: Buffers | Unavailable, work: FullSizeWork | Unavailable, memory: HostMemory | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare work and buffers with what they would be where the elements are small."""
    held = _of_buffers(buffers, memory, limits)
    if isinstance(work, Unavailable):
        return held
    late = [one for one in work.shrinkings if one.kept * limits.pixels <= 1.0]
    costly = [one for one in late if work.matters(one, limits.share, limits.taken)]
    if not costly:
        if not late or not isinstance(held, Healthy):
            return held
        measure = Measure(DROPPED, ms(sum(one.spared_ms for one in late)))
        said = f"{held.summary}; {milliseconds(measure.value.value)} are {DROPPED}"
        return replace(held, summary=said, evidence=(*held.evidence, measure))
    worst = max(costly, key=lambda one: one.spared_ms)
    spared = sum(one.spared_ms for one in costly)
    rows = [(one, shrinking.kept) for shrinking in costly for one in shrinking.work]
    table = Table.of(
        rows,
        ("operation", lambda row: row[0].type),
        ("your line", lambda row: row[0].at),
        ("stage", lambda row: row[0].stage.title),
        ("time per step", lambda row: ms(row[0].ms)),
        ("time after shrinking", lambda row: ms(row[0].ms * row[1])),
    )
    large, small = (f"{height}x{width}" for height, width in (worst.large, worst.small))
    what = f"Images of {large} pixels are {'cropped' if worst.type in CROPS else 'resized'} to {small} after"
    of_buffers = held if isinstance(held, Finding) else None
    by_stage = [part for one in costly for part in one.by_stage.values()]
    return Finding(
        summary=f"{what} {milliseconds(sum(one.ms for one, _ in rows))} of work per step on full images",
        evidence=(
            Measure(DROPPED, ms(spared)),
            Measure("factor between the numbers of pixels", count(1.0 / worst.kept), count(limits.pixels)),
            table,
            *(of_buffers.evidence if of_buffers else ()),
        ),
        remedies=(*(one.remedy for one in costly), *(of_buffers.remedies if of_buffers else ())),
        effects=(
            *(stage.scaled(max(0.0, 1.0 - gone / stage.work_ms)) for stage, gone in by_stage),
            *(work.contention.relief(spared) if work.contention else ()),
        ),
        alike=len(costly) - 1,
    )


DROPPED = "work on pixels that are dropped later, per step"


def _of_buffers(buffers: Buffers | Unavailable, memory: HostMemory | None, limits: Limits) -> Verdict:
    """Compare what each buffer holds with what it would hold on the other side of a map."""
    if isinstance(buffers, Unavailable):
        return NotApplicable(reason=str(buffers))
    known = buffers.known
    large = [one for one in known if one.by is not None and one.each >= limits.times * one.least]
    late = [buffer for buffer in large if buffer.spared >= limits.spared_bytes]
    if not late:
        kinds = ", ".join(kind_of(dataset).lower() for dataset in buffers.unknown)
        why = "the shapes or the number of its elements are not fixed, or they hold text"
        unknown = f"the memory that the {kinds} of the pipeline takes is unknown: {why}" if kinds else ""
        take = f"of the pipeline {'takes' if len(known) == 1 else 'take'} at most"
        most = quantity(nbytes(sum(buffer.nbytes for buffer in known)))
        spares = "another place would spare too little of it"
        healthy = f"{counted(len(known), 'buffer').capitalize()} {take} {most}; {spares}"
        none = "No shuffle, cache or large prefetch buffer takes memory of its own"
        return nothing(healthy if known else none, unknown)
    largest = max(late, key=lambda buffer: buffer.spared)
    held, left = nbytes(largest.nbytes), nbytes(largest.nbytes - largest.spared)
    measures = [Measure("memory saved by moving the buffer", nbytes(largest.spared), nbytes(limits.spared_bytes))]
    if memory is not None:
        share = largest.nbytes / memory.total
        measures.append(Measure.share("share of host memory in the full buffer", share))
    stalled = memory.stalled if memory else None
    if stalled is not None:
        label = "share of time in which a task waits for memory"
        measures.append(Measure.share(label, stalled, limits.stalled))
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
        evidence=(*measures, table),
        remedies=tuple(buffer.remedy for buffer in late),
        severity=Severity.WARNING if memory and (stalled or 0.0) >= limits.stalled else Severity.NOTE,
    )
