"""An optimizer keeps a learning rate of 0.

## What it checks

Which optimizers were made with a learning rate of 0 and still have it at the end of the run, and the time per step
of what serves them alone: the gradients of their weights, what is propagated back only for these, and the updates
themselves.

## Why it matters

A rate of 0 keeps weights as they are, but the step computes their gradients, and moves the optimizer's averages, as
if they were trained. Back-propagation takes about twice as long as the forward pass.

## How to fix

Take gradients only for the weights that train: `tape.gradient(loss, head.trainable_variables)`. Or set
`layer.trainable = False` before the model is compiled; a BatchNormalization then uses its stored mean and variance,
which it does not with a rate of 0. If the rate is 0 by mistake, for instance as the default of an option, raise it.

Both save time only inside a `tf.function`, as in `fit`: TensorFlow removes from its graph what nothing uses. In
an eager step the tape still goes back through all that it recorded; compute what does not train before the tape
begins. (Four dense layers of 1,024 units under a head that trains, 256 examples, TensorFlow 2.21 on two shared
cores of an AMD EPYC, median of 12 turns: an eager step took 108 ms, 97 ms with the gradients of the head alone,
104 ms with `trainable = False` as well, and 47 ms with these layers before the tape; in a `tf.function` 99, 39,
29 and 26 ms.)

## Holds for

Keras 3 on TensorFlow, in recordings of `tfdoctor profile` that saw the end of the run. A schedule is not judged
(a warm-up may begin at 0), nor a rate that is set to another number later. Gradients of a `tf.function` that
nobody applies cost nothing: TensorFlow removes them from its graph.

## Sources

- [Transfer learning and fine-tuning, Keras](https://keras.io/guides/transfer_learning/)
- [Writing a training loop from scratch, Keras](https://keras.io/guides/writing_a_custom_training_loop_in_tensorflow/)
- [Introduction to gradients and automatic differentiation, TensorFlow guide](https://www.tensorflow.org/guide/autodiff)
- [Graphs and tf.function, TensorFlow guide: what is not executed](https://www.tensorflow.org/guide/intro_to_graphs)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.rules.zero_learning_rate.useless_work import UselessWork, total_ms
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Finding, Healthy, Location, Measure, Remedy, Verdict

TOPIC = Topic.OPERATIONS
SINCE = "0.2.0"
BY_HAND = "which weights are to be trained is for you to say"


@dataclass(frozen=True, slots=True)
class Limits:
    """When such an optimizer is worth a change."""

    share: float = share_limit(
        0.05, "Smallest share of the compute time in gradients and updates that change nothing; as in frozen-layers"
    )


def check(useless: UselessWork, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Compare the work for updates that change nothing with the compute time."""
    if not useless.optimizers:
        return Healthy(summary="No optimizer was made with a learning rate of 0 and kept it")
    part, names = operations.part(useless.ms), ", ".join(useless.optimizers)
    evidence = (
        Measure.share("share of the compute time for updates without effect", part.share, limits.share),
        Measure("gradients that only these updates use, per step", ms(total_ms(useless.gradients))),
        Measure("updates with a learning rate of 0, per step", ms(total_ms(useless.updates))),
        Measure("operations of both per step", count(sum(row.calls for row in useless.rows))),
    )
    if part.share < limits.share:
        return Healthy(summary=f"Updates by {names}, at a rate of 0, take {part}", evidence=evidence)
    return Finding(
        summary=f"{names} has a learning rate of 0: its gradients and updates take {part}",
        evidence=evidence,
        remedies=(_remedy(useless.at),),
        effects=tuple(row.scaled(0.0) for row in useless.rows if row.ms),
    )


def _remedy(at: Location | None) -> Remedy:
    return Remedy("Take gradients only for the weights that train", TRAINED, at)


TRAINED = """\
# within a tf.function, which drops what nothing uses; the weights at a rate of 0 are left out
gradients = tape.gradient(loss, head.trainable_variables)
optimizer.apply_gradients(zip(gradients, head.trainable_variables))
# or, before compile(): encoder.trainable = False"""


GRADIENT = OperationTime(name="gradient_tape/encoder/MatMul", type="MatMul", ms=5.0, at=Location("train.py", 12))
UPDATE = OperationTime(name="adam/Mul", type="Mul", ms=2.0, at=Location("train.py", 30))
SERVING = UselessWork(("adam",), Location("train.py", 17), (UPDATE,), (GRADIENT,))


def example(useless: UselessWork = SERVING, total: float = 14.0) -> Verdict:
    """Half of the compute time is for the optimizer of an encoder, whose rate is 0."""
    return check(useless, Operations.training(total, *useless.rows))


sick = example


def healthy() -> Verdict:
    """All optimizers have a rate above 0."""
    return example(UselessWork(()))
