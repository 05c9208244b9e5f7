from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.step_time.breakdown import UNKNOWN
from tfdoctor.facts.step_time.host_lines import LongStepLines
from tfdoctor.facts.step_time.python_work import CompileTime
from tfdoctor.facts.step_time.timed_line import SlowCall, TimedLine
from tfdoctor.facts.steps.untraced_pace import PassStarts, UntracedPace
from tfdoctor.rules.step_outlier.epoch_ends import EpochEnds
from tfdoctor.rules.step_outlier.occasional_work import OccasionalWork
from tfdoctor.rules.step_outlier.pattern import MINORITY, NAMES, Pattern

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
BY_HAND = "the cause of the long steps is not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = share_limit(0.05)
    long: float = limit(2.0)
    samples: float = limit(5.0)
    least_ms: float = limit(1000.0)
    steps: float = limit(6.0)


# Share of the stack samples from which one line is the cause, and of the traced time from which samples without a
# time are those of long steps.
MOST = 0.5
SHOWN = 3  # Lines with remedies of their own: those that take most

OF_LONG = "share of the traced time added by long steps"


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
            return _of_run(work, limits)
        return replace(traced, run_effects=tuple(work.effects()), severity=None)
    if isinstance(traced, Finding) or starts is None or starts.share < limits.share:
        return traced
    return Finding(
        concern=Concern.LONG_STEPS,
        summary=f"The first step of each pass over the data takes {milliseconds(starts.long_ms)} instead of "
        f"{milliseconds(starts.usual_ms)}: {percent(starts.share)} of the training time",
        evidence=(
            Measure.share(
                "share of the untraced time added by the first steps of passes", starts.share, limits.share
            ),
            Measure("long first steps of passes", count(starts.number)),
            Measure("steps of a pass", count(starts.pass_steps)),
            Measure("what they add to the mean step", ms(starts.each_step_ms)),
        ),
        remedies=(REFILL,),
        severity=Severity.of(starts.share),
    )


def _of_run(work: OccasionalWork, limits: Limits) -> Finding:
    """Report the lines of long steps in the whole run."""
    first = work.lines[0]
    every = f", about every {counted(work.every, 'step')}" if work.every else ""
    does = f" ({_function(first.calls)})" if first.calls else ""
    whats = [f"Call {_function(one.calls)}" if one.calls else "Do the work of this line" for one in work.lines]
    return Finding(
        summary=f"{work.long:,} of {counted(work.steps, 'step')} of the run took over 1.5 times the usual time"
        f"{every}, with {duration(first.ms)} ({percent(first.ms / work.ms * work.share)} of what recurs) at "
        f"{location(first.at)}{does}",
        evidence=(
            Measure.share("share in these lines of what recurs in the run", work.share, limits.share),
            Table.of(
                work.lines,
                ("your line", lambda line: line.at or ""),
                ("calls", lambda line: line.calls),
                ("time in long steps", lambda line: ms(line.ms)),
                ("stack samples", lambda line: count(line.samples)),
            ),
        ),
        remedies=tuple(
            Remedy(f"{what} less often, or once per epoch", at=line.at)
            for what, line in zip(whats[:SHOWN], work.lines, strict=False)
        ),
        run_effects=tuple(work.effects()),
        concern=Concern.LONG_STEPS,
        alike=len(work.lines) - 1,
    )


def _function(name: str) -> str:
    """Return the name of a function without its module; of a special method with its class: "Layer.__call__"."""
    of, name = ("", *name.split("."))[-2:]
    return f"{of}.{name}" if of and name.startswith("__") else name


def _of_callback(
    steps: Steps, breakdown: Breakdown, lines: LongStepLines, pace: UntracedPace | None, limits: Limits
) -> Verdict | None:
    """Judge the steps that a callback makes long, which need not be outliers; None where they are no pattern."""
    for part, line in lines.callbacks:
        pattern = Pattern.of_callback(part, line.steps, steps, breakdown) if line.seen >= limits.samples else None
        if pattern and pattern.share >= limits.share and pattern.occasions >= limits.long:
            return _found(pattern, (line,), line, _less_often(line), pace, limits)
    return None


def _traced(  # noqa: PLR0911, PLR0913, PLR0917 - as above
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
    total = f"{len(steps.steps)} steps"
    if len(steps.steps) < limits.steps or len(long) * MINORITY > len(steps.steps):
        few = "too few steady steps to compare with; trace more with --steps"
        return NotApplicable(reason=f"{len(long)} of {total} in the trace are long: {few}")
    if long and compiling and compiling.apart.issuperset(long):
        return NotApplicable(reason=f"XLA compiled in all long steps ({len(long)} of {total}); see recompilation")
    found = Pattern.of_outliers(steps, breakdown, long)
    if not found.cause or found.occasions < limits.long or found.share < limits.share:
        return _without_pattern(found, limits)
    known = lines is not None and (lines.timed or found.share >= MOST)
    seen = lines.of(found.cause) if lines and known else ()
    main, number_of = next(iter(seen), None), sum(line.seen for line in seen)
    if main and (main.at is None or number_of < limits.samples or main.seen < MOST * number_of):
        main = None
    others = ""
    if cores and cores.contended and not (main and main.callback):
        used = f"{number(cores.others)} of {number(cores.usable)} cores"
        others = f", while other programs used {used}, which may be the cause: record on an idle machine"
    if others and not found.period:
        return NotApplicable(reason=f"{found.summary}{others}")
    within = main is not None and (main.callback or main.call is not SlowCall.FIT)
    if run and run.lack(found.share) and found.cause == Stage.BETWEEN and not within:
        return NotApplicable(reason=f"{found.summary}{OUTSIDE}")
    eager = steps.source is StepSource.EAGER_GRADIENT and not main and found.cause == Stage.HOST
    verdict = _found(found, seen, main, IN_PYTHON if eager else _remedy(main, found, epochs), pace, limits)
    if not others or not isinstance(verdict, Finding):
        return verdict
    # Other programs may do their work at equal distances, too.
    return replace(verdict, summary=f"{verdict.summary}{others}", severity=Severity.NOTE)


OUTSIDE = ", but the account of the run has few such steps: the time between them is that between epochs"


def _without_pattern(found: Pattern, limits: Limits) -> Verdict:
    """Judge long steps that take little, or once, or for different reasons."""
    once = found.occasions < limits.long
    if Severity.of(found.share) is Severity.CRITICAL and (once or not found.cause):
        return NotApplicable(reason=f"{found.summary}{found.unclear}")
    why = ", on one occasion, which may be chance" if once else ", without a common cause"
    if not found.steps or (found.cause and not once):
        why = ""
    measure = Measure.share(OF_LONG, found.share, limits.share)
    return Healthy(summary=f"{found.summary}{why}", evidence=(measure,))


def _found(
    pattern: Pattern,
    lines: Sequence[TimedLine],
    main: TimedLine | None,
    remedy: Remedy,
    pace: UntracedPace | None,
    limits: Limits,
) -> Verdict:
    """Report a pattern, unless the untraced steps contradict it."""
    if pace is not None and pace.contradicts(pattern.share):
        return NotApplicable(reason=f"{pattern.summary}, but the untraced steps lack such long ones")
    mostly = f", mostly {_named(main)} at {location(main.at)}" if main else ""
    table = Table.of(
        pattern.steps,
        ("step", lambda step: count(step.number)),
        ("duration", lambda step: ms(step.total_ms)),
        ("part that grew most", lambda step: NAMES[step.part]),
        ("growth", lambda step: ms(step.growth_ms)),
        most=SHOWN_ROWS,
    )
    total = sum(line.seen for line in lines)
    of_lines = Table.of(
        lines,
        ("your line", lambda line: line.at or ""),
        ("calls", _named),
        ("callback", lambda line: line.callback),
        ("stack samples in long steps", lambda line: count(line.seen)),
        ("share of them", lambda line: ratio(line.seen / total)),
        most=SHOWN_ROWS,
    )
    return Finding(
        concern=Concern.LONG_STEPS,
        summary=f"{pattern.summary}{pattern.because(mostly)}",
        evidence=(
            Measure.share(OF_LONG, pattern.share, limits.share),
            Measure("steady step", ms(pattern.steady_ms)),
            table,
            *((of_lines,) if lines else ()),
        ),
        remedies=(remedy,),
        severity=Severity.of(pattern.share),
    )


def _called(line: TimedLine) -> str:
    """Return the function that a line calls; "" for fit, which has called the line's callback."""
    within = line.callback and line.call is SlowCall.FIT
    return "" if within else line.main_call.rpartition(".")[2]


def _named(line: TimedLine) -> str:
    return _called(line) or line.callback or "Python"


def _remedy(main: TimedLine | None, found: Pattern, epochs: EpochEnds | None) -> Remedy:
    """Return what to do about the line, or about the part where no line is known."""
    if main is None:
        return REMEDIES[found.cause]
    if epochs is not None and main.at == epochs.fit_at and not main.callback:
        at_ends = any(epochs.explains(step.number) for step in found.steps)
        return Remedy(LONGER_EPOCHS, CODE["repeat"], main.at) if at_ends else REMEDIES[found.cause]
    return _less_often(main)


def _less_often(line: TimedLine) -> Remedy:
    within = f" in {line.callback}" if line.callback else ""
    if not _called(line):
        return Remedy(f"Do less work{within or ' in this line'}, or do it less often", at=line.at)
    return Remedy(f"Call {_called(line)}{within} less often, or once per epoch", at=line.at)


LONGER_EPOCHS = "Give each epoch more steps, or validate less often: fit itself takes this time between two epochs"

REFILL = Remedy(
    "Find what the input does before the first batch of each pass: a shuffle buffer that is filled anew makes all "
    "its elements, so cache them before the shuffle, or make its buffer smaller",
    CODE["refill"],
)

REMEDIES = {
    Stage.INPUT: Remedy(
        "Find why some batches take longer, such as a buffer that fills or a file that is opened", CODE["prefetch"]
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

# Of a loop that runs operation by operation, which traces and compiles nothing.
IN_PYTHON = Remedy("Find what Python does in these steps and not in the others")
