"""The recording itself limits what can be said.

## What it checks

Too few or uneven steps, warm-up inside the traced window, events that the profiler dropped, GPU kernels
that it could not record, steps slowed by profiling itself, and a machine that was busy with other work.

## Why it matters

Every figure of the report rests on the recording. A doubt about it is a doubt about all of them, so it
stands beside the findings, and the report states how far to trust it.

## How to fix

Each doubt comes with its own remedy, as a rule: record again, longer, on a quiet machine, with
`tfdoctor profile`.

## Holds for

All recordings and traces.

## Sources

- [Optimize TensorFlow performance using the Profiler](https://www.tensorflow.org/guide/profiler)
- [CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, NVIDIA](https://developer.nvidia.com/CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
"""

from dataclasses import asdict, dataclass

from tfdoctor.facts.machine.samples import BUSY_CORES
from tfdoctor.facts.quality import FEW_STEPS, SLOWED, UNEVEN, Doubt, Quality
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count
from tfdoctor.verdict import Finding, Healthy, Measure, Remedy, Severity, Verdict

TOPIC = Topic.RECORDING
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks; the trust that a report states does not follow them."""

    steps: float = limit(
        float(FEW_STEPS),
        "training steps traced: with fewer a median says little, because one late callback moves it",
    )
    uneven: float = limit(
        UNEVEN,
        "of the median step, over which the middle half of the steps spreads: beyond it the figures "
        "are of a mixture",
    )
    slowed: float = limit(
        SLOWED,
        "by which share steps took longer while they were traced: beyond it short operations are "
        "overstated",
    )
    busy_cores: float = limit(
        BUSY_CORES,
        "cores that other programs kept busy: beyond a quarter of a small machine they disturb",
    )


LIMITS = Limits()


def check(quality: Quality, limits: Limits = LIMITS) -> Verdict:
    """Report every doubt about the recording, the gravest first."""
    steps = Measure("training steps traced", count(quality.steps))
    found = quality.by(asdict(limits))
    if not found:
        return Healthy(
            summary=f"{quality.steps} steady training steps were traced", evidence=(steps,)
        )
    first, *others = found
    more = f" (and {len(others)} more)" if others else ""
    return Finding(
        summary=f"{first.what[0].upper()}{first.what[1:]}{more}",
        evidence=(steps,),
        remedies=tuple(Remedy(f"{doubt.what}: {doubt.remedy}") for doubt in found),
        severity=Severity.WARNING if first.grave else Severity.NOTE,
    )


def sick() -> Verdict:
    """One step was traced."""
    return check(
        Quality(
            1, (Doubt("only 1 training step was traced", "trace more (--steps 20)", grave=True),)
        )
    )


def healthy() -> Verdict:
    """Twenty steady steps."""
    return check(Quality(20))
