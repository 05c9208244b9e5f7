"""Expensive random distributions slow the step.

## What it checks

The time of operations inside the step that draw from normal, truncated normal, gamma, Poisson, binomial and
categorical distributions.

## Why it matters

Uniform numbers come straight from the generator's bits. A normal number needs a logarithm and a cosine,
truncated normal numbers are drawn until they fall inside the range, and gamma and Poisson numbers need loops.
Noise, jitter and dropout often work as well with simpler distributions. Normal noise is often a part of the
method (a variational autoencoder, diffusion), and only another model avoids it: it counts as necessary work.

## How to fix

Replace Poisson numbers of a mean of about ten or more by normal numbers of the same mean and variance. Where
only the mean and the variance of other noise matter, draw uniform numbers between -s and s, where s is the
standard deviation times the square root of 3. For masks, compare uniform numbers with the probability. Or draw
the noise in the input pipeline, where it overlaps with the step. Uniform noise is a different distribution: check
that the model does not depend on the tails (a variational autoencoder and diffusion models do).

## Holds for

All hardware. On a CPU the remaining time was measured (TensorFlow 2.21: uniform numbers take 0.18 of the time of
truncated normal numbers, the normal approximation 0.1 of that of Poisson numbers). On other devices, and for
other distributions, the saving is an upper bound.

## Sources

- [tf.random.uniform](https://www.tensorflow.org/api_docs/python/tf/random/uniform)
- [tf.random.truncated_normal](https://www.tensorflow.org/api_docs/python/tf/random/truncated_normal)
- [Google Cloud, TensorFlow functions on TPUs](https://cloud.google.com/tpu/docs/tensorflow-performance-guide)
- [Poisson distribution, NIST handbook](https://www.itl.nist.gov/div898/handbook/eda/section3/eda366j.htm)
- CPU figures: measured for this rule, on an AMD EPYC (truncated normal) and an Intel Xeon (Poisson) with
  TensorFlow 2.21, 2026-11-21 and 2026-11-22
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import found
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, PartTime, Remedy, Stage, Table, Verdict

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
BY_HAND = "other random numbers change what the model learns from"

NORMAL = frozenset(("RandomStandardNormal", "StatelessRandomNormal", "StatelessRandomNormalV2"))
"""Draws that only another method avoids. Uniform numbers take 0.4 of their time on a CPU (see REMAINING)."""

POISSON = frozenset(("RandomPoisson", "RandomPoissonV2", "StatelessRandomPoisson"))
"""Draws that normal numbers of the same mean and variance replace where the mean is large."""

REMAINING = {
    "TruncatedNormal": 0.18, "StatelessTruncatedNormal": 0.18, "StatelessTruncatedNormalV2": 0.18,
    **dict.fromkeys(POISSON, 0.1),
}  # fmt: skip
"""Time of the replacement relative to these, on a CPU: a million uniform, normal and truncated normal numbers took
7.3, 18.4 and 39.5 ms, stateless ones 6.8, 21.7 and 40.4 ms (AMD EPYC, two cores, TensorFlow 2.21, 2026-11-21); a
million Poisson numbers of a mean of 5 and of 50 took 275 and 205 ms, their normal approximation 21 ms (Intel Xeon,
two shared cores, TensorFlow 2.21, 2026-11-22, least of nine)."""

CHOICES = frozenset(("Multinomial", "StatelessMultinomial"))
"""Draws of categories, which no uniform noise can replace."""

OTHERS = frozenset(
    (
        "ParameterizedTruncatedNormal", "StatelessParameterizedTruncatedNormal", "RandomGamma",
        "StatelessRandomGammaV2", "StatelessRandomGammaV3", "Multinomial", "StatelessMultinomial",
        "StatelessRandomBinomial",
    )
)  # fmt: skip
"""Expensive distributions without a measured ratio: how much time remains is unknown."""

PRECONDITIONS = (
    found(
        Operations,
        lambda operations: _drawn(operations, normal=True),
        "The step draws no random numbers from an expensive distribution",
    ),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The share of the step from which random numbers are reported."""

    share: float = share_limit(
        0.05, "Smallest share of the compute time in expensive distributions that justifies changing a model"
    )


def check(operations: Operations, hardware: Hardware, limits: Limits = Limits()) -> Verdict:
    """Price each expensive draw at what replaces it."""
    rows, drawn = _drawn(operations), _drawn(operations, normal=True)
    part, both = (operations.part(sum(row.ms for row in some)) for some in (rows, drawn))
    work = "drawing from expensive distributions"
    takes = "Drawing from expensive random distributions takes"
    if part.share >= limits.share:
        known = REMAINING if hardware.kind == DeviceKind.CPU else {}
        return Finding(
            summary=f"{takes} {part}",
            evidence=(*part.measures(work, limits.share), _table(rows)),
            remedies=(_remedy(rows),),
            effects=tuple(
                row.scaled(known[row.type]) if row.type in known else row.scaled(0.0, Bound.AT_MOST) for row in rows
            ),
        )
    summary, measures = f"{takes} {both}", both.measures(work, limits.share)
    if both.share < limits.share:
        return Healthy(summary=summary, evidence=measures)
    # The method may need normal noise: only another model avoids it.
    why = f"{summary}; normal noise is often a part of the method"
    time = PartTime(Stage.DEVICE, ms(both.ms), why)
    return Healthy(summary=why, evidence=(*measures, _table(drawn)), necessary=(time,))


def _drawn(operations: Operations, *, normal: bool = False) -> list[OperationTime]:
    """Return the draws from expensive distributions, and from normal ones after them."""
    rows = [row for row in operations.rows if row.type in REMAINING or row.type in OTHERS]
    return rows + [row for row in operations.rows if normal and row.type in NORMAL]


def _table(rows: list[OperationTime]) -> Table:
    return Table.of(
        rows,
        ("layer", lambda row: row.layer or row.name),
        ("your line", lambda row: row.at),
        ("operation", lambda row: row.type),
        ("calls", lambda row: count(row.calls)),
        ("time per step", lambda row: ms(row.ms)),
    )


def _remedy(rows: list[OperationTime]) -> Remedy:
    at = next((row.at for row in rows if row.at), None)
    if all(row.type in CHOICES for row in rows):
        return Remedy("Draw fewer numbers, or draw them in the input pipeline", IN_INPUT, at)
    if any(row.type in POISSON for row in rows):
        action = "Draw normal numbers with the mean and variance of the Poisson distribution"
        return Remedy(action, APPROXIMATION, at)
    action = "Draw uniform numbers with the same variance, or draw in the input pipeline"
    return Remedy(action, NOISE, at)


NOISE = """\
spread = 3.0**0.5 * deviation  # uniform in [-spread, spread] has that standard deviation
x = x + tf.random.uniform(tf.shape(x), -spread, spread)"""

APPROXIMATION = """\
# close for means of about ten or more; below zero only for small ones
counts = mean + tf.sqrt(mean) * tf.random.normal(tf.shape(mean))"""

IN_INPUT = """\
# runs while the previous step computes
dataset = dataset.map(draw, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)"""


def example(
    kind: str = "TruncatedNormal",
    time_ms: float = 10.0,
    total_ms: float = 30.0,
    hardware: Hardware = Hardware(DeviceKind.CPU, "example"),
) -> Verdict:
    """Truncated normal noise takes a third of the compute time."""
    drawn = OperationTime(
        name=f"model/noise/{kind}", type=kind, ms=time_ms, layer="noise", at=Location("train.py", 14)
    )
    name = "gradient_tape/model/dense/MatMul"
    rest = OperationTime(name=name, type="MatMul", ms=total_ms - time_ms)
    return check(Operations((drawn, rest)), hardware)


sick = example


def healthy() -> Verdict:
    """The step draws uniform noise."""
    return example("RandomUniform", 2.0)
