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
gradients of the same call. It is unknown whether gradients are used where a line takes fewer than six before the
traced steps. NumPy reads a tensor without `.numpy()` in a way that does not show, as in `np.square(gradient)`:
where `tape.gradient` returned gradients without use, the saving is a ceiling, and the remedy states the
condition. On accelerators only the host's time is counted. Recording the forward pass costs time as well, which is
not counted.

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
from tfdoctor.rules.unused_gradients.unused_work import Unfollowed, UnusedWork
from tfdoctor.terms.humanize import counted, location, percent
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Evidence,
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
    share = breakdown.share(total_ms) if total_ms else 0.0
    if share < limits.share:
        return _below(unused, share, limits)
    return Finding(
        summary=_summary(unused, share),
        evidence=tuple(_evidence(unused, share, limits)),
        remedies=(Remedy(UNREAD if unused.returned else FOLLOW, BEFORE, unused.at),),
        effects=tuple(_effects(unused)),
    )


def _below(unused: UnusedWork, share: float, limits: Limits) -> Verdict:
    """Return what is known without a finding."""
    if unused.unfollowed:
        return NotApplicable(reason=_unknown(unused.unfollowed))
    if not unused.calls:
        return Healthy(summary="No traced step takes gradients outside of a tf.function")
    if not share:
        return Healthy(summary="Each eager gradient that is computed is used")
    evidence = tuple(_evidence(unused, share, limits))
    return Healthy(summary=_summary(unused, share), evidence=evidence)


def _summary(unused: UnusedWork, share: float) -> str:
    variables = counted(unused.unused, "variable")
    use = "no operation uses" if unused.returned else "the script does not ask for"
    return f"Eager steps compute gradients of {variables} that {use}: {percent(share)} of the step"


def _unknown(line: Unfollowed) -> str:
    where = f" at {location(line.at)}" if line.at else ""
    why = TOO_FEW if line.too_few else "the recorder saw no use of them before the traced steps"
    return f"unknown whether the gradients taken{where} are used, because {why}"


TOO_FEW = "fewer than six calls came before the traced steps; record with a higher --warmup"

FOLLOW = "Have the tape follow only what is trained"

UNREAD = "If the script does not read these gradients with NumPy, have the tape follow only what is trained"


def _effects(unused: UnusedWork) -> Iterator[Effect]:
    bound = Bound.AT_MOST if unused.returned else Bound.EXPECTED
    for stage, time_ms in ((Stage.DEVICE, unused.kernels_ms), (Stage.HOST, unused.host_ms)):
        if time_ms:
            yield Effect(stage, 0.0, StepWork.UNUSED_GRADIENTS, ms(time_ms), bound=bound)


def _evidence(unused: UnusedWork, share: float, limits: Limits) -> Iterator[Evidence]:
    yield Measure.share("share of the step for unused gradients", share, limits.share)
    yield Measure("variables that the tape follows", count(unused.variables))
    yield Measure("variables whose gradients no operation uses", count(unused.unused))
    yield Measure("unused gradients that tape.gradient returned", count(unused.returned))
    yield Measure("operations that only they need, per step", count(unused.operations))
    yield Measure("time in these operations' kernels per step", ms(unused.kernels_ms))
    yield Measure("time to start these operations per step", ms(unused.host_ms))
    yield Table(
        ("operation for unused gradients", "calls", "time in a step before tracing"),
        tuple((kind, count(calls), ms(time_ms)) for kind, calls, time_ms in unused.types),
    )
    yield Table(("variable whose gradient no operation uses",), tuple((name,) for name in unused.names))


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
    calls=20,
    variables=10,
    unused=6,
    names=("encoder/conv/kernel:0", "encoder/conv/bias:0"),
    types=(("Conv2DBackpropFilter", 3, 4.0), ("Conv2DBackpropInput", 3, 2.0)),
    at=Location("train.py", 43),
    operations=37.0,
    kernels_ms=6.0,
    host_ms=2.0,
)


def example(unused: UnusedWork = UNUSED, breakdown: Breakdown | None = None) -> Verdict:
    """An eager step asks for the gradients of the head, and computes those of the encoder as well."""
    return check(unused, breakdown or Breakdown.of(host=8.0, device=12.0))


sick = example


def healthy() -> Verdict:
    """The encoder runs before the tape begins."""
    return example(UnusedWork(calls=20))
