"""Eager back-propagation computes gradients that nobody uses.

## What it checks

The operations that `tape.gradient` runs outside of a `tf.function`, and which of them only lead to gradients that
go into no operation afterwards and are not read. The recorder follows the tensors of two calls of each line
before the traced steps, up to the line's calls after them. Gradients that are accumulated, clipped, logged,
penalized, or applied by another optimizer are used.

## Why it matters

Outside of a `tf.function`, the tape goes back through everything that the loss was computed from, whichever
gradients it is asked for. A step that trains only the head of a network computes the gradients of its encoder as
well, and drops them. Back-propagation takes about twice as long as the forward pass.

## How to fix

Compute what you do not train before the tape begins, or within `tape.stop_recording()`. Asking for fewer
gradients, `tape.gradient(loss, head.trainable_variables)`, is not enough in an eager step, and neither is
`trainable = False` in Keras 3, whose variables the tape still follows. In a `tf.function` both are enough:
TensorFlow removes from its graph what nothing uses. Make the step a `tf.function` if it can be one. For the
gradient of an input alone, as in a gradient penalty, use `tf.GradientTape(watch_accessed_variables=False)` and
watch the input.

## Holds for

Eager steps in recordings of `tfdoctor profile`, TensorFlow 2.2 and later, that train at least one variable with
gradients of the same call. Tensors that NumPy reads without `.numpy()`, as in `np.square(gradient)`, do not show
as used. On accelerators only the host's time is counted. Recording the forward pass costs time as well, which is
not counted, so the saving is rather low.

## Sources

- [Introduction to gradients and automatic differentiation, TensorFlow guide: controlling what the tape watches](https://www.tensorflow.org/guide/autodiff)
- [Advanced automatic differentiation, TensorFlow guide: stop recording](https://www.tensorflow.org/guide/advanced_autodiff)
- [Graphs and tf.function, TensorFlow guide: what is not executed](https://www.tensorflow.org/guide/intro_to_graphs)
- [The tape's walk back from the loss, TensorFlow source](https://github.com/tensorflow/tensorflow/blob/v2.16.1/tensorflow/c/eager/tape.h)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.unused_gradients.unused_work import UnusedWork
from tfdoctor.terms.humanize import counted, percent
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Evidence,
    Finding,
    Healthy,
    Location,
    Measure,
    Remedy,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
BY_HAND = "which part of the network is not trained is for you to say"


@dataclass(frozen=True, slots=True)
class Limits:
    """When such work is worth a change."""

    share: float = share_limit(
        0.05, "Smallest share of the step in gradients that nobody uses; as in zero-learning-rate"
    )


def check(unused: UnusedWork, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Compare the work for unused gradients with the step."""
    total_ms = unused.kernels_ms + unused.host_ms
    if not total_ms:
        return Healthy(summary="Each eager gradient that is computed is used")
    share = breakdown.share(total_ms)
    evidence = tuple(_evidence(unused, share, limits))
    said = f"gradients of {counted(unused.unused, 'variable')} that nobody uses: {percent(share)}"
    if share < limits.share:
        return Healthy(summary=f"Eager steps compute {said} of the step", evidence=evidence)
    return Finding(
        summary=f"Eager steps compute {said} of the step",
        evidence=evidence,
        remedies=(Remedy("Have the tape follow only what is trained", BEFORE, unused.at),),
        effects=tuple(_effects(unused)),
    )


SUBJECT = "unused gradients"
"""The name of this work for the step model."""


def _effects(unused: UnusedWork) -> Iterator[Effect]:
    for stage, time_ms in ((Stage.DEVICE, unused.kernels_ms), (Stage.HOST, unused.host_ms)):
        if time_ms:
            yield Effect(stage, 0.0, SUBJECT, ms(time_ms), bound=Bound.EXPECTED)


def _evidence(unused: UnusedWork, share: float, limits: Limits) -> Iterator[Evidence]:
    yield Measure.share("share of the step for unused gradients", share, limits.share)
    yield Measure("variables that the tape follows", count(unused.variables))
    yield Measure("variables whose gradients nobody uses", count(unused.unused))
    yield Measure("unused gradients that tape.gradient returned", count(unused.returned))
    yield Measure("operations that only they need, per step", count(unused.operations))
    yield Measure("time in these operations' kernels per step", ms(unused.kernels_ms))
    yield Measure("time to start these operations per step", ms(unused.host_ms))
    yield Table(
        ("operation for unused gradients", "calls", "time in a step before tracing"),
        tuple((kind, count(calls), ms(time_ms)) for kind, calls, time_ms in unused.types),
    )
    yield Table(("variable whose gradient nobody uses",), tuple((name,) for name in unused.names))


BEFORE = """\
features = encoder(images, training=False)  # before the tape: nothing is propagated back through it
with tf.GradientTape() as tape:
    loss = loss_fn(labels, head(features, training=True))
gradients = tape.gradient(loss, head.trainable_variables)
optimizer.apply_gradients(zip(gradients, head.trainable_variables))
# or follow only what is needed, such as an input for its gradient:
with tf.GradientTape(watch_accessed_variables=False) as tape:
    tape.watch(x)"""


UNUSED = UnusedWork(
    variables=10,
    unused=6,
    returned=6,
    names=("encoder/conv/kernel:0", "encoder/conv/bias:0"),
    types=(("Conv2DBackpropFilter", 3, 4.0), ("Conv2DBackpropInput", 3, 2.0)),
    at=Location("train.py", 43),
    operations=37.0,
    kernels_ms=6.0,
    host_ms=2.0,
)


def example(unused: UnusedWork = UNUSED, breakdown: Breakdown | None = None) -> Verdict:
    """An eager step computes the gradients of an encoder, and applies those of the head."""
    return check(unused, breakdown or Breakdown.of(host=8.0, device=12.0))


sick = example


def healthy() -> Verdict:
    """The encoder runs before the tape begins."""
    return example(UnusedWork())
