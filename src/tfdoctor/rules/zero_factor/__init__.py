"""Results are computed and then multiplied by zero.

## What it checks

Gradients or losses that the step multiplies by a constant zero, and the operations that lead to these zeros alone:
back-propagation, the loss itself, and an optimizer's averages and updates that stay as they are. An example is a
backbone that is "frozen" by a factor of 0 for its gradients, or a penalty whose weight is 0.

## Why it matters

TensorFlow computes what is multiplied by zero, because the product is not zero where a value is infinite or NaN.
Back-propagation takes about twice as long as the forward pass.

## How to fix

Take gradients only for the weights that train: `tape.gradient(loss, head.trainable_variables)`, or set
`layer.trainable = False` before the model is compiled. Leave a loss out while its weight is 0, with an `if` on a
Python number. If the factor is 0 by mistake, for instance as the default of an argument, change it.

## Holds for

TensorFlow 2 graphs that XLA does not compile, on all devices, in recordings of `tfdoctor profile`. Factors in
variables or arguments of the step are not seen: they may change. An optimizer with weight decay still shrinks the
weights whose gradients are zero; without these gradients it does not. An optimizer's averages are taken to begin
at zero, as those of Keras do.

## Sources

- [Transfer learning and fine-tuning, Keras](https://keras.io/guides/transfer_learning/)
- [Introduction to gradients and automatic differentiation, TensorFlow guide](https://www.tensorflow.org/guide/autodiff)
- [TensorFlow, tf.math.multiply_no_nan: what differs from a product with zero](https://www.tensorflow.org/api_docs/python/tf/math/multiply_no_nan)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.rules.zero_factor.dropped_work import DroppedWork
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.units import count
from tfdoctor.terms.verdict import Finding, Healthy, Location, Measure, Remedy, Verdict

TOPIC = Topic.OPERATIONS
SINCE = "0.2.0"
BY_HAND = "which weights are to be trained, or which loss counts, is for you to say"


@dataclass(frozen=True, slots=True)
class Limits:
    """When such work is worth a change."""

    share: float = share_limit(
        0.05, "Smallest share of the compute time in results that become zero; as in zero-learning-rate"
    )


def check(dropped: DroppedWork, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Compare the work for zeros with the compute time."""
    if not dropped.factors:
        return Healthy(summary="No operation of the step multiplies by a constant zero")
    part = operations.part(dropped.ms)
    evidence = (
        *part.measures("for results that are multiplied by zero", limits.share),
        Measure("multiplications by zero", count(dropped.factors)),
        Measure("operations for them per step", count(sum(row.calls for row in dropped.rows))),
    )
    what = "gradients" if dropped.of_gradients else "results"
    if part.share < limits.share:
        return Healthy(summary=f"Work for {what} times zero takes {part}", evidence=evidence)
    return Finding(
        summary=f"{counted(dropped.factors, 'multiplication')} by zero drop {what}, which take {part}",
        evidence=evidence,
        remedies=(_remedy(dropped),),
        effects=tuple(row.scaled(0.0) for row in dropped.rows if row.ms),
    )


def _remedy(dropped: DroppedWork) -> Remedy:
    if dropped.of_gradients:
        return Remedy("Take gradients only for the weights that train", TRAINED, dropped.at)
    return Remedy("Compute this only where its factor is not zero", WEIGHED, dropped.at)


TRAINED = """\
gradients = tape.gradient(loss, head.trainable_variables)  # without those that were multiplied by 0
optimizer.apply_gradients(zip(gradients, head.trainable_variables))
# or, before compile(): backbone.trainable = False"""

WEIGHED = """\
loss = main_loss
if weight:  # a Python number: decided once, when the function is traced
    loss += weight * penalty()"""

GRADIENT = OperationTime(
    name="gradient_tape/backbone/conv/Conv2DBackpropFilter",
    type="Conv2DBackpropFilter",
    ms=90.0,
    at=Location("train.py", 12),
)
UPDATE = OperationTime(name="adam/Sub", type="Sub", ms=14.0, at=Location("train.py", 30))
DROPPED = DroppedWork(60, Location("train.py", 28), of_gradients=True, rows=(GRADIENT, UPDATE))


def example(dropped: DroppedWork = DROPPED, total: float = 198.0) -> Verdict:
    """The gradients of a backbone are multiplied by 0 at line 28, to freeze it."""
    return check(dropped, Operations.training(total, *dropped.rows))


sick = example


def healthy() -> Verdict:
    """No gradient is multiplied by zero."""
    return example(DroppedWork())
