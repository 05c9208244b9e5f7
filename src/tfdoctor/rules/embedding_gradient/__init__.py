from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.embedding_gradient.embedding_tables import DENSIFIES, ONE_HOT, EmbeddingTables, WholeTable
from tfdoctor.rules.embedding_gradient.table_sums import TableSums

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
ON_TPU = "on a TPU, matmuls with one-hot rows run on the matrix unit and may be faster than lookups"
PRECONDITIONS = (not_on(DeviceKind.TPU, verdict=NotApplicable(reason=ON_TPU)),)
BY_HAND = "the data have to hold numbers of rows instead of one-hot rows"

# The two calls of a lookup, gather and scatter, whatever they move (measured: 0.08 ms on a CPU with two cores, 384
# rows of 32 values, TensorFlow 2.21).
LOOKUP_MS = 0.1
# Passes over the looked-up vectors: gathering reads and writes them, scattering their gradients reads them, and
# reads and writes the table's rows.
LOOKUP_PASSES = 5


@dataclass(frozen=True, slots=True)
class Limits:
    touched: float = limit(0.25)
    update: float = share_limit(0.1)


def check(
    tables: EmbeddingTables,
    operations: Operations,
    hardware: Hardware,
    sums: TableSums | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Price one-hot matmuls at the bytes of a lookup, updates of whole tables at the rows in use."""

    def sparse(
        work: Iterable[WholeTable], least_ms: float = limits.update * operations.total_ms
    ) -> list[WholeTable]:
        few = [one for one in work if one.lookups is not None and one.lookups <= limits.touched * one.entries]
        return few if sum(one.ms for one in few) >= least_ms else []

    summed = sparse(sums.tables if sums else ())
    named = {row.name for one in summed for row in (*one.rows, *one.update)}  # which explains these updates
    apart = [replace(one, rows=tuple(row for row in one.rows if row.name not in named)) for one in tables.dense]
    updates = sparse(one for one in apart if any(row.type == DENSIFIES for row in one.rows))
    kinds = {"one-hot matmuls": tables.one_hot, "optimizer updates": updates, "penalties and sums": summed}
    found = [table for used in kinds.values() for table in used]
    if not found:
        return nothing(_healthy(tables, sparse(tables.dense, 0.0), limits), operations.why_unnamed, tables.unseen)
    total_ms = sum(one.ms for one in found)
    names = " and ".join(name for name, used in kinds.items() if used).capitalize()
    shown = Table.of(
        found,
        ("layer", lambda one: one.name),
        ("your line", lambda one: one.at),
        ("operation", lambda one: one.use),
        ("table rows", lambda one: count(one.entries)),
        ("rows looked up", lambda one: None if one.lookups is None else count(one.lookups)),
        ("time per step", lambda one: ms(one.ms)),
    )
    lookups = (effect for table in tables.one_hot for effect in _lookup(table, operations, hardware))
    return spared(
        operations.part(total_ms),
        None,
        "processing whole embedding tables",
        (*lookups, *_effects(updates, summed)),
        finding=f"{names} process every row of an embedding table: {milliseconds(total_ms)} per step",
        remedies=_remedies(tables.one_hot, updates, summed),
        shown=[shown],
    )


def _healthy(tables: EmbeddingTables, sparse: list[WholeTable], limits: Limits) -> str:
    if sparse:
        spent = milliseconds(sum(update.ms for update in sparse))
        return f"Whole updates of embedding tables with few rows in use take only {spent} per step"
    if tables.dense:
        in_use = f"more than {percent(limits.touched)} of their rows in use"
        return f"Embedding tables that are updated as a whole have {in_use}"
    if tables.scattered:
        return "The optimizer updates only the embedding rows that were looked up"
    return "No gradient processes a whole embedding table"


def _effects(updates: Iterable[WholeTable], summed: Iterable[WholeTable]) -> Iterator[Effect]:
    """Yield the update of the rows in use; without sums the optimizer updates those alone."""
    for one in updates:
        name = f"{one.name} (rows in use)"
        yield Effect(Stage.DEVICE, one.used, name, ms(one.ms), bound=Bound.AT_MOST)
    for one in summed:
        yield from (row.scaled(0.0, Bound.AT_MOST) for row in one.rows)
        yield from (row.scaled(one.used, Bound.AT_MOST) for row in one.update)


def _lookup(table: WholeTable, operations: Operations, hardware: Hardware) -> Iterator[Effect]:
    """Remove all operations but the shortest one that can stand for the lookup.

    That takes the time of the calls to gather and scatter, and of float32 bytes at the rate that wrote the one-hot
    rows, else at that of this run.
    """
    wrote = [row for row in table.rows if row.type == ONE_HOT and row.nbytes and row.ms]
    seconds = sum(row.ms for row in wrote) * 1e-3
    rate = sum((row.nbytes or 0) * row.calls for row in wrote) / seconds if seconds else operations.streaming_rate
    if hardware.kind != DeviceKind.CPU or table.lookups is None or table.width is None or not rate:
        return (row.scaled(0.0, Bound.AT_MOST) for row in table.rows)
    lookup_ms = LOOKUP_MS + LOOKUP_PASSES * table.lookups * table.width * 4 / rate * 1e3
    longer = [row for row in table.rows if row.ms >= lookup_ms]
    if not longer:
        return (row.scaled(1.0) for row in table.rows)
    stays = min(longer, key=lambda row: row.ms)
    return (row.scaled(lookup_ms / row.ms if row is stays else 0.0) for row in table.rows)


def _remedies(
    one_hot: Iterable[WholeTable], updates: Iterable[WholeTable], summed: Iterable[WholeTable]
) -> Iterator[Remedy]:
    if one_hot:
        yield Remedy(
            "Look up the rows instead of multiplying one-hot rows",
            CODE["look-up"],
            next((table.at for table in one_hot if table.at), None),
            "row-lookup",
            changes="a number outside of the table becomes an error instead of a row of zeros",
        )
    for line in dict.fromkeys(one.at for one in summed):
        yield Remedy(
            "Penalize the looked-up vectors instead of the whole table",
            CODE["penalize"],
            line,
            "row-penalty",
            changes="rows are penalized when they are looked up, so the factor has to be chosen again",
        )
    if updates:
        at = next((update.at for update in updates if update.at), None)
        action = "Train the table with an optimizer that updates only the rows in use"
        yield Remedy(action, CODE["sparse"], at)
