"""Random numbers of a dear distribution take a share of the step.

## What it checks

The time of operations that draw from normal, truncated normal, gamma, Poisson, binomial and categorical
distributions within the step.

## Why it matters

Uniform numbers come straight from the generator's bits. Normal ones cost a logarithm and a cosine each,
truncated ones are drawn until they fall inside, gamma and Poisson need loops: for noise, jitter and
dropout that nobody tells apart from uniform ones.

## How to fix

Where only mean and variance of the noise matter, draw uniform numbers between plus and minus the square
root of three times the standard deviation; for masks compare uniform numbers with the probability. Or draw
the noise in the input pipeline, where it overlaps with the step. It is another distribution: check that the
model does not depend on its tails (a variational autoencoder's does, as do diffusion models).

## Holds for

All hardware. On a CPU the time that is left is known by measurement (TensorFlow 2.21: uniform numbers take
0.4 of the time of normal ones and 0.18 of truncated normal ones); elsewhere the saving is a ceiling.

## Sources

- [tf.random.uniform](https://www.tensorflow.org/api_docs/python/tf/random/uniform)
- [tf.random.truncated_normal](https://www.tensorflow.org/api_docs/python/tf/random/truncated_normal)
- [Google Cloud, TensorFlow functions on TPUs](https://cloud.google.com/tpu/docs/tensorflow-performance-guide)
- CPU figures: measured for this rule, on an AMD EPYC with TensorFlow 2.21, 2026-11-21
"""

from dataclasses import dataclass

from tfdoctor.facts.operations.operations import Operations, OperationTime
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
"""The time of as many uniform numbers over that of these, on a CPU: a million of each took 7.3, 18.4 and
39.5 ms, stateless ones 6.8, 21.7 and 40.4 (AMD EPYC, two cores, TensorFlow 2.21, 2026-11-21)."""

OTHERS = frozenset(
    (
        "ParameterizedTruncatedNormal", "StatelessParameterizedTruncatedNormal", "RandomGamma",
        "StatelessRandomGammaV2", "StatelessRandomGammaV3", "RandomPoisson", "RandomPoissonV2",
        "StatelessRandomPoisson", "Multinomial", "StatelessMultinomial", "StatelessRandomBinomial",
    )
)  # fmt: skip
"""Dear ones of which no ratio was measured: what is left is not known."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        0.05,
        "of the compute time: another distribution is a change of the model, which less is not worth",
        most=1.0,
    )


LIMITS = Limits()


def check(operations: Operations, hardware: Hardware, limits: Limits = LIMITS) -> Verdict:
    """Price each dear draw at as many uniform numbers."""
    rows = [row for row in operations.rows if row.type in UNIFORM or row.type in OTHERS]
    if not rows and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    if not rows:
        return Healthy(summary="The step draws no random numbers of a dear distribution")
    total = sum(row.ms for row in rows)
    share = total / operations.total_ms
    measures = (
        Measure("random numbers of dear distributions per step", ms(total)),
        Measure("share of the compute time", ratio(share), ratio(limits.share)),
    )
    summary = f"Random numbers of dear distributions take {milliseconds(total)} per step"
    if share < limits.share:
        return Healthy(
            summary=f"{summary}, {percent(share)} of the compute time", evidence=measures
        )
    table = tuple(
        (row.layer or row.name, row.at or "unknown", row.type, count(row.calls), ms(row.ms))
        for row in rows
    )
    return Finding(
        summary=f"{summary}, {percent(share)} of the compute time",
        evidence=(*measures, Table(("layer", "your line", "draws", "calls", "per step"), table)),
        remedies=(_remedy(rows),),
        effects=tuple(_effect(row, hardware) for row in rows),
    )


def _effect(row: OperationTime, hardware: Hardware) -> Effect:
    if hardware.kind == DeviceKind.CPU and row.type in UNIFORM:
        return Effect(Stage.DEVICE, UNIFORM[row.type], row.name, ms(row.ms))
    return Effect(Stage.DEVICE, 0.0, row.name, ms(row.ms), bound=Bound.AT_MOST)


def _remedy(rows: list[OperationTime]) -> Remedy:
    at = next((row.at for row in rows if row.at), None)
    choice = all("ultinomial" in row.type for row in rows)
    if choice:
        return Remedy("Draw fewer, or in the input pipeline", IN_INPUT, at)
    return Remedy("Draw uniform numbers of the same variance, or in the input pipeline", NOISE, at)


NOISE = """\
spread = 3.0**0.5 * deviation  # uniform in [-spread, spread] has that standard deviation
x = x + tf.random.uniform(tf.shape(x), -spread, spread)"""

IN_INPUT = """\
# overlaps with the step before it
dataset = dataset.map(draw, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)"""


def sick() -> Verdict:
    """Truncated normal noise that takes a third of the compute time."""
    return check(
        Operations((_row("TruncatedNormal", 10.0), _work())), Hardware(DeviceKind.CPU, "example")
    )


def healthy() -> Verdict:
    """Uniform noise."""
    return check(
        Operations((_row("RandomUniform", 2.0), _work())), Hardware(DeviceKind.CPU, "example")
    )


def _row(kind: str, ms: float) -> OperationTime:
    return OperationTime(
        name=f"model/noise/{kind}", type=kind, ms=ms, layer="noise", at=Location("train.py", 14)
    )


def _work() -> OperationTime:
    return OperationTime(name="gradient_tape/model/dense/MatMul", type="MatMul", ms=20.0)
