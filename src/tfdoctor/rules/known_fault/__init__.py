"""This version of a library has a known fault.

## What it checks

The versions that the script imported, against a table of faults that made training slow, and for each of them
whether its sign is seen in the recording. A version alone makes no finding.

| library | versions | fault | sign |
|---|---|---|---|
| Keras | 3.0 to 3.6, on TensorFlow | `train_on_batch` traces in each call (67033) | nine of ten calls trace |

Other causes that depend on the version have rules of their own: sample-weight-scan (Keras before 2.13) and
embedding-gradient (Adam of Keras 3).

## Why it matters

The program is right, and no change of it removes the time. A call of `train_on_batch` took 76 to 156 ms for two
dense layers with Keras 3.1 to 3.6, and 0.6 to 3.4 ms with Keras 3.7 to 3.10.

## How to fix

Install a version in which the fault is repaired, or go around it: `fit` and `tf.function` are not concerned.

## Holds for

Recordings of `tfdoctor profile`. Keras 3.1 to 3.10 were measured with TensorFlow 2.16.1 on two cores; Keras 3.0 is
in the table by the thread alone.

## Sources

- [TensorFlow issue 67033: train_on_batch with TensorFlow 2.16](https://github.com/tensorflow/tensorflow/issues/67033)
- [Keras releases](https://github.com/keras-team/keras/releases)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.rules.known_fault.batch_tracing import BatchTracing
from tfdoctor.terms.humanize import location, number
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Bound,
    Concern,
    Finding,
    Healthy,
    Location,
    Measure,
    Recurrence,
    Remedy,
    RunEffect,
    Severity,
    Verdict,
)

TOPIC = Topic.RUN
SINCE = "0.2.0"
BY_HAND = "another version of a library is installed outside of the file"

KERAS = "keras"

FIRST, REPAIRED = (3, 0), (3, 7)
"""Versions of Keras between which train_on_batch gives its function a new generator in each call (tf 67033)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What is the sign of the fault."""

    share: float = share_limit(
        0.9, "Smallest share of the calls of train_on_batch that trace; the fault makes it all of them"
    )
    calls: float = limit(
        10.0, "Fewest calls of train_on_batch that show it; the first ones may trace for new shapes"
    )


def check(tracing: BatchTracing, limits: Limits = Limits()) -> Verdict:
    """Look for the sign of the fault of the version in use."""
    version = tracing.versions.get(KERAS)
    if version is None or not FIRST <= version < REPAIRED:
        return Healthy(summary=f"No fault is known of {_used(tracing)}", concern=Concern.RUN)
    keras = f"Keras {tracing.texts[KERAS]}"
    evidence = (
        Measure("calls of train_on_batch", count(tracing.calls), count(limits.calls)),
        Measure.share("share of these calls that trace", tracing.share, limits.share),
    )
    if tracing.calls < limits.calls or tracing.share < limits.share:
        summary = f"{keras} traces train_on_batch in each call, which this run does not show"
        return Healthy(summary=summary, evidence=evidence, concern=Concern.RUN)
    where = f" at {location(tracing.at)}" if tracing.at else ""
    return Finding(
        summary=f"{keras} traces its training function in {number(tracing.tracings)} of {number(tracing.calls)} "
        f"calls of train_on_batch{where}, a fault that Keras 3.7 repairs",
        evidence=evidence,
        remedies=(Remedy("Install Keras 3.7 or later", UPGRADE, tracing.at),),
        run_effects=_effects(tracing),
        severity=None if tracing.again_ms else Severity.WARNING,
        concern=Concern.RUN,
    )


def _used(tracing: BatchTracing) -> str:
    names = ((name, tracing.texts[name]) for name in ("tensorflow", KERAS) if name in tracing.texts)
    used = " and ".join(f"{name} {text}" for name, text in names)
    return f"{used} that slows training" if used else "the libraries in use"


def _effects(tracing: BatchTracing) -> tuple[RunEffect, ...]:
    """Return the time of all traces but the first, about the same time as any other finding on this function."""
    if not tracing.again_ms:
        return ()
    subject = f"{tracing.name} {location(tracing.at)}" if tracing.at else tracing.name
    return (
        RunEffect(
            phase=Phase.TRACING,
            of=ms(tracing.again_ms),
            subject=subject,
            recurs=Recurrence.PER_STEP,
            times=max(1, tracing.tracings - 1),
            bound=Bound.AT_MOST,
        ),
    )


UPGRADE = "# in the shell: pip install --upgrade 'keras>=3.7'"


def example(keras: str = "3.6.0", calls: int = 60, tracings: int = 60, again_ms: float | None = 6_400.0) -> Verdict:
    """All of 60 calls of train_on_batch trace, with Keras 3.6."""
    major, minor, *_ = map(int, keras.split("."))
    texts = {"tensorflow": "2.16.1", KERAS: keras}
    versions = {"tensorflow": (2, 16), KERAS: (major, minor)}
    at = Location("train.py", 9)
    return check(BatchTracing(versions, texts, calls, tracings, again_ms, "one_step_on_iterator", at))


sick = example


def healthy() -> Verdict:
    """Only the first call traces, with Keras 3.7."""
    return example("3.7.0", tracings=1)
