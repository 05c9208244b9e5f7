"""A few steps take much longer than the others.

## What it checks

Steps that are longer than the others by more than Tukey's far-out fence and by 30 %: how many, how much of
the traced time they take beyond a usual step, at which distance they come, and which part of them grew. A
single long step, or several whose longer part is not the same, are no pattern: on a machine that others
use there always are some. Long steps in which XLA compiles are left to `recompilation`.

## Why it matters

The median step does not show them, and the run still pays: a checkpoint of 2 s every 100 steps of 20 ms
doubles its time.

## How to fix

What grew tells where to look. Between the steps: checkpoints, validation, logs, Python's garbage collector
(`gc.freeze()` after the start). Input: a shuffle buffer that fills, a file that is opened, a disk that
others use. The host's part: tracing or compiling for a last, smaller batch (`drop_remainder=True`).

## Holds for

All devices and frameworks, from six steps on. A window of 20 steps sees no cause that comes every 1000.

## Sources

- [Optimize TensorFlow performance using the Profiler](https://www.tensorflow.org/guide/profiler)
- [tf.data guide: randomly shuffling input data](https://www.tensorflow.org/guide/data#randomly_shuffling_input_data)
"""

from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.facts.time.breakdown import UNKNOWN, Breakdown
from tfdoctor.facts.time.compile_time import CompileTime
from tfdoctor.humanize import counted, milliseconds, percent
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Cell,
    Concern,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        0.05, "of the traced time that long steps take beyond a usual one", most=1.0
    )
    long: float = limit(
        2.0,
        "times that steps were long for the same part: a single one may be chance, and long steps beside "
        "each other are one time (what else a machine does lasts longer than a step)",
    )
    steps: float = limit(
        6.0, "traced steps, of which one in three at most may be long: else none is usual"
    )


LIMITS = Limits()

MINORITY = 3
"""Usual steps are at least two in three."""


def check(
    steps: Steps, breakdown: Breakdown, compiling: CompileTime | None, limits: Limits = LIMITS
) -> Verdict:
    """Weigh the long steps, and find out which part of them grew."""
    long = [at for at, steady in enumerate(steps.steady) if not steady]
    if len(steps.steps) < limits.steps or len(long) * MINORITY > len(steps.steps):
        few = f"{counted(len(steps.steps), 'step')} were traced, {len(long)} of them long"
        return NotApplicable(reason=f"{few}: too few to tell a usual one; trace more with --steps")
    if long and compiling and compiling.apart.issuperset(long):
        which = f"the {len(long)} long ones of {counted(len(steps.steps), 'step')}"
        return NotApplicable(reason=f"XLA compiled in {which}; recompilation tells what helps")
    usual = median(step.total_ms for step in steps.steady_steps)
    beyond = sum((steps.steps[at].total_ms - usual) * steps.steps[at].calls for at in long)
    whole = sum(step.total_ms * step.calls for step in steps.steps)
    share = beyond / whole if whole else 0.0
    measure = Measure("of the time beyond usual steps", ratio(share), ratio(limits.share))
    said = f"{len(long)} of {counted(len(steps.steps), 'step')} took much longer than the others"
    grew = _common(long, breakdown, steps)
    times = sum(at - 1 not in long for at in long)
    if Severity.of(share) is Severity.CRITICAL and (not grew or times < limits.long):
        return NotApplicable(reason=f"{said}, {_unclear(long, breakdown, steps, share, times)}")
    if share < limits.share or times < limits.long or not grew:
        why = ", without a common cause" if times >= limits.long and not grew else ""
        once = ", at one time: that may be chance" if long and times < limits.long else ""
        return Healthy(summary=said + (why or once), evidence=(measure,))
    rows = tuple((count(steps.steps[at].number), *_row(at, steps, breakdown)) for at in long[:8])
    longest = max(steps.steps[at].total_ms for at in long)
    return Finding(
        concern=Concern.LONG_STEPS,
        summary=f"{said}, for {NAMES[grew]}: up to {milliseconds(longest)} instead of "
        f"{milliseconds(usual)}{_period([steps.steps[at] for at in long])}",
        evidence=(measure, Measure("usual step", ms(usual)), Table(COLUMNS, rows)),
        remedies=(Remedy(*REMEDIES[grew]),),
        severity=Severity.of(share),
    )


def _unclear(long: list[int], breakdown: Breakdown, steps: Steps, share: float, times: int) -> str:
    """Say where much of the time went without a pattern that is seen: an epoch's end, say."""
    parts = dict.fromkeys(NAMES[_grew(at, breakdown, steps)] for at in long)
    when = "at one time" if times == 1 else f"at {times} times"
    return (
        f"{when}, for {' and '.join(parts)}: {percent(share)} of the traced time went by there (as where an "
        "epoch ends, with a validation, a checkpoint or a shuffle buffer that fills anew); whether that comes "
        "again is not seen: trace more with --steps"
    )


def _common(long: list[int], breakdown: Breakdown, steps: Steps) -> str:
    """Return the part that accounts for most of each long step's excess; "" where they differ."""
    found = set()
    for at in long:
        part = _grew(at, breakdown, steps)
        excess = sum(breakdown.steps[at].values()) - sum(
            _usual(each, breakdown, steps) for each in breakdown.steps[at]
        )
        by = breakdown.steps[at][part] - _usual(part, breakdown, steps)
        found.add(part if by * 2 >= excess else "")
    return found.pop() if len(found) == 1 else ""


COLUMNS = ("step", "took", "what grew most", "by")


def _row(at: int, steps: Steps, breakdown: Breakdown) -> tuple[Cell, ...]:
    grew = _grew(at, breakdown, steps)
    by = breakdown.steps[at][grew] - _usual(grew, breakdown, steps)
    return ms(steps.steps[at].total_ms), NAMES[grew], ms(by)


def _grew(at: int, breakdown: Breakdown, steps: Steps) -> str:
    """Return the part of a step that is most above what is usual."""
    row = breakdown.steps[at]
    return max(row, key=lambda part: row[part] - _usual(part, breakdown, steps))


def _usual(part: str, breakdown: Breakdown, steps: Steps) -> float:
    rows = zip(breakdown.steps, steps.steady, strict=True)
    return median(row[part] for row, steady in rows if steady)


def _period(long: list[Step]) -> str:
    """Say at which distance they come, where it is always the same."""
    numbers = [step.number for step in long]
    distances = {after - before for before, after in pairwise(numbers)}
    if len(numbers) < MINORITY or len(distances) != 1:
        return ""
    return f", every {distances.pop()} steps"


NAMES = {
    Stage.INPUT: "a wait for input",
    Stage.TRANSFER: "copies",
    Stage.HOST: "what the host does",
    Stage.DEVICE: "what the device does",
    Stage.COLLECTIVE: "collectives",
    Stage.BETWEEN: "what happens after them",
    UNKNOWN: "an unknown cause",
}

LOOK = "dataset.prefetch(tf.data.AUTOTUNE)  # ahead of a batch that takes longer"

REMEDIES = {
    Stage.INPUT: (
        "Find out why some batches take longer: a buffer that fills, a file that is opened",
        LOOK,
    ),
    Stage.TRANSFER: ("Find out what else is copied in these steps", ""),
    Stage.HOST: ("See whether a function is traced, or a program compiled, in these steps", ""),
    Stage.DEVICE: ("See what else uses the device or its cores in these steps", ""),
    Stage.COLLECTIVE: ("See which host is late in these steps", ""),
    Stage.BETWEEN: (
        "Do less between these steps, or less often: checkpoints, validation, logs",
        "",
    ),
    UNKNOWN: ("Record the device's work, to see what takes longer", ""),
}


def sick() -> Verdict:
    """Every tenth step is followed by a checkpoint of 100 ms."""
    return check(*_example(100.0), None)


def healthy() -> Verdict:
    """Thirty even steps."""
    return check(*_example(0.0), None)


def _example(extra: float) -> tuple[Steps, Breakdown]:
    rows = [{**Breakdown.of(device=10.0).steps[0]} for _ in range(30)]
    for row in rows[5::10]:
        row["between"] = extra
    steps, start = [], 0
    for number, row in enumerate(rows):
        end = start + round(sum(row.values()) * PS_PER_MS)
        steps.append(Step(number, start, end, end))
        start = end
    return Steps.of(steps), Breakdown(tuple(rows), rows[0])
