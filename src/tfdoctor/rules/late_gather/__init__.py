"""A product is computed for rows that nothing uses.

## What it checks

Matmuls and einsums whose results go into a `tf.gather` or a slice that takes a part of their rows, and into
nothing else, with the additions and activations between. An example is a layer that computes the logits of a
vocabulary at all positions of a sequence, of which only the masked positions or the last one are used.

## Why it matters

The other rows are computed for nothing, in the forward pass and again in the gradient, where they are zeros. For a
vocabulary of 16,000 words and 64 positions, one example's logits are 4 MB.

## How to fix

Take the rows before the product: gather the hidden states of these positions, then call the layer on them. The
results are the same, as each row of a product depends on that row of its first operand alone.

## Holds for

TensorFlow 2 graphs that XLA does not compile, on all devices, in recordings of `tfdoctor profile`. Selections whose
number of rows depends on the data (`tf.boolean_mask`, `tf.gather_nd`) are not seen, nor zeros in the weights of a
loss. The saving is an upper bound on GPUs and TPUs, where it was not measured: a smaller product may use less of
the device. The selection itself becomes cheaper as well, which is not counted.

## Sources

- [tf.gather](https://www.tensorflow.org/api_docs/python/tf/gather)
- [TensorFlow Models, MaskedLM: gathers the positions before the product](https://www.tensorflow.org/api_docs/python/tfm/nlp/layers/MaskedLM)
- [KerasHub, MaskedLMHead](https://keras.io/keras_hub/api/modeling_layers/masked_lm_head/)
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tfdoctor.diagnosis.preconditions import found
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.program import Shape
from tfdoctor.rules.late_gather.selected_products import SelectedProduct, SelectedProducts
from tfdoctor.terms.humanize import location, percent
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Remedy, Table, Verdict

TOPIC = Topic.OPERATIONS
SINCE = "0.2.0"
PRECONDITIONS = (
    found(
        SelectedProducts,
        lambda selected: selected.products,
        "No rows are selected from a product that nothing else uses",
    ),
)
BY_HAND = "the selection has to move before the call of the layer, often into another function"


@dataclass(frozen=True, slots=True)
class Limits:
    """Which selections are worth a change of their order."""

    kept: float = share_limit(
        0.5, "Largest share of the rows that is selected: above it, most of the product is used"
    )
    share: float = share_limit(
        0.05, "Smallest share of the compute time for rows that nothing uses; below it, the change is not worth it"
    )


def check(selected: SelectedProducts, operations: Operations, device: Device, limits: Limits = Limits()) -> Verdict:
    """Add up what the rows that nothing uses take, and compare it with the compute time."""
    products = [one for one in selected.products if one.kept <= limits.kept]
    bound = Bound.EXPECTED if device.kind is DeviceKind.CPU else Bound.AT_MOST
    changed = [pair for one in products for pair in _changed(one, operations.streaming_rate)]
    spared_ms = sum(row.ms * (1.0 - left) for row, left in changed)
    part = operations.part(spared_ms)
    evidence = (*part.measures("for rows that nothing uses", limits.share), _table(selected))
    if part.share < limits.share:
        return Healthy(summary=f"Rows of products that nothing uses take {part}", evidence=evidence)
    first = products[0]
    return Finding(
        summary=f"A product is computed for all rows{_at(first.product)}, and {percent(first.kept)} of them are "
        f"used: the others take {part}",
        evidence=evidence,
        remedies=tuple(Remedy(_action(one), CODE, one.at) for one in products),
        effects=tuple(replace(row.scaled(left, bound), narrows=True) for row, left in changed),
        alike=len(products) - 1,
    )


def _at(product: OperationTime) -> str:
    return f" at {location(product.at)}" if product.at else ""


def _changed(one: SelectedProduct, rate: float | None) -> Iterator[tuple[OperationTime, float]]:
    """Yield the operations, each with the share of its time that is left."""
    for row in one.rows:
        yield row, one.left(row, rate)


def _table(selected: SelectedProducts) -> Table:
    return Table.of(
        selected.products,
        ("product", lambda one: one.product.name),
        ("product's line", lambda one: one.product.at),
        ("computed", lambda one: _sizes(one.of)),
        ("selected", lambda one: _sizes(one.to)),
        ("time of all rows per step", lambda one: ms(one.ms)),
    )


def _sizes(shape: Shape) -> str:
    return " x ".join("batch" if size is None else str(size) for size in shape)


def _action(one: SelectedProduct) -> str:
    return f"Select the {percent(one.kept)} of the rows before the product{_at(one.product)}"


CODE = """\
hidden = tf.gather(hidden, positions, batch_dims=1)  # or hidden[:, -1]
logits = dense(hidden)  # instead of tf.gather(dense(hidden), positions, batch_dims=1)"""

LOGITS = OperationTime(name="model/logits/MatMul", type="MatMul", ms=34.0, at=Location("train.py", 31))
GRADIENT = OperationTime(name="gradient_tape/model/logits/MatMul/MatMul_1", type="MatMul", ms=30.0)


def example(kept: float = 10 / 64, *, total: float = 240.0, kind: DeviceKind = DeviceKind.CPU) -> Verdict:
    """The logits of 64 positions are computed, and those of 10 are gathered."""
    to = (None, round(64 * kept), 16000)
    one = SelectedProduct(LOGITS, (LOGITS, GRADIENT), kept, (None, 64, 16000), to, Location("train.py", 35))
    device = Device(kind, visible=1, used=1)
    return check(SelectedProducts((one,)), Operations.training(total, *one.rows), device)


sick = example


def healthy() -> Verdict:
    """Most positions are used."""
    return example(60 / 64)
