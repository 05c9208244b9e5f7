"""Recurrent layers run step by step on the GPU.

## What it checks

On a GPU: the time of `LSTM` and `GRU` layers of Keras that ran as a loop over time steps, or unrolled, and not as
a kernel of cuDNN, and the part of the GPU's idle time in which the host launches their kernels. The report names
the argument and the line that keep the layer off cuDNN, or its mask or ragged input.

## Why it matters

cuDNN computes a whole sequence in a few kernels. Without it each time step launches a dozen, forward and again
backward, and the GPU waits for the host in between. In threads, `recurrent_dropout` made training 25 times as
slow (an LSTM of 128 units on an RTX 2080), and ragged inputs more than 5 times.

## How to fix

| what keeps the layer off cuDNN | instead |
|---|---|
| `recurrent_dropout` above 0 | `dropout`, which cuDNN's path applies too, or a `Dropout` layer |
| `activation` other than `tanh`, `recurrent_activation` other than `sigmoid` | the defaults |
| `unroll=True` | `unroll=False` |
| `use_bias=False`; `reset_after=False` of a `GRU` | the defaults |
| `use_cudnn=False` (Keras 3) | `use_cudnn="auto"` |
| a mask of padding on the left, or with gaps | padding on the right: `pad_sequences(x, padding="post")` |
| a ragged input | a dense one, padded on the right: `ragged.to_tensor()` |

The arguments change the model: compare the accuracy.

## Holds for

NVIDIA GPUs, Keras 2 and 3 on TensorFlow 2, recorded with `tfdoctor profile`. Keras 3 raises an error where a mask
is not padded on the right, unless the layer has `use_cudnn=False`; Keras 2 takes the loop without a word. The
saving is an upper bound of the GPU's time: it leaves nothing to the layer. The host, which then launches fewer
kernels, may save more. From published threads and Keras' source: the rule has not been seen at work on a GPU.

## Sources

- [Working with RNNs, Keras guide: performance optimization and cuDNN kernels](https://keras.io/guides/working_with_rnns/)
- [LSTM layer, Keras: the requirements of cuDNN](https://keras.io/api/layers/recurrent_layers/lstm/)
- TensorFlow issues [38236](https://github.com/tensorflow/tensorflow/issues/38236) and
  [40944](https://github.com/tensorflow/tensorflow/issues/40944): recurrent_dropout
- [TensorFlow issue 48838](https://github.com/tensorflow/tensorflow/issues/48838) and
  [Keras pull request 15756](https://github.com/keras-team/keras/pull/15756): ragged inputs and masks
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import figures_per_step, not_on
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.run.program import Layer, RecurrentArguments
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.slow_cudnn_path.recurrent_layers import CudnnObstacle, LoopedLayer, RecurrentLayers
from tfdoctor.terms.humanize import counted, milliseconds
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    StepWork,
    Table,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.2.0"
PRECONDITIONS = (
    not_on(
        DeviceKind.CPU, DeviceKind.TPU, verdict=NotApplicable(reason="cuDNN computes recurrent layers on GPUs only")
    ),
    figures_per_step,
)
BY_HAND = "the argument was chosen, and the model without it has to be compared"


@dataclass(frozen=True, slots=True)
class Limits:
    """The share of the step from which layers are reported."""

    share: float = share_limit(
        0.05, "Smallest share of the step in recurrent layers off cuDNN that justifies changing a model"
    )


def check(layers: RecurrentLayers, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Add up the time of the layers off cuDNN, and of launching their kernels."""
    if not layers.looped:
        ran = counted(layers.ran, "recurrent layer")
        return Healthy(summary=f"{ran} ran, none of them off cuDNN")
    device_ms = sum(one.ms for one in layers.looped)
    launching_ms = sum(one.launching_ms for one in layers.looped)
    taken = device_ms + launching_ms
    share = taken / breakdown.step_ms if breakdown.step_ms else 0.0
    number = counted(len(layers.looped), "recurrent layer")
    summary = f"{number} off cuDNN: {milliseconds(taken)} per step"
    evidence = (
        Measure.share("share of the step in recurrent layers off cuDNN", share, limits.share),
        Measure("time of the GPU in them per step", ms(device_ms)),
        Measure("idle time of the GPU while the host launches their kernels", ms(launching_ms)),
        _table(layers.looped),
    )
    if share < limits.share:
        return Healthy(summary=summary, evidence=evidence)
    effects = [row.scaled(0.0, Bound.AT_MOST) for one in layers.looped for row in one.rows]
    if launching_ms:
        idle = Effect(Stage.HOST, 0.0, StepWork.LAUNCHING, ms(launching_ms), bound=Bound.AT_MOST)
        effects.append(idle)
    return Finding(
        summary=summary,
        evidence=evidence,
        remedies=tuple(dict.fromkeys(_remedy(one) for one in layers.looped)),
        effects=tuple(effects),
    )


def _table(layers: tuple[LoopedLayer, ...]) -> Table:
    return Table.of(
        layers,
        ("layer", lambda one: one.layer.name),
        ("your line", lambda one: one.layer.at),
        ("off cuDNN because of", lambda one: ", ".join(one.obstacles)),
        ("time per step", lambda one: ms(one.ms)),
    )


PAD_RIGHT = "x = keras.utils.pad_sequences(x, padding='post')"

REMEDIES: Mapping[CudnnObstacle, tuple[str, str]] = {
    CudnnObstacle.RECURRENT_DROPOUT: (
        "Drop recurrent_dropout, and use dropout",
        "keras.layers.{kind}(units, dropout={rate:g})",
    ),
    CudnnObstacle.ACTIVATION: ("Use the default activation", "keras.layers.{kind}(units)  # tanh"),
    CudnnObstacle.RECURRENT_ACTIVATION: (
        "Use the default recurrent activation",
        "keras.layers.{kind}(units)  # sigmoid",
    ),
    CudnnObstacle.UNROLL: ("Do not unroll the layer", "keras.layers.{kind}(units, unroll=False)"),
    CudnnObstacle.USE_BIAS: ("Use the bias", "keras.layers.{kind}(units, use_bias=True)"),
    CudnnObstacle.RESET_AFTER: (
        "Apply the reset gate after the product",
        "keras.layers.GRU(units, reset_after=True)",
    ),
    CudnnObstacle.USE_CUDNN: ("Let Keras use cuDNN", 'keras.layers.{kind}(units, use_cudnn="auto")'),
    CudnnObstacle.LEFT_PADDING: ("Pad the sequences on the right", PAD_RIGHT),
    CudnnObstacle.MASK: ("Check that the mask is padded on the right only", PAD_RIGHT),
    CudnnObstacle.RAGGED: (
        "Pad the ragged input on the right",
        "x = x.to_tensor()  # in the pipeline, before batches reach the model",
    ),
    CudnnObstacle.UNKNOWN: ("Look for what keeps the layer off cuDNN: the table of this rule's page", ""),
}


def _remedy(one: LoopedLayer) -> Remedy:
    action, code = REMEDIES[one.obstacles[0]]
    rate = (one.layer.recurrent.recurrent_dropout if one.layer.recurrent else None) or 0.0
    return Remedy(action, code.format(kind=one.layer.kind, rate=rate), one.layer.at)


def example(
    *obstacles: CudnnObstacle, loop_ms: float = 6.0, launching_ms: float = 20.0, step_ms: float = 30.0
) -> Verdict:
    """An LSTM with recurrent_dropout launches hundreds of kernels; the GPU idles for 20 of 30 ms."""
    row = OperationTime(
        name="lstm/while/body/_1/lstm/while/lstm_cell/MatMul", type="MatMul", ms=loop_ms,
        layer="lstm", at=Location("train.py", 9), calls=64.0,
    )  # fmt: skip
    arguments = RecurrentArguments(recurrent_dropout=0.2)
    layer = Layer(name="lstm", kind="LSTM", at=Location("train.py", 9), recurrent=arguments)
    looped = LoopedLayer(layer, (row,), obstacles or (CudnnObstacle.RECURRENT_DROPOUT,), launching_ms)
    step = Breakdown.of(host=step_ms - loop_ms, device=loop_ms)
    return check(RecurrentLayers((looped,), 1), step)


sick = example


def healthy() -> Verdict:
    """The layer is a kernel of cuDNN's."""
    return check(RecurrentLayers((), 1), Breakdown.of(host=1.0, device=2.0))
