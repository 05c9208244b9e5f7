"""Batch normalization runs as many small operations instead of one.

## What it checks

Layers of class `BatchNormalization` whose training step ran as separate operations (means, squared
differences, products, sums and their gradients) and neither as `FusedBatchNormV3` nor inside an XLA
program. Layers are told by their class, not by their name, and what ran is read from the trace.

## Why it matters

Each of these operations reads and writes the whole activation. The fused one reads it twice and writes
it once in the forward pass, and five passes over it do for the backward pass: 8 in place of some 25.

## How to fix

On a GPU compile the model with `jit_compile=True`, so that XLA fuses them. On a CPU, where XLA is often
slower, use the drop-in layer that the report shows: it has the same weights and the same mathematics on
`tf.compat.v1.nn.fused_batch_norm`. (Its moving variance is Bessel-corrected, as TensorFlow's fused
operation has it; the difference is one part in the number of values per channel.)

## Holds for

Keras 3 on TensorFlow, which builds batch normalization from single operations in every training step
(Keras 2 used the fused one for four-dimensional input). Channels-last input of rank 4. On a TPU
everything is compiled by XLA and nothing is unfused.

## Sources

- [Keras 3, BatchNormalization](https://keras.io/api/layers/normalization_layers/batch_normalization/)
- [tf.compat.v1.nn.fused_batch_norm](https://www.tensorflow.org/api_docs/python/tf/compat/v1/nn/fused_batch_norm)
- [XLA: optimizing compiler for machine learning](https://www.tensorflow.org/xla)
"""

from math import prod

from tfdoctor.facts.hardware import Hardware
from tfdoctor.facts.operations import Operations, OperationTime
from tfdoctor.facts.program import Layer, Operation, Program
from tfdoctor.humanize import counted, milliseconds
from tfdoctor.rule import Topic
from tfdoctor.units import bandwidth, count, ms
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

KINDS = ("BatchNormalization", "SyncBatchNormalization")
"""Keras' classes; a subclass keeps the ending as a rule and is judged by what it ran."""

MOMENTS = "SquaredDifference"
"""The operation by which an unfused variance in a training step is known: inference has none."""

Layers = list[tuple[Layer, list[OperationTime]]]
"""Layers with the operations that ran for them."""

FUSED_PASSES = 8
"""Over the activation: forward two reads and a write; backward x and dy read twice, dx written."""


def check(program: Program, operations: Operations, hardware: Hardware) -> Verdict:
    """Price each unfused layer at the bytes a fused one moves."""
    layers = {layer.name: layer for layer in program.layers if layer.kind.endswith(KINDS)}
    if not layers:
        return NotApplicable(reason="the program has no batch normalization layer")
    if hardware.kind == "TPU":
        return Healthy(summary="XLA compiles everything on a TPU, batch normalization included")
    ran = {name: [row for row in operations.rows if row.layer == name] for name in layers}
    slow = {name: rows for name, rows in ran.items() if any(r.type == MOMENTS for r in rows)}
    if not slow:
        return _without(ran)
    rate = operations.streaming_rate
    return _finding([(layers[name], rows) for name, rows in slow.items()], hardware, rate, program)


def _without(ran: dict[str, list[OperationTime]]) -> Verdict:
    fused = sum(any("FusedBatchNorm" in row.type for row in rows) for rows in ran.values())
    if fused:
        return Healthy(summary=f"{fused} of {len(ran)} batch normalization layers ran fused")
    seen = sum(bool(rows) for rows in ran.values())
    if seen:
        return Healthy(summary=f"{seen} batch normalization layers ran, none in training mode")
    return NotApplicable(
        reason="the batch normalization layers left no operation of their own in the trace "
        "(compiled by XLA, run eagerly, or not run in the traced steps)"
    )


def _finding(slow: Layers, hardware: Hardware, rate: float | None, program: Program) -> Finding:
    times = {layer.name: sum(row.ms for row in rows) for layer, rows in slow}
    fused = {layer.name: _fused_ms(rows, rate, program) for layer, rows in slow}
    total = sum(times.values())
    measures = [Measure("unfused batch normalization per step", ms(total))]
    if rate:
        measures.append(
            Measure("memory rate of this run's elementwise operations", bandwidth(rate))
        )
    layers = counted(len(slow), "batch normalization layer")
    return Finding(
        summary=f"{layers.capitalize()} in single operations: {milliseconds(total)} per step",
        evidence=(*measures, _table(slow, fused)),
        remedies=(_remedy(hardware, slow),),
        effects=tuple(_effect(name, now, fused[name]) for name, now in times.items()),
    )


def _fused_ms(rows: list[OperationTime], rate: float | None, program: Program) -> float | None:
    """Return what the fused operation would take: its passes over the activation at the run's rate."""
    moments = next(row.operation for row in rows if row.type == MOMENTS)
    size = (
        max((program.nbytes(tensor) or 0 for tensor in moments.inputs), default=0) if moments else 0
    )
    return FUSED_PASSES * size / rate * 1e3 if rate and size else None


def _effect(name: str, now: float, fused: float | None) -> Effect:
    if fused is None:
        return Effect(Stage.DEVICE, 0.0, f"{name} (batch norm)", ms(now), bound=Bound.AT_MOST)
    return Effect(Stage.DEVICE, min(1.0, fused / now), f"{name} (batch norm)", ms(now))


def _table(slow: Layers, fused: dict[str, float | None]) -> Table:
    ordered = sorted(slow, key=lambda item: -sum(row.ms for row in item[1]))
    rows = tuple(
        (layer.name, layer.at or "unknown", count(len(ran)), ms(sum(row.ms for row in ran)),
         "unknown" if (after := fused[layer.name]) is None else ms(after))
        for layer, ran in ordered
    )  # fmt: skip
    return Table(("layer", "your line", "operations", "per step", "fused"), rows)


def _remedy(hardware: Hardware, slow: Layers) -> Remedy:
    at = next((layer.at for layer, _ in slow if layer.at), None)
    if hardware.kind == "GPU":
        code = "model.compile(..., jit_compile=True)"
        return Remedy("Let XLA fuse them", code, at, "jit-compile")
    return Remedy(
        "Use a layer on TensorFlow's fused operation in its place", DROP_IN, at, "fused-batch-norm"
    )


DROP_IN = '''\
class FusedBatchNormalization(keras.layers.BatchNormalization):
    """Same weights, one operation: for channels-last input of rank 4."""

    def call(self, inputs, training=None, mask=None):
        if not (training and self.trainable and self.scale and self.center):
            return super().call(inputs, training=training, mask=mask)
        outputs, mean, variance, *_ = tf.compat.v1.nn.fused_batch_norm(
            inputs, tf.cast(self.gamma, "float32"), tf.cast(self.beta, "float32"),
            epsilon=self.epsilon, is_training=True)
        keep = self.momentum
        self.moving_mean.assign(keep * self.moving_mean + (1 - keep) * mean)
        self.moving_variance.assign(keep * self.moving_variance + (1 - keep) * variance)
        return outputs'''


def sick() -> Verdict:
    """A layer whose moments, products and gradients take 20 ms."""
    return check(_program(), Operations(_operations(MOMENTS)), Hardware("CPU", "example"))


def healthy() -> Verdict:
    """The same layer on the fused operation."""
    return check(
        _program(), Operations(_operations("FusedBatchNormV3")), Hardware("CPU", "example")
    )


def _program() -> Program:
    layer = Layer(name="bn", kind="BatchNormalization", at=Location("train.py", 10))
    return Program(layers=(layer,), settings={"batch_size": 32})


def _operations(kind: str) -> tuple[OperationTime, ...]:
    shape = (32, 64, 64, 48)
    tensor = ("float32", shape)
    graph = Operation(name="model/bn/moments", type=kind, inputs=(tensor,), outputs=(tensor,))
    size = 3.0 * prod(shape) * 4
    return (
        OperationTime(name="model/bn/moments", type=kind, ms=20.0, layer="bn", operation=graph),
        OperationTime(name="model/add", type="AddV2", ms=2.0, nbytes=size),
    )
