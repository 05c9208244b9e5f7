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

On a CPU the fused operation is fast for channels in multiples of 16, still faster for multiples of 8, and
slower than the separate ones for others: layers of such widths are listed, but not advised.

## Holds for

Keras 3 on TensorFlow, which builds batch normalization from single operations in every training step
(Keras 2 used the fused one for four-dimensional input). Channels-last input of rank 4. On a TPU
everything is compiled by XLA and nothing is unfused.

## Sources

- [Keras 3, BatchNormalization](https://keras.io/api/layers/normalization_layers/batch_normalization/)
- [tf.compat.v1.nn.fused_batch_norm](https://www.tensorflow.org/api_docs/python/tf/compat/v1/nn/fused_batch_norm)
- [XLA: optimizing compiler for machine learning](https://openxla.org/xla/tf2xla)
- CPU figures: benchmarks/batch_norm.py of this project (AMD EPYC with AVX-512, TensorFlow 2.21, 2026-11-21)
"""

from dataclasses import dataclass
from math import prod

from tfdoctor.facts.operations.batch_norm import FUSED_PASSES, MOMENTS, BatchNorm, BatchNorms
from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Layer, Operation, Program
from tfdoctor.humanize import counted, milliseconds
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import bandwidth, count, ms
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


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    full_speed: float = limit(
        16.0,
        "channels, on a CPU: with multiples of them oneDNN's fused operation streams at the memory's "
        "rate (benchmarks/batch_norm.py)",
        least=1.0,
    )
    half_speed: float = limit(
        8.0,
        "channels, on a CPU: layers that are no multiple of them are not advised, because the fused "
        "operation takes them 1.4 to 1.8 times as long as the separate ones (benchmarks/batch_norm.py)",
        least=1.0,
    )
    half_rate: float = limit(
        0.6,
        "of the streaming rate, on a CPU: what a fused layer reaches with a multiple of half_speed but "
        "not of full_speed channels (benchmarks/batch_norm.py)",
        least=0.01,
        most=1.0,
    )


LIMITS = Limits()


def check(norms: BatchNorms, hardware: Hardware, limits: Limits = LIMITS) -> Verdict:
    """Price each unfused layer at the bytes a fused one moves."""
    if hardware.kind == DeviceKind.TPU:
        return Healthy(summary="XLA compiles everything on a TPU, batch normalization included")
    if not norms.unfused:
        return _without(norms)
    ready = [norm for norm in norms.unfused if _gains(norm, hardware, limits)]
    if not ready:
        return NotApplicable(reason=_no_remedy(norms))
    return _finding(ready, norms, hardware, limits)


def _gains(norm: BatchNorm, hardware: Hardware, limits: Limits) -> bool:
    """Whether a remedy fits: XLA fuses all; oneDNN's operation images with whole vectors of channels."""
    return hardware.kind != DeviceKind.CPU or (
        norm.of_images and (norm.channels or 0) % limits.half_speed == 0
    )


def _no_remedy(norms: BatchNorms) -> str:
    layers = counted(len(norms.unfused), "batch normalization layer")
    if any(norm.of_images for norm in norms.unfused):
        why = "with widths for which oneDNN's fused operation is slower: align their channels to 16 first"
    else:
        why = "TensorFlow's fused operation takes images only (rank 4, channels last), and these are none"
    return f"{layers} in single operations, but {why}"


def _without(norms: BatchNorms) -> Verdict:
    if norms.fused:
        return Healthy(summary=f"{counted(norms.fused, 'batch normalization layer')} ran fused")
    if norms.seen:
        layers = counted(norms.seen, "batch normalization layer")
        return Healthy(summary=f"{layers} ran, none in training mode")
    return NotApplicable(
        reason="the batch normalization layers left no operation of their own in the trace "
        "(compiled by XLA, run eagerly, or not run in the traced steps)"
    )


def _finding(
    ready: list[BatchNorm], norms: BatchNorms, hardware: Hardware, limits: Limits
) -> Finding:
    total = sum(norm.ms for norm in ready)
    measures = [Measure("unfused batch normalization per step", ms(total))]
    if norms.rate:
        label = "memory rate of this run's elementwise operations"
        measures.append(Measure(label, bandwidth(norms.rate)))
    layers = counted(len(ready), "batch normalization layer")
    return Finding(
        summary=f"{layers.capitalize()} in single operations: {milliseconds(total)} per step",
        evidence=(*measures, _table(norms, hardware, limits)),
        remedies=_remedies(hardware, ready),
        effects=tuple(_effect(norm, norms, hardware, limits) for norm in ready),
    )


def _fused_ms(
    norm: BatchNorm, norms: BatchNorms, hardware: Hardware, limits: Limits
) -> float | None:
    """Return what the fused operation would take: its passes over the activation at the run's rate."""
    time = norms.passes_ms(norm, FUSED_PASSES)
    slow = (
        hardware.kind == DeviceKind.CPU
        and norm.channels is not None
        and norm.channels % limits.full_speed
    )
    return time / limits.half_rate if time and slow else time


def _effect(norm: BatchNorm, norms: BatchNorms, hardware: Hardware, limits: Limits) -> Effect:
    fused = _fused_ms(norm, norms, hardware, limits)
    if fused is None:
        return Effect(Stage.DEVICE, 0.0, norm.subject, ms(norm.ms), bound=Bound.AT_MOST)
    return Effect(Stage.DEVICE, min(1.0, fused / norm.ms), norm.subject, ms(norm.ms))


def _table(norms: BatchNorms, hardware: Hardware, limits: Limits) -> Table:
    ordered = sorted(norms.unfused, key=lambda norm: -norm.ms)
    rows = tuple(
        (norm.layer.name, norm.layer.at or "unknown", count(norm.operations),
         "unknown" if norm.channels is None else count(norm.channels), ms(norm.ms),
         _fused_cell(norm, norms, hardware, limits))
        for norm in ordered
    )  # fmt: skip
    return Table(("layer", "your line", "operations", "channels", "per step", "fused"), rows)


def _fused_cell(norm: BatchNorm, norms: BatchNorms, hardware: Hardware, limits: Limits) -> Cell:
    if not _gains(norm, hardware, limits):
        return "slower: align the channels first" if norm.of_images else "not for this rank"
    fused = _fused_ms(norm, norms, hardware, limits)
    return "unknown" if fused is None else ms(fused)


def _remedies(hardware: Hardware, ready: list[BatchNorm]) -> tuple[Remedy, ...]:
    lines = [norm.layer.at for norm in ready if norm.layer.at]
    at = lines[0] if lines else None
    if hardware.kind == DeviceKind.GPU:
        code = "model.compile(..., jit_compile=True)"
        return (Remedy("Let XLA fuse them", code, at, "jit-compile"),)
    action = "Normalize batches with TensorFlow's fused operation"
    drop_in = Remedy(action, DROP_IN, at, "fused-batch-norm")
    if len(lines) == len(set(lines)):
        return (drop_in,)
    shared = next(line for line in lines if lines.count(line) > 1)
    return drop_in, Remedy(
        "Where one line makes many layers, clone the model with it", CLONE, shared
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

CLONE = '''\
def fused(layer):
    """Return a copy of a layer, batch normalization as the fused one."""
    normalizes = type(layer) is keras.layers.BatchNormalization
    kind = FusedBatchNormalization if normalizes else type(layer)
    return kind.from_config(layer.get_config())


clone = keras.models.clone_model(model, clone_function=fused)  # a functional or sequential model
clone.set_weights(model.get_weights())
# then compile and fit the clone in the model's place'''


def sick() -> Verdict:
    """A layer whose moments, products and gradients take 20 ms."""
    return check(_norms(MOMENTS), Hardware(DeviceKind.CPU, "example"))


def healthy() -> Verdict:
    """The same layer on the fused operation."""
    return check(_norms("FusedBatchNormV3"), Hardware(DeviceKind.CPU, "example"))


def _norms(kind: str) -> BatchNorms:
    layer = Layer(name="bn", kind="BatchNormalization", at=Location("train.py", 10))
    program = Program(layers=(layer,), settings={"batch_size": 32})
    return BatchNorms.measure(program, Operations(_operations(kind)))


def _operations(kind: str) -> tuple[OperationTime, ...]:
    shape = (32, 64, 64, 48)
    tensor = ("float32", shape)
    graph = Operation(name="model/bn/moments", type=kind, inputs=(tensor,), outputs=(tensor,))
    size = 3.0 * prod(shape) * 4
    return (
        OperationTime(name="model/bn/moments", type=kind, ms=20.0, layer="bn", operation=graph),
        OperationTime(name="model/add", type="AddV2", ms=2.0, nbytes=size),
    )
