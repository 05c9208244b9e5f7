"""Expensive random distributions slow the step.

## What it checks

The time of operations inside the step that draw from normal, truncated normal, gamma, Poisson, binomial and
categorical distributions.

## Why it matters

Uniform numbers come straight from the generator's bits. A normal number needs a logarithm and a cosine,
truncated normal numbers are drawn until they fall inside the range, and gamma and Poisson numbers need loops.
Noise, jitter and dropout often work as well with uniform numbers.

## How to fix

Where only the mean and the variance of the noise matter, draw uniform numbers between -s and s, where s is the
standard deviation times the square root of 3. For masks, compare uniform numbers with the probability. Or draw
the noise in the input pipeline, where it overlaps with the step. Uniform noise is a different distribution: check
that the model does not depend on the tails (a variational autoencoder and diffusion models do).

## Holds for

All hardware. On a CPU the remaining time was measured (TensorFlow 2.21: uniform numbers take 0.4 of the time of
normal and 0.18 of truncated normal numbers). On other devices, and for other distributions, the saving is an
upper bound.

## Sources

- [tf.random.uniform](https://www.tensorflow.org/api_docs/python/tf/random/uniform)
- [tf.random.truncated_normal](https://www.tensorflow.org/api_docs/python/tf/random/truncated_normal)
- [Google Cloud, TensorFlow functions on TPUs](https://cloud.google.com/tpu/docs/tensorflow-performance-guide)
- CPU figures: measured for this rule, on an AMD EPYC with TensorFlow 2.21, 2026-11-21
"""

from dataclasses import dataclass

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.humanize import milliseconds, percent
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

UNIFORM = {
    "RandomStandardNormal": 0.4, "StatelessRandomNormal": 0.4, "StatelessRandomNormalV2": 0.4,
    "TruncatedNormal": 0.18, "StatelessTruncatedNormal": 0.18, "StatelessTruncatedNormalV2": 0.18,
}  # fmt: skip
"""Time of uniform numbers relative to these, on a CPU: a million uniform, normal and truncated normal numbers took
7.3, 18.4 and 39.5 ms, stateless ones 6.8, 21.7 and 40.4 ms (AMD EPYC, two cores, TensorFlow 2.21, 2026-11-21)."""

CHOICES = frozenset(("Multinomial", "StatelessMultinomial"))
"""Draws of categories, which no uniform noise can replace."""

OTHERS = frozenset(
    (
        "ParameterizedTruncatedNormal", "StatelessParameterizedTruncatedNormal", "RandomGamma",
        "StatelessRandomGammaV2", "StatelessRandomGammaV3", "RandomPoisson", "RandomPoissonV2",
        "StatelessRandomPoisson", "Multinomial", "StatelessMultinomial", "StatelessRandomBinomial",
    )
)  # fmt: skip
"""Expensive distributions without a measured ratio: how much time remains is unknown."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The share of the step from which random numbers are reported."""

    share: float = limit(
        0.05,
        "Smallest share of the compute time in expensive distributions that justifies changing a model",
        most=1.0,
    )


LIMITS = Limits()


def check(operations: Operations, hardware: Hardware, limits: Limits = LIMITS) -> Verdict:
    """Price each expensive draw at as many uniform numbers."""
    rows = [row for row in operations.rows if row.type in UNIFORM or row.type in OTHERS]
    if not rows and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    if not rows:
        return Healthy(summary="The step draws no random numbers from an expensive distribution")
    total_ms = sum(row.ms for row in rows)
    share = total_ms / operations.total_ms
    taken = f"{milliseconds(total_ms)} per step, {percent(share)} of the compute time"
    summary = f"Drawing from expensive random distributions takes {taken}"
    measures = _measures(total_ms, share, limits)
    if share < limits.share:
        return Healthy(summary=summary, evidence=measures)
    return Finding(
        summary=summary,
        evidence=(*measures, _table(rows)),
        remedies=(_remedy(rows),),
        effects=tuple(_effect(row, hardware) for row in rows),
    )


def _measures(total_ms: float, share: float, limits: Limits) -> tuple[Measure, ...]:
    label = "share of the compute time drawing from expensive distributions"
    return (
        Measure("time drawing from expensive distributions per step", ms(total_ms)),
        Measure(label, ratio(share), ratio(limits.share)),
    )


def _table(rows: list[OperationTime]) -> Table:
    cells = tuple(
        (row.layer or row.name, row.at or "unknown", row.type, count(row.calls), ms(row.ms))
        for row in rows
    )
    return Table(("layer", "your line", "operation", "calls", "time per step"), cells)


def _effect(row: OperationTime, hardware: Hardware) -> Effect:
    if hardware.kind == DeviceKind.CPU and row.type in UNIFORM:
        return Effect(Stage.DEVICE, UNIFORM[row.type], row.name, ms(row.ms))
    return Effect(Stage.DEVICE, 0.0, row.name, ms(row.ms), bound=Bound.AT_MOST)


def _remedy(rows: list[OperationTime]) -> Remedy:
    at = next((row.at for row in rows if row.at), None)
    if all(row.type in CHOICES for row in rows):
        return Remedy("Draw fewer numbers, or draw them in the input pipeline", IN_INPUT, at)
    action = "Draw uniform numbers with the same variance, or draw in the input pipeline"
    return Remedy(action, NOISE, at)


NOISE = """\
spread = 3.0**0.5 * deviation  # uniform in [-spread, spread] has that standard deviation
x = x + tf.random.uniform(tf.shape(x), -spread, spread)"""

IN_INPUT = """\
# runs while the previous step computes
dataset = dataset.map(draw, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)"""


def sick() -> Verdict:
    """Truncated normal noise takes a third of the compute time."""
    return check(
        Operations((_row("TruncatedNormal", 10.0), _work())), Hardware(DeviceKind.CPU, "example")
    )


def healthy() -> Verdict:
    """The step draws uniform noise."""
    return check(
        Operations((_row("RandomUniform", 2.0), _work())), Hardware(DeviceKind.CPU, "example")
    )


def _row(kind: str, ms: float) -> OperationTime:
    return OperationTime(
        name=f"model/noise/{kind}", type=kind, ms=ms, layer="noise", at=Location("train.py", 14)
    )


def _work() -> OperationTime:
    return OperationTime(name="gradient_tape/model/dense/MatMul", type="MatMul", ms=20.0)
