from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.step_parts import Broadcast, Broadcasts
from tfdoctor.rules.broadcast_cost.expanded_products import ExpandedProduct, ExpandedProducts

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
BY_HAND = "the shapes that broadcast have to be chosen in the model"


@dataclass(frozen=True, slots=True)
class Limits:
    times: float = limit(4.0)
    expansion: float = limit(16.0)
    share: float = share_limit(0.02)


def check(
    broadcasts: Broadcasts,
    operations: Operations,
    dataflow: Dataflow | None,
    hardware: Hardware | None,
    products: ExpandedProducts | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Add up the time of repetitions that broadcasting makes unnecessary, and of expanded tensors."""
    repetitions = [repeat for repeat in broadcasts.rows if repeat.times >= limits.times]
    on_cpu = hardware is not None and hardware.kind == DeviceKind.CPU
    if repetitions:
        repeated = _repeated(repetitions, operations, dataflow, limits, on_cpu=on_cpu)
    else:
        healthy = "No small tensor is repeated in memory for an elementwise operation"
        repeated = nothing(healthy, operations.why_unnamed)
    expanded = _expanded(products.rows if products else (), operations, limits)
    if not isinstance(expanded, Finding):
        return repeated
    return expanded.joined(repeated) if isinstance(repeated, Finding) else expanded


def _expanded(products: Iterable[ExpandedProduct], operations: Operations, limits: Limits) -> Verdict:
    """Judge the expanded tensors that a matmul avoids."""
    large = [one for one in products if one.times >= limits.expansion]
    rows = {row.name: row for one in large for row in one.rows}
    part = operations.part(sum(row.ms for row in rows.values()))
    first_of_line = {one.at: one for one in reversed(large)}.values()
    table = Table.of(
        large,
        ("operation", lambda one: one.row.type),
        ("your line", lambda one: one.at),
        ("expanded to", lambda one: " x ".join(map(str, one.shape))),
        ("times its operands and sums", lambda one: count(one.times)),
        ("time per step", lambda one: ms(one.ms)),
    )
    return spared(
        part,
        limits.share,
        "in operations on expanded tensors",
        [(row, 0.0) for row in rows.values()],
        finding=f"Tensors that are only summed are expanded by broadcasting: {milliseconds(part.ms)} per step",
        remedies=map(_product, first_of_line),
        shown=[table],
        bound=Bound.AT_MOST,
        alike=len(first_of_line) - 1,
    )


def _product(one: ExpandedProduct) -> Remedy:
    if one.is_distance:
        return Remedy("Compute squared distances with a matmul", CODE["distances"], one.at)
    if one.weighted:
        return Remedy("Sum the weighted differences with tf.einsum", CODE["weighted"], one.at)
    return Remedy("Sum the products with tf.einsum", CODE["einsum"], one.at)


def _repeated(
    repetitions: list[Broadcast], operations: Operations, dataflow: Dataflow | None, limits: Limits, *, on_cpu: bool
) -> Verdict:
    """Judge the repetitions: on a CPU broadcasting takes as long, and only computing for each copy counts."""
    repeating_ms = sum(repeat.ms for repeat in repetitions)
    recomputing_ms = sum(repeat.chain_ms for repeat in repetitions)
    share = ((0.0 if on_cpu else repeating_ms) + recomputing_ms) / operations.total_ms
    repeating, same = f"takes {milliseconds(repeating_ms)} per step", "omputing the same values for each copy"
    summary = f"Repeating small tensors in memory {repeating}"
    if not repeating_ms:
        summary = f"C{same} of a tensor takes {milliseconds(recomputing_ms)} per step"
    elif recomputing_ms:
        summary = f"{summary}, c{same} {milliseconds(recomputing_ms)}"
    measures = (
        Measure("time repeating small tensors per step", ms(repeating_ms)),
        Measure("time computing repeated values per step", ms(recomputing_ms)),
        Measure.share("share of the compute time in avoidable repetition", share, limits.share),
    )
    if share < limits.share:
        why = "; broadcasting takes about as long on a CPU" if on_cpu else ""
        return Healthy(summary=f"{summary}{why}", evidence=measures)
    at = next((repeat.row.at for repeat in repetitions if repeat.row.at), None)
    remedies = [Remedy("Move the activation before the repetition", CODE["before"], at)] if recomputing_ms else []
    if repeating_ms and not on_cpu:
        remedies.append(Remedy("Remove the repetition and let the operation broadcast", CODE["broadcast"], at))
    table = Table.of(
        repetitions,
        ("operation", lambda repeat: repeat.row.layer or repeat.row.name),
        ("your line", lambda repeat: repeat.row.at),
        ("copies", lambda repeat: count(repeat.times)),
        ("time per step", lambda repeat: ms(repeat.ms + repeat.chain_ms)),
    )
    effects = (one for repeat in repetitions for one in _effects(repeat, operations, dataflow, on_cpu=on_cpu))
    return Finding(summary=summary, evidence=(*measures, table), remedies=tuple(remedies), effects=tuple(effects))


def _effects(
    repeat: Broadcast, operations: Operations, dataflow: Dataflow | None, *, on_cpu: bool
) -> Iterator[Effect]:
    """Yield what is computed once; but on a CPU also the repetitions, and what reads the small tensor then."""
    for row in repeat.chain:
        yield replace(row.scaled(1.0 / repeat.times, Bound.AT_MOST), narrows=True)
    if on_cpu:
        return
    yield from (row.scaled(0.0, Bound.AT_MOST) for row in repeat.rows)
    # ``nbytes`` counts what the repetition reads and writes: this is the written part.
    written_bytes = (repeat.row.nbytes or 0.0) * repeat.times / (repeat.times + 1)
    users = dataflow.consumers.get(repeat.row.name, ()) if dataflow else ()
    names = {user.name for user in users} - {row.name for row in (*repeat.rows, *repeat.chain)}
    for row in operations.rows:
        if row.name in names and row.nbytes and written_bytes:
            yield row.scaled(max(0.0, 1.0 - written_bytes / row.nbytes), Bound.AT_MOST)
