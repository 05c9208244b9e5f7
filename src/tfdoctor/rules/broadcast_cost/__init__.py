from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.broadcasts import Broadcast, Broadcasts
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.rules.broadcast_cost.expanded_products import ExpandedProduct, ExpandedProducts

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
BY_HAND = "the shapes that broadcast have to be chosen in the model"


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes and times from which a repetition is reported."""

    times: float = limit(
        4.0,
        "Smallest size of the result relative to the input: below it, reading the input instead hardly saves "
        "memory traffic",
    )
    expansion: float = limit(
        16.0,
        "Smallest size of an expanded tensor relative to its operands and its sums: a matmul with its corrections "
        "writes about ten tensors of the size of the sums, forward and backward",
    )
    share: float = share_limit(
        0.02,
        "Smallest share of the compute time in repetitions, or in expanded tensors, and their gradients that is "
        "reported",
    )


def check(
    broadcasts: Broadcasts,
    operations: Operations,
    dataflow: Dataflow | None,
    hardware: Hardware | None,
    products: ExpandedProducts | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Add up the time of repetitions that broadcasting makes unnecessary, and of expanded tensors."""
    expanded = _expanded(products.rows if products else (), operations, limits)
    repetitions = tuple(repeat for repeat in broadcasts.rows if repeat.times >= limits.times)
    on_cpu = hardware is not None and hardware.kind == DeviceKind.CPU
    repeated = _repeated(Cost(repetitions, operations, dataflow, on_cpu), limits)
    if expanded is None:
        return repeated
    return expanded.joined(repeated) if isinstance(repeated, Finding) else expanded


def _expanded(products: Iterable[ExpandedProduct], operations: Operations, limits: Limits) -> Finding | None:
    """Return the expanded tensors that a matmul avoids, where they take long enough."""
    large = [one for one in products if one.times >= limits.expansion]
    rows = {row.name: row for one in large for row in one.rows}
    total_ms = sum(row.ms for row in rows.values())
    share = total_ms / operations.total_ms if rows else 0.0
    if share < limits.share:
        return None
    first_of_line = {one.at: one for one in reversed(large)}.values()
    return Finding(
        summary=f"Tensors that are only summed are expanded by broadcasting: {milliseconds(total_ms)} per step",
        evidence=(
            Measure("time in operations on expanded tensors per step", ms(total_ms)),
            Measure.share("share of the compute time in expanded tensors", share, limits.share),
            Table.of(
                large,
                ("operation", lambda one: one.row.type),
                ("your line", lambda one: one.at),
                ("expanded to", lambda one: " x ".join(map(str, one.shape))),
                ("times its operands and sums", lambda one: count(one.times)),
                ("time per step", lambda one: ms(one.ms)),
            ),
        ),
        remedies=tuple(_product(one) for one in first_of_line),
        effects=tuple(row.scaled(0.0, Bound.AT_MOST) for row in rows.values()),
        alike=len(first_of_line) - 1,
    )


def _product(one: ExpandedProduct) -> Remedy:
    if one.is_distance:
        return Remedy("Compute squared distances with a matmul", CODE["distances"], one.at)
    if one.weighted:
        return Remedy("Sum the weighted differences with tf.einsum", CODE["weighted"], one.at)
    return Remedy("Sum the products with tf.einsum", EINSUM, one.at)


@dataclass(frozen=True, slots=True)
class Cost:
    """What the repetitions of a step take."""

    repetitions: tuple[Broadcast, ...]
    operations: Operations
    dataflow: Dataflow | None
    on_cpu: bool  # where broadcasting takes as long as repeating

    @property
    def repeating_ms(self) -> float:
        """The time of the repetitions per step."""
        return sum(repeat.ms for repeat in self.repetitions)

    @property
    def recomputing_ms(self) -> float:
        """The time per step of computing the same values for each copy."""
        return sum(repeat.chain_ms for repeat in self.repetitions)

    @property
    def share(self) -> float:
        """The part of the compute time that can be avoided on this device."""
        repeating_ms = 0.0 if self.on_cpu else self.repeating_ms
        return (repeating_ms + self.recomputing_ms) / self.operations.total_ms

    @property
    def summary(self) -> str:
        """One sentence without full stop."""
        recomputing = milliseconds(self.recomputing_ms)
        if not self.repeating_ms:
            return f"Computing the same values for each copy of a tensor takes {recomputing} per step"
        repeating = milliseconds(self.repeating_ms)
        summary = f"Repeating small tensors in memory takes {repeating} per step"
        if not self.recomputing_ms:
            return summary
        return f"{summary}, computing the same values for each copy {recomputing}"

    @property
    def remedies(self) -> Iterator[Remedy]:
        """What to change, at the first known line."""
        at = next((repeat.row.at for repeat in self.repetitions if repeat.row.at), None)
        if self.recomputing_ms:
            yield Remedy("Move the activation before the repetition", BEFORE, at)
        if self.repeating_ms and not self.on_cpu:
            yield Remedy("Remove the repetition and let the operation broadcast", BROADCAST, at)

    @property
    def effects(self) -> Iterator[Effect]:
        """Computing the values once; and not on a CPU, leaving out the repetitions."""
        for repeat in self.repetitions:
            for row in repeat.chain:
                scaled = row.scaled(1.0 / repeat.times, Bound.AT_MOST)
                yield replace(scaled, narrows=True)
            if not self.on_cpu:
                yield from (row.scaled(0.0, Bound.AT_MOST) for row in repeat.rows)
                yield from self._reader_effects(repeat)

    def _reader_effects(self, repeat: Broadcast) -> Iterator[Effect]:
        """Yield what operations gain, forward and backward, by reading the small tensor instead."""
        # ``nbytes`` counts what the repetition reads and writes: this is the written part.
        written_bytes = (repeat.row.nbytes or 0.0) * repeat.times / (repeat.times + 1)
        users = self.dataflow.consumers.get(repeat.row.name, ()) if self.dataflow else ()
        names = {user.name for user in users} - {row.name for row in (*repeat.rows, *repeat.chain)}
        for row in self.operations.rows:
            if row.name in names and row.nbytes and written_bytes:
                remaining = max(0.0, 1.0 - written_bytes / row.nbytes)
                yield row.scaled(remaining, Bound.AT_MOST)


def _repeated(cost: Cost, limits: Limits) -> Verdict:
    if not cost.repetitions and cost.operations.why_unnamed:
        return NotApplicable(reason=cost.operations.why_unnamed)
    if not cost.repetitions:
        return Healthy(summary="No small tensor is repeated in memory for an elementwise operation")
    label = "share of the compute time in avoidable repetition"
    measures = (
        Measure("time repeating small tensors per step", ms(cost.repeating_ms)),
        Measure("time computing repeated values per step", ms(cost.recomputing_ms)),
        Measure.share(label, cost.share, limits.share),
    )
    if cost.share < limits.share:
        why = "; broadcasting takes about as long on a CPU" if cost.on_cpu else ""
        return Healthy(summary=f"{cost.summary}{why}", evidence=measures)
    table = Table.of(
        cost.repetitions,
        ("operation", lambda repeat: repeat.row.layer or repeat.row.name),
        ("your line", lambda repeat: repeat.row.at),
        ("copies", lambda repeat: count(repeat.times)),
        ("time per step", lambda repeat: ms(repeat.ms + repeat.chain_ms)),
    )
    return Finding(
        summary=cost.summary,
        evidence=(*measures, table),
        remedies=tuple(cost.remedies),
        effects=tuple(cost.effects),
    )


EINSUM = """\
sums = tf.einsum("nd,md->nm", a, b)  # instead of tf.reduce_sum(a[:, None] * b[None, :], axis=-1)"""

BROADCAST = """\
y = x * weights[:, None, :]  # instead of x * tf.tile(weights[:, None, :], (1, length, 1))"""

BEFORE = """\
gate = tf.sigmoid(gate)  # before tf.tile or tf.broadcast_to, not after it"""
