from typing import TypeVar

from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.embedding_gradient.embedding_tables import DENSIFIES, DenseUpdate, EmbeddingTables, OneHotTable
from tfdoctor.rules.embedding_gradient.table_sums import TableSum, TableSums

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
ON_TPU = "on a TPU, matmuls with one-hot rows run on the matrix unit and may be faster than lookups"
PRECONDITIONS = (not_on(DeviceKind.TPU, verdict=NotApplicable(reason=ON_TPU)),)
BY_HAND = "the data have to hold numbers of rows instead of one-hot rows"

LOOKUP_MS = 0.1
"""The two calls of a lookup, gather and scatter, whatever they move (measured: 0.08 ms on a CPU with two cores,
384 rows of 32 values, TensorFlow 2.21)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What makes an update of a whole table worth another optimizer."""

    touched: float = limit(
        0.25,
        "Largest ratio of lookups per step, repetitions included, to rows of the table: above it, updating all "
        "rows takes little longer than updating the rows in use",
    )
    update: float = share_limit(
        0.1,
        "Smallest share of the compute time in updates of, or sums over, whole tables that justifies a different "
        "optimizer or penalty, which changes the training",
    )


def check(
    tables: EmbeddingTables,
    operations: Operations,
    hardware: Hardware,
    sums: TableSums | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Price one-hot matmuls at the bytes of a lookup, updates of whole tables at the rows in use."""
    least_ms = limits.update * operations.total_ms
    summed = _sparse(sums.tables if sums else (), limits, least_ms)
    updates = _sparse(_apart(tables, summed), limits, least_ms)
    if tables.one_hot or updates or summed:
        faults = Faults(tables.one_hot, updates, summed)
        part = operations.part(faults.ms)
        return Finding(
            summary=f"{faults.names} process every row of an embedding table: {milliseconds(faults.ms)} per step",
            evidence=(*part.measures("processing whole embedding tables"), _table(faults)),
            remedies=tuple(_remedies(faults)),
            effects=tuple(_effects(faults, operations, hardware)),
        )
    if unknown := operations.why_unnamed or tables.unseen:
        return NotApplicable(reason=unknown)
    return _healthy(tables, limits)


def _healthy(tables: EmbeddingTables, limits: Limits) -> Healthy:
    if sparse := _sparse(tables.dense, limits):
        spent = milliseconds(sum(update.ms for update in sparse))
        return Healthy(summary=f"Whole updates of embedding tables with few rows in use take only {spent} per step")
    if tables.dense:
        return Healthy(
            summary="Embedding tables that are updated as a whole have more than "
            f"{percent(limits.touched)} of their rows in use"
        )
    if tables.scattered:
        return Healthy(summary="The optimizer updates only the embedding rows that were looked up")
    return Healthy(summary="No gradient processes a whole embedding table")


def _apart(tables: EmbeddingTables, summed: Iterable[TableSum]) -> list[DenseUpdate]:
    """Return the updates of whole tables without the operations that a sum over the table explains."""
    named = {row.name for one in summed for row in (*one.rows, *one.update)}
    left = (
        replace(update, rows=tuple(row for row in update.rows if row.name not in named)) for update in tables.dense
    )
    return [update for update in left if any(row.type == DENSIFIES for row in update.rows)]


Work = TypeVar("Work", DenseUpdate, TableSum)


def _sparse(work: Iterable[Work], limits: Limits, least_ms: float = 0.0) -> tuple[Work, ...]:
    """Return the work on tables with few rows in use, if together it takes long enough."""
    sparse = tuple(one for one in work if one.lookups <= limits.touched * one.entries)
    return sparse if sum(one.ms for one in sparse) >= least_ms else ()


@dataclass(frozen=True, slots=True)
class Faults:
    """The uses of tables that process every row."""

    one_hot: tuple[OneHotTable, ...]
    updates: tuple[DenseUpdate, ...]
    sums: tuple[TableSum, ...]

    @property
    def ms(self) -> float:
        """The time of all of them, in ms per step."""
        times = [[one.ms for one in self.one_hot], [one.ms for one in self.updates]]
        return sum(map(sum, times)) + sum(one.ms for one in self.sums)

    @property
    def names(self) -> str:
        """What they are."""
        kinds = {
            "one-hot matmuls": self.one_hot,
            "optimizer updates": self.updates,
            "penalties and sums": self.sums,
        }
        return " and ".join(name for name, tables in kinds.items() if tables).capitalize()


def _effects(faults: Faults, operations: Operations, hardware: Hardware) -> Iterator[Effect]:
    """Yield what a lookup leaves, and the update of the rows in use; sums are left out."""
    for one_hot in faults.one_hot:
        yield from _lookup(one_hot, operations, hardware)
    for update in faults.updates:
        used = min(1.0, update.lookups / update.entries)
        name = f"{update.name} (rows in use)"
        yield Effect(Stage.DEVICE, used, name, ms(update.ms), bound=Bound.AT_MOST)
    for table in faults.sums:  # without them the optimizer updates the rows in use
        used = min(1.0, table.lookups / table.entries)
        yield from (row.scaled(0.0, Bound.AT_MOST) for row in table.rows)
        yield from (row.scaled(used, Bound.AT_MOST) for row in table.update)


def _lookup(table: OneHotTable, operations: Operations, hardware: Hardware) -> tuple[Effect, ...]:
    """Remove all operations but the shortest one that can stand for the lookup.

    That takes the time of the calls to gather and scatter, and of the bytes at the rate of this run.
    """
    rate = table.rate or operations.streaming_rate
    if hardware.kind != DeviceKind.CPU or table.lookup_bytes is None or not rate:
        return tuple(row.scaled(0.0, Bound.AT_MOST) for row in table.rows)
    lookup_ms = LOOKUP_MS + table.lookup_bytes / rate * 1e3
    longer = [row for row in table.rows if row.ms >= lookup_ms]
    if not longer:
        return tuple(row.scaled(1.0) for row in table.rows)
    stays = min(longer, key=lambda row: row.ms)
    return tuple(row.scaled(lookup_ms / row.ms if row is stays else 0.0) for row in table.rows)


def _table(faults: Faults) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (table.layer or "unknown", table.at or "unknown", "one-hot matmul", count(table.entries),
         "unknown" if table.lookups is None else count(table.lookups), ms(table.ms))
        for table in faults.one_hot
    ]  # fmt: skip
    rows += [
        (update.name, update.at or "unknown", "update of all rows", count(update.entries),
         count(update.lookups), ms(update.ms))
        for update in faults.updates
    ]  # fmt: skip
    rows += [
        (one.layer, one.at or "unknown", f"{one.penalty} penalty" if one.penalty else "sum of all rows",
         count(one.entries), count(one.lookups), ms(one.ms))
        for one in faults.sums
    ]  # fmt: skip
    columns = ("layer", "your line", "operation", "table rows", "rows looked up", "time per step")
    return Table(columns, tuple(rows))


def _remedies(faults: Faults) -> Iterator[Remedy]:
    if faults.one_hot:
        at = next((table.at for table in faults.one_hot if table.at), None)
        yield Remedy(
            "Look up the rows instead of multiplying one-hot rows",
            CODE["look-up"],
            at,
            "row-lookup",
            changes="a number outside of the table becomes an error instead of a row of zeros",
        )
    for line in dict.fromkeys(one.at for one in faults.sums):
        yield Remedy(
            "Penalize the looked-up vectors instead of the whole table",
            CODE["penalize"],
            line,
            "row-penalty",
            changes="rows are penalized when they are looked up, so the factor has to be chosen again",
        )
    if faults.updates:
        at = next((update.at for update in faults.updates if update.at), None)
        action = "Train the table with an optimizer that updates only the rows in use"
        yield Remedy(action, CODE["sparse"], at)
