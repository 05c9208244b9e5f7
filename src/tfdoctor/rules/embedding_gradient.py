"""The gradient of an embedding costs as much as the whole table, though the step looks up a few rows of it.

## What it checks

Two ways of using a table of vectors that touch all of it in every step: a product of one-hot rows and the
table in the place of a lookup (told by the graph's edges: `one_hot` feeds a matmul), and an optimizer that
turns the gradient of the rows in use into one of all rows (`UnsortedSegmentSum`) and then updates every row.

## Why it matters

A one-hot row of 6000 entries is 6000 values to write, and its product with the table 6000 multiplications
for each value that a lookup just copies; the gradient is as large again. An update of all rows reads and
writes the table and the optimizer's moments, for a handful of rows that changed.

## How to fix

Look the rows up: `keras.layers.Embedding`, or `tf.gather(table, ids)`. Where the optimizer updates all rows,
train the table with one that updates only those in use: Keras' `SGD` without momentum does. Adam in
Keras 3 decays the moments of every row in each step, so that leaving rows out makes it another optimizer
("lazy" Adam): compare the quality, not only the time. The saving of this change is stated as a ceiling.

## Holds for

TensorFlow 2 on CPU and GPU. On a TPU a product of one-hot rows is a good lookup for small tables, because
the matrix unit does it, and nothing is advised. Few entries and many lookups are no fault either: the
saving is computed from what the lookup moves.

## Sources

- [tf.gather](https://www.tensorflow.org/api_docs/python/tf/gather)
- [tf.IndexedSlices](https://www.tensorflow.org/api_docs/python/tf/IndexedSlices)
- [TensorFlow Model Garden, OnDeviceEmbedding: use_one_hot](https://www.tensorflow.org/api_docs/python/tfm/nlp/layers/OnDeviceEmbedding)
- [Keras, Embedding layer](https://keras.io/api/layers/core_layers/embedding/)
"""

from dataclasses import dataclass

from tfdoctor.facts.operations.embedding_tables import DenseUpdate, EmbeddingTables, OneHotTable
from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Operation
from tfdoctor.humanize import milliseconds
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Cell,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"

LOOKUP_MS = 0.1
"""A lookup's two calls, gather and scatter, whatever they move (measured: 0.08 ms of TensorFlow 2.21 on a CPU
of two cores, 384 rows of 32 values)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    touched: float = limit(
        0.25,
        "of a table's rows looked up per step: above it an update of all rows is little more than one "
        "of those in use (they are counted with repetitions)",
    )
    update: float = limit(
        0.1,
        "of the compute time for an update of whole tables: another optimizer is another training, "
        "which less is not worth",
        most=1.0,
    )


LIMITS = Limits()


def check(
    tables: EmbeddingTables, operations: Operations, hardware: Hardware, limits: Limits = LIMITS
) -> Verdict:
    """Price one-hot products at what a lookup moves, updates of whole tables at the share in use."""
    if hardware.kind == DeviceKind.TPU:
        return NotApplicable(
            reason="on a TPU products of one-hot rows run on the matrix unit, and may be faster than lookups"
        )
    dense = _worth_it(tables, operations, limits)
    if tables.one_hot or dense:
        return _finding(tables.one_hot, dense, operations, hardware)
    if unknown := operations.why_unnamed or tables.unseen:
        return NotApplicable(reason=unknown)
    if tables.dense:
        spent = sum(update.ms for update in tables.dense)
        return Healthy(
            summary=f"Updates of whole embedding tables take {milliseconds(spent)} per step: too many of "
            "their rows are in use, or too little time, for another optimizer"
        )
    if tables.scattered:
        return Healthy(summary="Only the rows of the embeddings that were looked up are updated")
    return Healthy(summary="The step spreads no embedding's gradient over its whole table")


def _worth_it(
    tables: EmbeddingTables, operations: Operations, limits: Limits
) -> tuple[DenseUpdate, ...]:
    few = [one for one in tables.dense if one.lookups <= limits.touched * one.entries]
    enough = sum(one.ms for one in few) >= limits.update * operations.total_ms
    return tuple(few) if enough else ()


def _finding(
    one_hot: tuple[OneHotTable, ...],
    dense: tuple[DenseUpdate, ...],
    operations: Operations,
    hardware: Hardware,
) -> Finding:
    total = sum(one.ms for one in one_hot) + sum(one.ms for one in dense)
    what = ["multiply one-hot rows by a table"] * bool(one_hot)
    what += ["update whole tables"] * bool(dense)
    return Finding(
        summary=f"Operations that {' and '.join(what)} take {milliseconds(total)} per step, "
        "for a few rows of them",
        evidence=(
            Measure("embeddings the long way per step", ms(total)),
            Measure("share of the compute time", ratio(total / operations.total_ms)),
            _table(one_hot, dense),
        ),
        remedies=_remedies(one_hot, dense),
        effects=(
            *(effect for one in one_hot for effect in _lookup(one, operations, hardware)),
            *(_partial(one) for one in dense),
        ),
    )


def _lookup(one: OneHotTable, operations: Operations, hardware: Hardware) -> tuple[Effect, ...]:
    """Do away with all operations but one that takes long enough to stand for the lookup."""
    left = _lookup_ms(one, operations) if hardware.kind == DeviceKind.CPU else None
    bound = Bound.AT_MOST if left is None else Bound.EXPECTED
    enough = [row for row in one.rows if row.ms >= (left or 0.0)]
    if left and not enough:
        return tuple(Effect(Stage.DEVICE, 1.0, row.name, ms(row.ms)) for row in one.rows)
    stays = min(enough, key=lambda row: row.ms) if left else None
    return tuple(
        Effect(
            Stage.DEVICE, (left or 0.0) / row.ms if row is stays else 0.0, row.name, ms(row.ms),
            bound=bound,
        )
        for row in one.rows
    )  # fmt: skip


def _lookup_ms(one: OneHotTable, operations: Operations) -> float | None:
    """Return what gathering and scattering take: their calls, and their bytes at the run's own rate."""
    rate = one.rate or operations.streaming_rate
    if one.lookup_bytes is None or not rate:
        return None
    return LOOKUP_MS + one.lookup_bytes / rate * 1e3


def _partial(one: DenseUpdate) -> Effect:
    share = min(1.0, one.lookups / one.entries)
    return Effect(Stage.DEVICE, share, f"{one.name} (rows in use)", ms(one.ms), bound=Bound.AT_MOST)


def _table(one_hot: tuple[OneHotTable, ...], dense: tuple[DenseUpdate, ...]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (one.layer or "unknown", one.at or "unknown", "one-hot product", count(one.entries),
         "unknown" if one.lookups is None else count(one.lookups), ms(one.ms))
        for one in one_hot
    ]  # fmt: skip
    rows += [
        (one.name, one.at or "unknown", "update of all rows", count(one.entries), count(one.lookups), ms(one.ms))
        for one in dense
    ]  # fmt: skip
    return Table(
        ("layer", "your line", "how", "table's rows", "looked up", "per step"), tuple(rows)
    )


def _remedies(
    one_hot: tuple[OneHotTable, ...], dense: tuple[DenseUpdate, ...]
) -> tuple[Remedy, ...]:
    found = []
    if one_hot:
        at = next((one.at for one in one_hot if one.at), None)
        found.append(Remedy("Look the rows up", LOOK_UP, at))
    if dense:
        at = next((one.at for one in dense if one.at), None)
        found.append(
            Remedy("Train the table with an optimizer that updates the rows in use", SPARSE, at)
        )
    return tuple(found)


LOOK_UP = """\
vectors = tf.gather(table, ids)  # instead of tf.matmul(tf.one_hot(ids, entries), table)
# or keras.layers.Embedding(entries, width)(ids)"""

SPARSE = """\
# Adam for the network, plain SGD for the table: compare the quality, it is another training
table_optimizer = keras.optimizers.SGD(0.1)  # no momentum: it updates the rows in use only
table_optimizer.apply_gradients([(table_gradient, embedding.embeddings)])"""


def sick() -> Verdict:
    """A table of 6000 rows, multiplied by 384 one-hot rows."""
    rows = (_row("OneHot", 0.5, nbytes=9.2e6), _row("BatchMatMulV2", 1.0), _row("MatMul_1", 3.0))
    table = OneHotTable("table", Location("train.py", 12), 6000, 384, 32, rows)
    return check(
        EmbeddingTables((table,), (), 0), Operations(rows), Hardware(DeviceKind.CPU, "example")
    )


def healthy() -> Verdict:
    """The same table, looked up in."""
    rows = (_row("GatherV2", 0.05), _row("ResourceScatterSub", 0.03, "gradient_tape/scatter"))
    return check(EmbeddingTables((), (), 1), Operations(rows), Hardware(DeviceKind.CPU, "example"))


def _row(kind: str, ms: float, name: str = "", nbytes: float | None = None) -> OperationTime:
    graph = Operation(name=name or f"model/table/{kind}", type=kind)
    return OperationTime(
        name=graph.name, type=kind, ms=ms, layer="table", operation=graph, nbytes=nbytes
    )
