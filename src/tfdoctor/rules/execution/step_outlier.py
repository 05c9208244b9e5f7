from itertools import pairwise
from statistics import median

from tfdoctor.facts.phases.run_steps import OCCASIONS, RunLongLines
from tfdoctor.facts.step_time.breakdown import UNKNOWN
from tfdoctor.facts.step_time.host_lines import LongStepLines
from tfdoctor.facts.steps.steps import Step
from tfdoctor.facts.steps.untraced_pace import PassStarts, UntracedPace
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    long: float = limit(2.0)
    samples: float = limit(5.0)
    least_ms: float = limit(1000.0)
    steps: float = limit(6.0)


# Share of the stack samples from which one line is the cause, of the traced time from which samples without a time
# are those of long steps, and of a line's time in all steps from which it is what makes them long.
MOST = 0.5
MINORITY = 3  # At most one step in three is long: steady steps are at least two in three
# Of the smallest growth of a part in steps with samples of a callback: others that grew as much have it, too.
ALIKE = 0.75
# What a line does that makes a step long by itself; rules for input, tracing and building report the rest.
OWN_WORK = (RunWork.OTHER, RunWork.MODEL, RunWork.SAVING)
NEXT_TO = 2  # Steps from the last of an epoch to the first of the next: numbers begin with 0 or 1
OF_LONG = "share of the traced time added by long steps"
TOO_FEW = "too few steady steps to compare with; trace more with --steps"
OUTSIDE = ", but the account of the run has few such steps: the time between them is that between epochs"
UNCLEAR = (
    "The end of an epoch may be the cause (a validation, a checkpoint, a shuffle buffer that fills); trace more "
    "with --steps to see whether it recurs"
)
LONGER_EPOCHS = "Give each epoch more steps, or validate less often: fit itself takes this time between two epochs"
REFILL = Remedy(
    "Find what the input does before the first batch of each pass: a shuffle buffer that is filled anew makes all "
    "its elements, so cache them before the shuffle, or make its buffer smaller",
    CODE["refill"],
)
# The parts of a step: the name of what grew, and what to do where no line is known.
PARTS = {
    Stage.INPUT: (
        "a wait for input",
        "Find why some batches take longer, such as a buffer that fills or a file that is opened",
    ),
    Stage.TRANSFER: ("copies", "Find what else is copied in these steps"),
    Stage.HOST: ("host work", "Check whether a function is traced or a program compiled in these steps"),
    Stage.DEVICE: ("device work", "Check what else uses the device or its cores in these steps"),
    Stage.COLLECTIVE: ("collectives", "Check which host is late in these steps"),
    Stage.BETWEEN: (
        "work between steps",
        "Do less work between these steps, or do it less often: checkpoints, validation, logging",
    ),
    UNKNOWN: ("an unknown cause", "Record the device's work to see what takes longer"),
}  # fmt: skip


class Pattern(Record):
    """Long steps of one cause, each with the part that grew most compared with steady steps, and by how many ms."""

    steps: tuple[tuple[Step, str, float], ...]
    cause: str  # the part that grew, and accounts for most of each long step's growth; "" where they differ
    steady_ms: float | None  # None: whole steps are not longer than all others, but this part of them is
    share: float  # what they add to the traced time, 0 to 1
    occasions: int  # runs of adjacent steps
    summary: str

    @classmethod
    def of(
        cls, steps: Steps, grown: Mapping[int, tuple[str, float, float]], cause: str, steady_ms: float | None
    ) -> Self:
        """Return long steps by their places, each with its growth and with what it takes beyond steady steps."""
        every = steps.steps
        whole = sum(step.total_ms * step.calls for step in every)
        beyond = sum(more * every[at].calls for at, (*_, more) in grown.items())
        took = "took longer" if steady_ms is None else "took much longer"
        return cls(
            tuple((every[at], part, growth_ms) for at, (part, growth_ms, _) in grown.items()), cause, steady_ms,
            beyond / whole if whole else 0.0, sum(at - 1 not in grown for at in grown),
            f"{len(grown)} of {with_noun(len(every), 'step')} {took} than the others",
        )  # fmt: skip

    @classmethod
    def of_outliers(cls, steps: Steps, breakdown: Breakdown, long: Sequence[int]) -> Self:
        """Return the long steps, by their places, with their growth beyond steady steps."""
        rows = [row for row, steady in zip(breakdown.steps, steps.steady, strict=True) if steady]
        usual = {part: median(row[part] for row in rows) for part in breakdown.steps[0]}
        steady_ms = median(step.total_ms for step in steps.steady_steps)
        grown, causes = {}, set()
        for at in long:
            row = breakdown.steps[at]
            more, part = max(((row[part] - usual[part], part) for part in row), key=lambda one: one[0])
            grown[at] = part, more, steps.steps[at].total_ms - steady_ms
            causes.add(part if more * 2 >= sum(row.values()) - sum(usual.values()) else "")
        return cls.of(steps, grown, causes.pop() if len(causes) == 1 else "", steady_ms)

    @classmethod
    def of_callback(cls, part: Stage, shown: frozenset[int], steps: Steps, breakdown: Breakdown) -> Self | None:
        """Return the steps whose part grew as it does where the callback is seen; None where these are no minority.

        Samples show only some of them. Other programs' work shows little in the part that the callback runs in.
        """
        times = [row[part] for row in breakdown.steps]
        if len(shown) * MINORITY > len(times):
            return None
        usual_ms = median(time for at, time in enumerate(times) if at not in shown)
        least_ms = ALIKE * min(times[at] - usual_ms for at in shown)
        grown = {at: (part, t - usual_ms, t - usual_ms) for at, t in enumerate(times) if t - usual_ms >= least_ms}
        return None if least_ms <= 0.0 or len(grown) * MINORITY > len(times) else cls.of(steps, grown, part, None)

    @property
    def period(self) -> str:
        """A clause with the distance of the long steps, where it is always the same; else ""."""
        distances = {after.number - before.number for (before, *_), (after, *_) in pairwise(self.steps)}
        regular = len(self.steps) >= OCCASIONS and len(distances) == 1
        return f", every {distances.pop()} steps" if regular else ""


def check(  # noqa: PLR0913, PLR0917 - the traced steps, why they are long, and the others
    steps: Steps, breakdown: Breakdown, compiling: CompileTime | None, lines: LongStepLines | None,
    program: Program | None, starts: PassStarts | None, cores: Cores | None, pace: UntracedPace | None,
    run: RunSteps | None, phases: RunPhases | None, sampled: RunLongLines | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Report what the long steps cost: traced ones, those of the run, or those at the beginnings of passes."""
    traced: Verdict | None = None
    for part, line in lines.callbacks if lines else ():  # these need not be outliers
        found = Pattern.of_callback(part, line.steps, steps, breakdown) if line.seen >= limits.samples else None
        if found and found.share >= limits.share and found.occasions >= limits.long:
            traced = _found(found, (line,), line, _less_often(line), pace, limits)
            break
    traced = traced or _outliers(steps, breakdown, compiling, lines, program, cores, pace, run, limits)
    if run and phases and sampled:
        of_run = _of_run(run, phases, sampled, limits)
        if of_run and isinstance(traced, Finding):
            return replace(traced, run_effects=of_run.run_effects, severity=None)
        traced = of_run or traced
    if isinstance(traced, Finding) or starts is None or starts.share < limits.share:
        return traced
    added = "share of the untraced time added by the first steps of passes"
    return Finding(
        concern=Concern.LONG_STEPS,
        summary=f"The first step of each pass over the data takes {milliseconds(starts.long_ms)} instead of "
        f"{milliseconds(starts.usual_ms)}: {percent(starts.share)} of the training time",
        evidence=(
            Measure.share(added, starts.share, limits.share),
            Measure("long first steps of passes", count(starts.number)),
            Measure("steps of a pass", count(starts.pass_steps)),
            Measure("what they add to the mean step", ms(starts.each_step_ms)),
        ),
        remedies=(REFILL,),
        severity=Severity.of(starts.share),
    )


def _of_run(run: RunSteps, phases: RunPhases, sampled: RunLongLines, limits: Limits) -> Finding | None:
    """Report the lines whose time is in long steps of the whole run; None where they take little of what recurs.

    Lines that have as much time in other steps are a part of each step, which something else makes long. Those of
    other phases, such as an evaluation between two steps, are judged as these.
    """
    if not phases.whole or run.long is None or not sampled.ms:
        return None
    of_all = summed((line.at, line.ms) for line in phases.at(Phase.STEPS))
    in_long = summed((line.at, line.ms) for line in sampled.lines)
    own = {at for at, time in in_long.items() if MOST * of_all.get(at, 0.0) <= time <= of_all.get(at, 0.0) / MOST}
    scale = run.long.beyond_ms / sampled.ms  # samples begin at 1.5 times the usual step
    found = [one for one in sampled.lines if one.sure and one.work in OWN_WORK and one.at in own]
    lines = [replace(line, ms=scale * line.ms) for line in found]
    all_ms = sum(line.ms for line in lines)
    share = all_ms / phases.recurring_ms
    if not lines or share < limits.share or all_ms < limits.least_ms:
        return None
    first, every = lines[0], f", about every {counted(run.long.every, 'step')}" if run.long.every else ""
    does = f" ({_function(first.calls)})" if first.calls else ""
    whats = (f"Call {_function(one.calls)}" if one.calls else "Do the work of this line" for one in lines)
    places = (  # how often they came is not known: other things make steps long as well
        RunPlace(at=line.at, phase=Phase.STEPS, ms=line.ms, recurs=Recurrence.PER_CALL, times=0) for line in lines
    )
    return Finding(
        summary=f"{run.long.count:,} of {counted(run.count, 'step')} of the run took over 1.5 times the usual time"
        f"{every}, with {duration(first.ms)} ({percent(first.ms / all_ms * share)} of what recurs) at "
        f"{location(first.at)}{does}",
        evidence=(
            Measure.share("share in these lines of what recurs in the run", share, limits.share),
            Table.of(
                lines,
                ("your line", lambda line: line.at or ""),
                ("calls", lambda line: line.calls),
                ("time in long steps", lambda line: ms(line.ms)),
                ("stack samples", lambda line: count(line.samples)),
            ),
        ),
        remedies=tuple(
            Remedy(f"{what} less often, or once per epoch", at=line.at)
            for what, line in zip(whats, lines[:SHOWN], strict=False)
        ),
        run_effects=tuple(place.effect for place in places),
        concern=Concern.LONG_STEPS,
        alike=len(lines) - 1,
    )


def _function(name: str) -> str:
    """Return the name of a function without its module; of a special method with its class: "Layer.__call__"."""
    of, name = ("", *name.split("."))[-2:]
    return f"{of}.{name}" if of and name.startswith("__") else name


def _outliers(  # noqa: PLR0911, PLR0913, PLR0917 - the facts of check
    steps: Steps, breakdown: Breakdown, compiling: CompileTime | None, lines: LongStepLines | None,
    program: Program | None, cores: Cores | None, pace: UntracedPace | None, run: RunSteps | None, limits: Limits,
) -> Verdict:  # fmt: skip
    """Judge the outliers among the traced steps."""
    long = [at for at, steady in enumerate(steps.steady) if not steady]
    some = f"{len(long)} of {with_noun(len(steps.steps), 'step')}"
    if len(steps.steps) < limits.steps or len(long) * MINORITY > len(steps.steps):
        return NotApplicable(reason=f"{some} in the trace {'is' if len(long) == 1 else 'are'} long: {TOO_FEW}")
    if long and compiling and compiling.apart.issuperset(long):
        return NotApplicable(reason=f"XLA compiled in all long steps ({some}); see recompilation")
    found = Pattern.of_outliers(steps, breakdown, long)
    if not found.cause or found.occasions < limits.long or found.share < limits.share:
        return _without_pattern(found, limits)
    seen = lines.of(found.cause) if lines and (lines.timed or found.share >= MOST) else ()
    main, number_of = next(iter(seen), None), sum(line.seen for line in seen)
    if main and (main.at is None or number_of < limits.samples or main.seen < MOST * number_of):
        main = None
    others = ""
    if cores and cores.contended and not (main and main.callback):
        used = f"{number(cores.others)} of {with_noun(cores.usable, 'core')}"
        others = f", while other programs used {used}, which may be the cause: record on an idle machine"
    if others and not found.period:
        return NotApplicable(reason=f"{found.summary}{others}")
    within = main is not None and (main.callback or main.call is not SlowCall.FIT)
    if run and run.lack(found.share) and found.cause == Stage.BETWEEN and not within:
        return NotApplicable(reason=f"{found.summary}{OUTSIDE}")
    of_part = Remedy(PARTS[found.cause][1], CODE["prefetch"] if found.cause == Stage.INPUT else "")
    remedy = _less_often(main) if main else of_part
    epochs = (program.settings.epochs or 0) if program else 0
    if main and program and epochs > 1 and main.at == program.fit_at and not main.callback:
        # What one call of fit does after each of several epochs is its own work.
        length = int(program.settings.steps_per_epoch or 0)
        at_ends = not length or any((step.number + 1) % length <= NEXT_TO for step, *_ in found.steps)
        remedy = Remedy(LONGER_EPOCHS, CODE["repeat"], main.at) if at_ends else of_part
    elif steps.source is StepSource.EAGER_GRADIENT and not main and found.cause == Stage.HOST:
        remedy = Remedy("Find what Python does in these steps and not in the others")  # it compiles nothing
    verdict = _found(found, seen, main, remedy, pace, limits)
    if others and isinstance(verdict, Finding):  # other programs may do their work at equal distances, too
        return replace(verdict, summary=f"{verdict.summary}{others}", severity=Severity.NOTE)
    return verdict


def _without_pattern(found: Pattern, limits: Limits) -> Verdict:
    """Judge long steps that take little, or once, or for different reasons."""
    once = found.occasions < limits.long
    if Severity.of(found.share) is Severity.CRITICAL and (once or not found.cause):
        parts = " and ".join(dict.fromkeys(PARTS[part][0] for _, part, _ in found.steps))
        taken = f"{counted(found.occasions, 'occasion')}: {percent(found.share)} of the traced time"
        return NotApplicable(reason=f"{found.summary} because of {parts}, on {taken}. {UNCLEAR}")
    why = ", on one occasion, which may be chance" if once else ", without a common cause"
    if not found.steps or (found.cause and not once):
        why = ""
    measure = Measure.share(OF_LONG, found.share, limits.share)
    return Healthy(summary=f"{found.summary}{why}", evidence=(measure,))


def _found(
    pattern: Pattern, lines: Sequence[TimedLine], main: TimedLine | None, remedy: Remedy, pace: UntracedPace | None,
    limits: Limits,
) -> Verdict:  # fmt: skip
    """Report a pattern, unless the untraced steps contradict it."""
    if pace is not None and pace.contradicts(pattern.share):
        return NotApplicable(reason=f"{pattern.summary}, but the untraced steps lack such long ones")
    mostly = f", mostly {_named(main)} at {location(main.at)}" if main else ""
    longest = milliseconds(max(step.total_ms for step, *_ in pattern.steps))
    more = milliseconds(max(growth_ms for *_, growth_ms in pattern.steps))
    usual = pattern.steady_ms
    grew = f"{more} more of it" if usual is None else f"{longest} instead of {milliseconds(usual)}"
    durations = f"up to {grew}{pattern.period}"
    table = Table.of(
        pattern.steps,
        ("step", lambda row: count(row[0].number)),
        ("duration", lambda row: ms(row[0].total_ms)),
        ("part that grew most", lambda row: PARTS[row[1]][0]),
        ("growth", lambda row: ms(row[2])),
        most=SHOWN_ROWS,
    )
    of_lines = Table.of(
        lines,
        ("your line", lambda line: line.at or ""),
        ("calls", _named),
        ("callback", lambda line: line.callback),
        ("stack samples in long steps", lambda line: count(line.seen)),
        ("share of them", lambda line: ratio(line.seen / sum(one.seen for one in lines))),
        most=SHOWN_ROWS,
    )
    measures = [Measure.share(OF_LONG, pattern.share, limits.share)]
    measures += [] if usual is None else [Measure("steady step", ms(usual))]
    return Finding(
        concern=Concern.LONG_STEPS,
        summary=f"{pattern.summary} because of {PARTS[pattern.cause][0]}{mostly}: {durations}",
        evidence=(*measures, table, *((of_lines,) if lines else ())),
        remedies=(remedy,),
        severity=Severity.of(pattern.share),
    )


def _called(line: TimedLine) -> str:
    """Return the function that a line calls; "" for fit, which has called the line's callback."""
    return "" if line.callback and line.call is SlowCall.FIT else line.main_call.rpartition(".")[2]


def _named(line: TimedLine) -> str:
    return _called(line) or line.callback or "Python"


def _less_often(line: TimedLine) -> Remedy:
    within = f" in {line.callback}" if line.callback else ""
    if not _called(line):
        return Remedy(f"Do less work{within or ' in this line'}, or do it less often", at=line.at)
    return Remedy(f"Call {_called(line)}{within} less often, or once per epoch", at=line.at)
