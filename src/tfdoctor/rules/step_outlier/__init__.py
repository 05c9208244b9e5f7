"""A few steps take much longer than others.

## What it checks

Steps that are longer than the others by more than Tukey's far-out fence and by 30 %: how many there are, how much
of the traced time they take beyond a steady step, at which interval they occur, and which part of the step grew.
A single long step, or several in which different parts grew, are not a pattern: they occur on every shared
machine. Nor are long steps that the untraced steps of the recording lack, or time between steps that the account of
the run has at the boundaries of epochs: `epoch-boundary` judges it. `recompilation` reports long steps in which XLA
compiles. Long steps in which the input stalls again and again are no outliers: their mean is part of the step, and
the rules for input find the cause. Where other programs used the cores meanwhile, they may be the cause: steps at
equal distances are then a note, and others are not judged, unless a callback is seen in them.

A distance is told, and counts as one, where at least four long steps have it: of all choices of three steps among
20, 8 % are equally far apart, of four 1 %.

Steps in which stack samples show a Keras callback, such as a checkpoint in every fifth step, count even where steps
vary too much for them to stand out: by the growth of the part that the callback runs in.

Where the whole run was recorded, also all its steps of more than 1.5 times the usual one: the lines that the stack
shows in them once the usual time is over. Reported are lines with 5 % of the time that recurs, and a second, also
where the traced window holds none of these steps. Waits for input and tracing are left to their rules.

Also the first steps of passes over the data outside of the traced steps, in training with `fit`: whether they take
at least twice as long as others pass after pass, and how much of the untraced time they add.

## Why it matters

The median step does not show long steps, but the run pays for them: a checkpoint of 2 s every 100 steps of 20 ms
doubles the training time.

## How to fix

The part that grew shows where to look. Where Python works, samples of its stack in the long steps name the line and
the function that it calls. Between steps: checkpoints, validation, logging, Python's garbage collector
(`gc.freeze()` after the start), and what Keras' `fit` does itself after each epoch (a new iterator, validation),
which counts where an epoch has few steps: use `dataset.repeat(10)` with a tenth of the epochs. Input: a shuffle
buffer that fills, a file that is opened, a shared disk. Host: tracing or compiling for a last, smaller batch
(`drop_remainder=True`).

## Holds for

All devices and frameworks, with at least six traced steps. A trace of 20 steps does not show a cause that
occurs every 1000 steps; the account of the whole run does. The saving of the run is an upper bound: the work may be
needed, only less often.

A shuffle buffer that is filled anew in each epoch is such a cause: the first step of each pass over the data waits
for it.

## Sources

- [Optimize TensorFlow performance using the Profiler](https://www.tensorflow.org/guide/profiler)
- [tf.data guide: randomly shuffling input data](https://www.tensorflow.org/guide/data#randomly_shuffling_input_data)
- [TensorFlow issue 30646: the shuffle buffer is filled in each epoch](https://github.com/tensorflow/tensorflow/issues/30646)
- [TensorFlow issue 47090: the same](https://github.com/tensorflow/tensorflow/issues/47090)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from types import MappingProxyType

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.step_time.breakdown import UNKNOWN, Breakdown
from tfdoctor.facts.step_time.compile_time import CompileTime
from tfdoctor.facts.step_time.long_step_lines import LongStepLine, LongStepLines
from tfdoctor.facts.step_time.slow_calls import SlowCall
from tfdoctor.facts.steps.pass_starts import PassStarts
from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.rules.step_outlier.epoch_ends import EpochEnds
from tfdoctor.rules.step_outlier.occasional_work import OccasionalWork
from tfdoctor.rules.step_outlier.pattern import MINORITY, NAMES, Pattern, called, work_of
from tfdoctor.terms.humanize import milliseconds, number, percent
from tfdoctor.terms.kinds import StepSource
from tfdoctor.terms.units import count, ms, ratio
from tfdoctor.terms.verdict import (
    Concern,
    Finding,
    Healthy,
    Location,
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
BY_HAND = "the cause of the long steps is not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    share: float = share_limit(
        0.05, "Smallest share of the traced time that long steps add, compared with steady steps"
    )
    long: float = limit(
        2.0,
        "Smallest number of separate occasions on which the same part is long; one may be chance, and "
        "adjacent long steps are one occasion, since other programs' work lasts longer than a step",
    )
    samples: float = limit(5.0, "Stack samples in long steps to name a line; with 5 its share is uncertain by 45 %")
    least_ms: float = limit(
        1000.0, "Shortest time in ms of lines in long steps of the whole run; below a second nobody waits for it"
    )
    steps: float = limit(
        6.0, "Smallest number of traced steps; at most one in three may be long, or no step counts as steady"
    )


MOST = 0.5
"""Share of the stack samples from which one line is the cause, and of the traced time from which samples without a
time are those of long steps."""


SHOWN_ROWS = 8
"""Rows of each table: the first long steps, and the lines with most samples."""


def check(  # noqa: PLR0913, PLR0917 - the traced steps, why they are long, and the others
    steps: Steps,
    breakdown: Breakdown,
    compiling: CompileTime | None,
    lines: LongStepLines | None,
    epochs: EpochEnds | None,
    starts: PassStarts | None,
    cores: Cores | None,
    pace: UntracedPace | None,
    run: RunSteps | None,
    work: OccasionalWork | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Report what the long steps cost: traced ones, those of the run, or those at the beginnings of passes."""
    traced = _of_callback(steps, breakdown, lines, pace, limits) if lines else None
    traced = traced or _traced(steps, breakdown, compiling, lines, epochs, cores, pace, run, limits)
    if work and work.share >= limits.share and work.ms >= limits.least_ms:
        if not isinstance(traced, Finding):
            return work.finding(limits.share)
        return replace(traced, run_effects=tuple(work.effects()), severity=None)
    if isinstance(traced, Finding) or starts is None or starts.share < limits.share:
        return traced
    return _of_passes(starts, limits)


def _of_passes(starts: PassStarts, limits: Limits) -> Finding:
    return Finding(
        concern=Concern.LONG_STEPS,
        summary=f"The first step of each pass over the data takes {milliseconds(starts.long_ms)} instead of "
        f"{milliseconds(starts.usual_ms)}: {percent(starts.share)} of the training time",
        evidence=(
            Measure.share(BEYOND, starts.share, limits.share),
            Measure("long first steps of passes", count(starts.number)),
            Measure("steps of a pass", count(starts.pass_steps)),
            Measure("what they add to the mean step", ms(starts.each_step_ms)),
        ),
        remedies=(REFILL,),
        severity=Severity.of(starts.share),
    )


BEYOND = "share of the untraced time added by the first steps of passes"


def _of_callback(
    steps: Steps, breakdown: Breakdown, lines: LongStepLines, pace: UntracedPace | None, limits: Limits
) -> Verdict | None:
    """Judge the steps that a callback makes long, which need not be outliers; None where they are no pattern."""
    known = (one for one in lines.callbacks if one.line.seen >= limits.samples)
    for one in known:
        pattern = Pattern.of_callback(one, steps, breakdown)
        if pattern and pattern.share >= limits.share and pattern.occasions >= limits.long:
            return _found(pattern, (one.line,), one.line, _less_often(one.line), pace, limits)
    return None


def _traced(  # noqa: PLR0913, PLR0917 - as above
    steps: Steps,
    breakdown: Breakdown,
    compiling: CompileTime | None,
    lines: LongStepLines | None,
    epochs: EpochEnds | None,
    cores: Cores | None,
    pace: UntracedPace | None,
    run: RunSteps | None,
    limits: Limits,
) -> Verdict:
    """Judge the outliers among the traced steps."""
    long = [at for at, steady in enumerate(steps.steady) if not steady]
    if reason := _why_not(steps, long, compiling, limits):
        return NotApplicable(reason=reason)
    found = Pattern.of_outliers(steps, breakdown, long)
    if not found.cause or found.occasions < limits.long or found.share < limits.share:
        return _without_pattern(found, limits)
    known = lines is not None and (lines.timed or found.share >= MOST)
    seen = lines.of(found.cause) if lines and known else ()
    main = _main(seen, limits)
    others = _others(cores) if cores and cores.contended and not (main and main.callback) else ""
    if others and not found.period:
        return NotApplicable(reason=f"{found.summary}{others}")
    within = main is not None and (main.callback or main.call is not SlowCall.FIT)
    if run and run.lack(found.share) and found.cause == Stage.BETWEEN and not within:
        return NotApplicable(reason=f"{found.summary}{OUTSIDE}")
    eager = steps.source is StepSource.EAGER_GRADIENT
    remedy = IN_PYTHON if eager and not main and found.cause == Stage.HOST else None
    verdict = _found(found, seen, main, remedy or _remedy(main, found, epochs), pace, limits)
    if not others or not isinstance(verdict, Finding):
        return verdict
    # Other programs may do their work at equal distances, too.
    return replace(verdict, summary=f"{verdict.summary}{others}", severity=Severity.NOTE)


def _others(cores: Cores) -> str:
    """Return a clause that other programs took the cores."""
    used = f"{number(cores.others)} of {number(cores.usable)} cores"
    return f", while other programs used {used}, which may be the cause: record on an idle machine"


OUTSIDE = ", but the account of the run has few such steps: the time between them is that between epochs"


def _why_not(steps: Steps, long: list[int], compiling: CompileTime | None, limits: Limits) -> str:
    """Return why the steps cannot be compared; "" when they can."""
    total = f"{len(steps.steps)} steps"
    if len(steps.steps) < limits.steps or len(long) * MINORITY > len(steps.steps):
        few = "too few steady steps to compare with; trace more with --steps"
        return f"{len(long)} of {total} in the trace are long: {few}"
    if long and compiling and compiling.apart.issuperset(long):
        return f"XLA compiled in all long steps ({len(long)} of {total}); see recompilation"
    return ""


def _without_pattern(found: Pattern, limits: Limits) -> Verdict:
    """Judge long steps that take little, or once, or for different reasons."""
    once = found.occasions < limits.long
    if Severity.of(found.share) is Severity.CRITICAL and (once or not found.cause):
        return NotApplicable(reason=f"{found.summary}{found.unclear}")
    why = ", on one occasion, which may be chance" if once else ", without a common cause"
    if not found.steps or (found.cause and not once):
        why = ""
    label = "share of the traced time added by long steps"
    measure = Measure.share(label, found.share, limits.share)
    return Healthy(summary=f"{found.summary}{why}", evidence=(measure,))


def _main(lines: Sequence[LongStepLine], limits: Limits) -> LongStepLine | None:
    """Return the line that most samples are in; None where there is none, or too few samples to tell."""
    total = sum(line.seen for line in lines)
    first = lines[0] if lines else None
    if first is None or first.at is None or total < limits.samples or first.seen < MOST * total:
        return None
    return first


def _found(
    pattern: Pattern,
    lines: Sequence[LongStepLine],
    main: LongStepLine | None,
    remedy: Remedy,
    pace: UntracedPace | None,
    limits: Limits,
) -> Verdict:
    """Report a pattern, unless the untraced steps contradict it."""
    if pace is not None and pace.contradicts(pattern.share):
        return NotApplicable(reason=f"{pattern.summary}, but the untraced steps lack such long ones")
    label = "share of the traced time added by long steps"
    return Finding(
        concern=Concern.LONG_STEPS,
        summary=f"{pattern.summary}{pattern.because(main)}",
        evidence=(
            Measure.share(label, pattern.share, limits.share),
            Measure("steady step", ms(pattern.steady_ms)),
            *_tables(pattern, lines),
        ),
        remedies=(remedy,),
        severity=Severity.of(pattern.share),
    )


def _tables(pattern: Pattern, lines: Sequence[LongStepLine]) -> Iterator[Table]:
    yield Table.of(
        pattern.steps,
        ("step", lambda step: count(step.number)),
        ("duration", lambda step: ms(step.total_ms)),
        ("part that grew most", lambda step: NAMES[step.part]),
        ("growth", lambda step: ms(step.growth_ms)),
        most=SHOWN_ROWS,
    )
    total = sum(line.seen for line in lines)
    if lines:
        yield Table.of(
            lines,
            ("your line", lambda line: line.at or ""),
            ("calls", work_of),
            ("callback", lambda line: line.callback),
            ("stack samples in long steps", lambda line: count(line.seen)),
            ("share of them", lambda line: ratio(line.seen / total)),
            most=SHOWN_ROWS,
        )


def _remedy(main: LongStepLine | None, found: Pattern, epochs: EpochEnds | None) -> Remedy:
    """Return what to do about the line, or about the part where no line is known."""
    if main is None:
        return REMEDIES[found.cause]
    if epochs is not None and main.at == epochs.fit_at and not main.callback:
        at_ends = any(epochs.explains(step.number) for step in found.steps)
        return Remedy(LONGER_EPOCHS, REPEAT, main.at) if at_ends else REMEDIES[found.cause]
    return _less_often(main)


def _less_often(line: LongStepLine) -> Remedy:
    within = f" in {line.callback}" if line.callback else ""
    if not called(line):
        return Remedy(f"Do less work{within or ' in this line'}, or do it less often", at=line.at)
    return Remedy(f"Call {called(line)}{within} less often, or once per epoch", at=line.at)


LONGER_EPOCHS = "Give each epoch more steps, or validate less often: fit itself takes this time between two epochs"

REPEAT = """\
model.fit(dataset.repeat(10), epochs=epochs // 10)  # as many steps
model.fit(..., validation_freq=10)  # validates after every tenth epoch"""

REFILL = Remedy(
    "Find what the input does before the first batch of each pass: a shuffle buffer that is filled anew makes all "
    "its elements, so cache them before the shuffle, or make its buffer smaller",
    "dataset = dataset.map(function).cache().shuffle(buffer_size)",
)

PREFETCH = "dataset.prefetch(tf.data.AUTOTUNE)  # prepares batches ahead of a slow one"

REMEDIES = {
    Stage.INPUT: Remedy(
        "Find why some batches take longer, such as a buffer that fills or a file that is opened", PREFETCH
    ),
    Stage.TRANSFER: Remedy("Find what else is copied in these steps"),
    Stage.HOST: Remedy("Check whether a function is traced or a program compiled in these steps"),
    Stage.DEVICE: Remedy("Check what else uses the device or its cores in these steps"),
    Stage.COLLECTIVE: Remedy("Check which host is late in these steps"),
    Stage.BETWEEN: Remedy(
        "Do less work between these steps, or do it less often: checkpoints, validation, logging"
    ),
    UNKNOWN: Remedy("Record the device's work to see what takes longer"),
}

IN_PYTHON = Remedy("Find what Python does in these steps and not in the others")
"""Of a loop that runs operation by operation, which traces and compiles nothing."""


SAVE = LongStepLine(Location("train.py", 30), 40, "keras.Model.save_weights", "Save.on_train_batch_end")
SAVES = LongStepLines({Stage.BETWEEN: (SAVE,)})


def example(  # noqa: PLR0913 - the rule's own
    extra: Mapping[int, tuple[str, float]] = MappingProxyType(dict.fromkeys((5, 15, 25), (Stage.BETWEEN, 100.0))),
    *,
    count: int = 30,
    compiling: CompileTime | None = None,
    lines: LongStepLines | None = SAVES,
    epochs: EpochEnds | None = None,
    starts: PassStarts | None = None,
    cores: Cores | None = None,
    pace: UntracedPace | None = None,
    run: RunSteps | None = None,
    work: OccasionalWork | None = None,
    source: StepSource = StepSource.MARKERS,
) -> Verdict:
    """A checkpoint of 100 ms follows every tenth step."""
    rows = [{**Breakdown.of(device=10.0).steps[0]} for _ in range(count)]
    for at, (part, more) in extra.items():
        rows[at][part] += more
    ends = [0, *accumulate(round(sum(row.values()) * PS_PER_MS) for row in rows)]
    steps = [Step(at, start, end, end) for at, (start, end) in enumerate(pairwise(ends))]
    parts = Breakdown(tuple(rows), rows[0])
    found = Steps.of(steps, source)
    return check(found, parts, compiling, lines, epochs, starts, cores, pace, run, work)


sick = example


def healthy() -> Verdict:
    """Thirty steps of the same length."""
    return example({}, lines=None)
