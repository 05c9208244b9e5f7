"""A small tensor is written out at full size before it is used.

## What it checks

`Tile` and `BroadcastTo` in the forward pass whose result is many times their input, and which feed operations
that broadcast by themselves (told by the graph's edges).

## Why it matters

Elementwise operations read a small operand again and again from the cache. A tensor that was repeated in
memory first has to be written and read at full size, forward and backward, where its gradient is summed up
again.

## How to fix

Leave the repetition out: give the operand dimensions of size 1 (`x[:, None, :]`) and let the operation
broadcast. Put reductions before broadcasts. The saving is a ceiling, of the repetition and of reading its
result: an operation that broadcasts may be
slower than one on tensors of equal shape.

## Holds for

Graphs of TensorFlow 2 that XLA does not compile: XLA fuses broadcasts into what uses them, so that nothing
is written on a TPU or with `jit_compile=True`. Gradients that TensorFlow builds with `Tile` (of means and
sums) are not the user's and are not counted.

## Sources

- [TensorFlow guide: tensors, broadcasting](https://www.tensorflow.org/guide/tensor)
- [tf.broadcast_to](https://www.tensorflow.org/api_docs/python/tf/broadcast_to)
- [Google Cloud, Cloud TPU performance guide](https://cloud.google.com/tpu/docs/performance-guide)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.facts.broadcasts import Broadcast, Broadcasts
from tfdoctor.facts.dataflow import Dataflow
from tfdoctor.facts.operations import Operations, OperationTime
from tfdoctor.humanize import milliseconds
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
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


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    times: float = limit(
        4.0, "times the input's size: below it the operand that is read instead is hardly smaller"
    )
    share: float = limit(0.02, "of the compute time, in such repetitions and their gradients")


LIMITS = Limits()


def check(
    broadcasts: Broadcasts,
    operations: Operations,
    dataflow: Dataflow | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Leave out the repetitions that the operations behind them would do."""
    found = [one for one in broadcasts.found if one.times >= limits.times]
    if not found and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    if not found:
        return Healthy(summary="No small tensor is repeated in memory for an elementwise operation")
    total = sum(one.ms for one in found)
    share = total / operations.total_ms
    measures = (
        Measure("repeating small tensors per step", ms(total)),
        Measure("share of the compute time", ratio(share), ratio(limits.share)),
    )
    summary = f"Repeating small tensors in memory takes {milliseconds(total)} per step"
    if share < limits.share:
        return Healthy(summary=summary, evidence=measures)
    table = tuple(
        (one.row.layer or one.row.name, one.row.at or "unknown", count(one.times), ms(one.ms))
        for one in found
    )
    at = next((one.row.at for one in found if one.row.at), None)
    return Finding(
        summary=summary,
        evidence=(
            *measures,
            Table(("operation", "your line", "times its input", "per step"), table),
        ),
        remedies=(Remedy("Let the operation broadcast", BROADCAST, at),),
        effects=(
            *(
                Effect(Stage.DEVICE, 0.0, row.name, ms(row.ms), bound=Bound.AT_MOST)
                for one in found
                for row in one.rows
            ),
            *(effect for one in found for effect in _readers(one, operations, dataflow)),
        ),
    )


def _readers(one: Broadcast, operations: Operations, dataflow: Dataflow | None) -> Iterator[Effect]:
    """Yield what the operations gain that read the small tensor instead, forward and backward."""
    made = (one.row.nbytes or 0.0) * one.times / (one.times + 1)  # of what it reads and writes
    users = dataflow.consumers.get(one.row.name, ()) if dataflow else ()
    names = {user.name for user in users} - {row.name for row in one.rows}
    for row in operations.rows:
        if row.name in names and row.nbytes and made:
            left = max(0.0, 1.0 - made / row.nbytes)
            yield Effect(Stage.DEVICE, left, row.name, ms(row.ms), bound=Bound.AT_MOST)


BROADCAST = """\
y = x * weights[:, None, :]  # instead of x * tf.tile(weights[:, None, :], (1, length, 1))"""


def sick() -> Verdict:
    """A row of weights, repeated 128 times."""
    row = OperationTime(name="model/Tile", type="Tile", ms=4.0, at=Location("train.py", 22))
    return check(Broadcasts((Broadcast(row, 128.0, (row,)),)), Operations((row, _work())), None)


def healthy() -> Verdict:
    """None repeated."""
    return check(Broadcasts(()), Operations((_work(),)), None)


def _work() -> OperationTime:
    return OperationTime(name="gradient_tape/model/MatMul", type="MatMul", ms=20.0)
