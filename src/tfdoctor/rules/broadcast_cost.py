"""A small tensor is written out at full size before it is used.

## What it checks

`Tile` and `BroadcastTo` in the forward pass whose result is many times their input, and which feed operations
that broadcast by themselves (told by the graph's edges); and operations on single values (an activation, a
root) that follow such a repetition and compute the same again for each copy.

## Why it matters

Elementwise operations read a small operand again and again from the cache. A tensor that was repeated in
memory first has to be written and read at full size, forward and backward, where its gradient is summed up
again.

## How to fix

Leave the repetition out: give the operand dimensions of size 1 (`x[:, None, :]`) and let the operation
broadcast. Put reductions and activations before broadcasts. The saving is a ceiling, of the repetition and of
reading its result: an operation that broadcasts may be slower than one on tensors of equal shape.

## Holds for

Graphs of TensorFlow 2 that XLA does not compile: XLA fuses broadcasts into what uses them, so that nothing is
written on a TPU or with `jit_compile=True`. On a CPU, leaving out the repetition before products and sums
saved now a little and cost now a little (TensorFlow 2.21, 9 shapes, forward and backward: medians from -12 to
+17 %): there only the operations on repeated values count. Gradients that TensorFlow builds with `Tile` (of
means and sums) are not the user's and are not counted.

## Sources

- [TensorFlow guide: tensors, broadcasting](https://www.tensorflow.org/guide/tensor)
- [tf.broadcast_to](https://www.tensorflow.org/api_docs/python/tf/broadcast_to)
- [Google Cloud, Cloud TPU performance guide](https://cloud.google.com/tpu/docs/performance-guide)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.facts.operations.broadcasts import Broadcast, Broadcasts
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.humanize import milliseconds
from tfdoctor.kinds import DeviceKind
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
    share: float = limit(
        0.02, "of the compute time, in such repetitions and their gradients", most=1.0
    )


LIMITS = Limits()


def check(
    broadcasts: Broadcasts,
    operations: Operations,
    dataflow: Dataflow | None,
    hardware: Hardware | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Leave out the repetitions that the operations behind them would do."""
    found = [one for one in broadcasts.found if one.times >= limits.times]
    if not found and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    if not found:
        return Healthy(summary="No small tensor is repeated in memory for an elementwise operation")
    on_cpu = hardware is not None and hardware.kind == DeviceKind.CPU
    repeating = sum(one.ms for one in found)
    again = sum(one.chain_ms for one in found)
    share = (again if on_cpu else repeating + again) / operations.total_ms
    measures = (
        Measure("repeating small tensors per step", ms(repeating)),
        Measure("computing repeated values again, per step", ms(again)),
        Measure("share of the compute time", ratio(share), ratio(limits.share)),
    )
    summary = f"Repeating small tensors in memory takes {milliseconds(repeating)} per step"
    if again:
        summary += f", computing the same for each copy {milliseconds(again)}"
    if share < limits.share:
        said = f"{summary}; broadcasting takes a CPU about as long" if on_cpu else summary
        return Healthy(summary=said, evidence=measures)
    table = tuple(
        (
            one.row.layer or one.row.name,
            one.row.at or "unknown",
            count(one.times),
            ms(one.ms + one.chain_ms),
        )
        for one in found
    )
    at = next((one.row.at for one in found if one.row.at), None)
    return Finding(
        summary=summary,
        evidence=(
            *measures,
            Table(("operation", "your line", "times its input", "per step"), table),
        ),
        remedies=_remedies(repeating and not on_cpu, again, at),
        effects=tuple(
            effect for one in found for effect in _effects(one, operations, dataflow, on_cpu=on_cpu)
        ),
    )


def _remedies(repeats: object, again: float, at: Location | None) -> tuple[Remedy, ...]:
    before = Remedy("Compute before repeating", BEFORE, at)
    broadcast = Remedy("Let the operation broadcast", BROADCAST, at)
    return (*((before,) if again else ()), *((broadcast,) if repeats else ()))


def _effects(
    one: Broadcast, operations: Operations, dataflow: Dataflow | None, *, on_cpu: bool
) -> Iterator[Effect]:
    for row in one.chain:
        yield Effect(
            Stage.DEVICE, 1.0 / one.times, row.name, ms(row.ms), bound=Bound.AT_MOST, narrows=True
        )
    if on_cpu:
        return
    for row in one.rows:
        yield Effect(Stage.DEVICE, 0.0, row.name, ms(row.ms), bound=Bound.AT_MOST)
    yield from _readers(one, operations, dataflow)


def _readers(one: Broadcast, operations: Operations, dataflow: Dataflow | None) -> Iterator[Effect]:
    """Yield what the operations gain that read the small tensor instead, forward and backward."""
    made = (one.row.nbytes or 0.0) * one.times / (one.times + 1)  # of what it reads and writes
    users = dataflow.consumers.get(one.row.name, ()) if dataflow else ()
    names = {user.name for user in users} - {row.name for row in (*one.rows, *one.chain)}
    for row in operations.rows:
        if row.name in names and row.nbytes and made:
            left = max(0.0, 1.0 - made / row.nbytes)
            yield Effect(Stage.DEVICE, left, row.name, ms(row.ms), bound=Bound.AT_MOST)


BROADCAST = """\
y = x * weights[:, None, :]  # instead of x * tf.tile(weights[:, None, :], (1, length, 1))"""

BEFORE = """\
gate = tf.sigmoid(gate)  # before tf.tile or tf.broadcast_to, not after it"""


def sick() -> Verdict:
    """A row of weights, repeated 128 times."""
    row = OperationTime(name="model/Tile", type="Tile", ms=4.0, at=Location("train.py", 22))
    return check(
        Broadcasts((Broadcast(row, 128.0, (row,)),)), Operations((row, _work())), None, None
    )


def healthy() -> Verdict:
    """None repeated."""
    return check(Broadcasts(()), Operations((_work(),)), None, None)


def _work() -> OperationTime:
    return OperationTime(name="gradient_tape/model/MatMul", type="MatMul", ms=20.0)
