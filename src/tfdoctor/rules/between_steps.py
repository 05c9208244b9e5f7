"""Time passes between two steps in which nothing trains.

## What it checks

The time from the end of one training call to the start of the next in which the device has nothing to
do: callbacks, metrics, logging, checkpoints, Python's garbage collector. `tfdoctor profile` looks at the
training thread now and then, and names the callback and the line it was at. Tracing a function anew and
making batches in the loop happen there too; retracing and python-input speak of those.

## Why it matters

Between two calls the accelerator idles, however fast it is.

## How to fix

Do it every N steps, or once an epoch. Keep metrics in TensorFlow operations inside the step. Save
checkpoints rarely (`keras.callbacks.BackupAndRestore` every so many steps: it saves while training waits)
or from a thread (`keras.callbacks.OrbaxCheckpoint`, `tf.train.CheckpointOptions(enable_async=True)`).

## Holds for

TensorFlow 2.3 and later on any device; lines and callbacks in recordings of `tfdoctor profile`. In a
custom loop over a dataset the whole body is the step, and what it does besides counts as the host's. The
profiler slows the calls and not what lies between them, so the share shown is rather low: a callback that
was said to take 59 % took 70 % of the step untraced.

## Sources

- [Writing your own callbacks](https://www.tensorflow.org/guide/keras/writing_your_own_callbacks)
- [Optimize GPU performance, TensorFlow guide: gaps between steps](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [tf.train.CheckpointOptions](https://www.tensorflow.org/api_docs/python/tf/train/CheckpointOptions)
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.facts.time.retracing import Retracing
from tfdoctor.facts.time.stack_samples import SampledLine, StackSamples
from tfdoctor.humanize import milliseconds
from tfdoctor.rule import Topic, limit
from tfdoctor.units import ms, ratio
from tfdoctor.verdict import (
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
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        0.05,
        "of the step that passes between two calls; xprof speaks of waits from 5 % on",
        most=1.0,
    )
    least_ms: float = limit(
        0.5, "ms per step; Keras' own loop takes 0.1 to 0.3 ms from one call to the next"
    )
    stack_samples: float = limit(
        5.0, "looks at the training thread from which on it is said what was going on"
    )


LIMITS = Limits()


def check(
    breakdown: Breakdown,
    seen: StackSamples | None,
    retracing: Retracing | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Take what is neither tracing nor making batches, and name where it was seen."""
    if not breakdown.step_ms:
        return NotApplicable(reason="the steps take no time")
    known = seen if seen and seen.sample_count >= limits.stack_samples else None
    functions = retracing.between_ms + retracing.calling_ms if retracing else 0.0
    whole = max(0.0, breakdown[Stage.BETWEEN] - functions)
    time = whole * (1.0 - known.share(known.makers)) if known else whole
    share = time / breakdown.step_ms
    measures = (
        Measure("of the step between two calls", ratio(share), ratio(limits.share)),
        Measure("per step", ms(time), ms(limits.least_ms)),
    )
    if share < limits.share or time < limits.least_ms:
        return Healthy(
            summary=f"{milliseconds(time)} pass between two steps", evidence=measures[:1]
        )
    others = [place for place in known.places if place not in known.makers] if known else []
    return Finding(
        summary=f"{milliseconds(time)} pass between two steps{_where(others)}",
        evidence=(*measures, *_table(others, time)),
        remedies=(_remedy(others),),
        effects=(_effect(others, time),),
    )


def _effect(places: Sequence[SampledLine], time: float) -> Effect:
    """Return what doing it every 100 steps leaves: of a callback a hundredth, of anything else it is not known."""
    rows = _named(places)
    if rows and rows[0][0]:
        part = rows[0][2] / sum(row[2] for row in rows)
        return Effect(Stage.BETWEEN, 1.0 - 0.99 * part, StepWork.BETWEEN_CALLS, ms(time))
    return Effect(Stage.BETWEEN, 0.0, StepWork.BETWEEN_CALLS, ms(time), bound=Bound.AT_MOST)


def _named(places: Sequence[SampledLine]) -> list[tuple[str, Location | None, int]]:
    """Return (callback, line, looks), most first; lines of one callback count together."""
    lines: dict[str | Location | None, Counter[Location | None]] = {}
    for place in places:
        lines.setdefault(place.callback or place.at, Counter())[place.at] += place.seen
    rows = [
        (key if isinstance(key, str) else "", own.most_common(1)[0][0], own.total())
        for key, own in lines.items()
    ]
    return sorted(rows, key=lambda row: -row[2])


def _where(places: Sequence[SampledLine]) -> str:
    """Say what took at least half of the time."""
    rows = _named(places)
    if not rows or rows[0][2] * 2 < sum(row[2] for row in rows):
        return ""
    callback, at, _ = rows[0]
    where = f"{at.path}:{at.line}" if at else ""
    if callback:
        return f", most of it in {callback}"
    return f", most of it at {where}" if where else ""


def _table(places: Sequence[SampledLine], time: float) -> tuple[Evidence, ...]:
    rows = _named(places)
    sample_count = sum(row[2] for row in rows)
    cells = tuple(
        (callback or "-", at or "unknown", ms(time * own / sample_count))
        for callback, at, own in rows[:8]
    )
    return (Table(("callback", "your line", "per step, about"), cells),) if cells else ()


def _remedy(places: Sequence[SampledLine]) -> Remedy:
    rows = _named(places)
    if rows and rows[0][0]:
        callback, at, _ = rows[0]
        return Remedy(f"Do what {callback} does every 100 batches, or once an epoch", EVERY, at)
    at = rows[0][1] if rows else None
    return Remedy("Do less between two steps, or only every 100 of them", SOMETIMES, at)


EVERY = """\
def on_train_batch_end(self, batch, logs=None):
    if batch % 100 == 0:
        ...  # what it did at each batch"""

SOMETIMES = """\
for step, batch in enumerate(batches):
    loss = train_step(batch)
    if step % 100 == 0:
        ...  # metrics, logging, checkpoints"""


def sick() -> Verdict:
    """Steps of 13 ms of which a callback takes 7."""
    line = Location("train.py", 27)
    seen = StackSamples((SampledLine(line, 11, "Weights.on_train_batch_end"),))
    return check(Breakdown.of(device=6.0, between=7.0), seen, Retracing())


def healthy() -> Verdict:
    """Steps of 6 ms that follow each other at once."""
    return check(Breakdown.of(device=6.0, between=0.1), StackSamples(), Retracing())
