from itertools import pairwise
from statistics import median

from tfdoctor.facts.phases.run_steps import OCCASIONS
from tfdoctor.facts.step_time.breakdown import UNKNOWN
from tfdoctor.facts.steps.steps import Step
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    long: float = limit(2.0)
    steps: float = limit(6.0)


MINORITY = 3  # At most one step in three is long: steady steps are at least two in three
NEXT_TO = 2  # Steps from the last of an epoch to the first of the next: numbers begin with 0 or 1
OF_LONG = "share of the traced time added by long steps"
TOO_FEW = "too few steady steps to compare with; trace more with --steps"
OUTSIDE = ", but the account of the run has few such steps: the time between them is that between epochs"
UNCLEAR = (
    "The end of an epoch may be the cause (a validation, a checkpoint, a shuffle buffer that fills); trace more "
    "with --steps to see whether it recurs"
)
LONGER_EPOCHS = "Give each epoch more steps, or validate less often: fit itself takes this time between two epochs"
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
    steady_ms: float
    share: float  # what they add to the traced time, 0 to 1
    occasions: int  # runs of adjacent steps
    summary: str

    @classmethod
    def of(cls, steps: Steps, breakdown: Breakdown, long: Sequence[int]) -> Self:
        """Return the long steps, by their places, with their growth beyond steady steps."""
        every = steps.steps
        rows = [row for row, steady in zip(breakdown.steps, steps.steady, strict=True) if steady]
        usual = {part: median(row[part] for row in rows) for part in breakdown.steps[0]}
        steady_ms = median(step.total_ms for step in steps.steady_steps)
        grown, causes = [], set()
        for at in long:
            row = breakdown.steps[at]
            more, part = max(((row[part] - usual[part], part) for part in row), key=lambda one: one[0])
            grown.append((every[at], part, more))
            causes.add(part if more * 2 >= sum(row.values()) - sum(usual.values()) else "")
        whole = sum(step.total_ms * step.calls for step in every)
        beyond = sum((every[at].total_ms - steady_ms) * every[at].calls for at in long)
        return cls(
            tuple(grown), causes.pop() if len(causes) == 1 else "", steady_ms, beyond / whole if whole else 0.0,
            sum(at - 1 not in long for at in long),
            f"{len(long)} of {with_noun(len(every), 'step')} took much longer than the others",
        )  # fmt: skip

    @property
    def period(self) -> str:
        """A clause with the distance of the long steps, where it is always the same; else ""."""
        distances = {after.number - before.number for (before, *_), (after, *_) in pairwise(self.steps)}
        regular = len(self.steps) >= OCCASIONS and len(distances) == 1
        return f", every {distances.pop()} steps" if regular else ""


def check(  # noqa: PLR0911, PLR0913, PLR0917 - the traced steps, why they are long, and the others
    steps: Steps, breakdown: Breakdown, compiling: CompileTime | None, program: Program | None, cores: Cores | None,
    pace: UntracedPace | None, run: RunSteps | None, phases: RunPhases | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Report what the long steps among the traced ones cost."""
    long = [at for at, steady in enumerate(steps.steady) if not steady]
    some = f"{len(long)} of {with_noun(len(steps.steps), 'step')}"
    if len(steps.steps) < limits.steps or len(long) * MINORITY > len(steps.steps):
        return NotApplicable(reason=f"{some} in the trace {'is' if len(long) == 1 else 'are'} long: {TOO_FEW}")
    if long and compiling and compiling.apart.issuperset(long):
        return NotApplicable(reason=f"XLA compiled in all long steps ({some}); see recompilation")
    found = Pattern.of(steps, breakdown, long)
    if not found.cause or found.occasions < limits.long or found.share < limits.share:
        return _without_pattern(found, limits)
    others = ""
    if cores and cores.contended:
        used = f"{number(cores.others)} of {with_noun(cores.usable, 'core')}"
        others = f", while other programs used {used}, which may be the cause: record on an idle machine"
    if others and not found.period:
        return NotApplicable(reason=f"{found.summary}{others}")
    # They lack it with less than half of it, as UntracedSteps.contradict has it, which knows fewer steps.
    beyond_ms = run.long.beyond_ms if run and run.long else 0.0
    if phases:  # evaluations and saves within the loop are not the steps' own
        beyond_ms -= sum(line.long_ms for line in phases.lines if line.phase is not Phase.STEPS)
    if run and beyond_ms < found.share / 2 * run.total_ms and found.cause == Stage.BETWEEN:
        return NotApplicable(reason=f"{found.summary}{OUTSIDE}")
    remedy = Remedy(PARTS[found.cause][1], CODE["prefetch"] if found.cause == Stage.INPUT else "")
    epochs, length = (program.settings.epochs or 0, program.settings.steps_per_epoch or 0) if program else (0, 0)
    at_ends = not length or any((step.number + 1) % int(length) <= NEXT_TO for step, *_ in found.steps)
    if program and program.fit_at and epochs > 1 and at_ends and found.cause == Stage.BETWEEN:
        # What one call of fit does after each of several epochs is its own work.
        remedy = Remedy(LONGER_EPOCHS, CODE["repeat"], program.fit_at)
    elif steps.source is StepSource.EAGER_GRADIENT and found.cause == Stage.HOST:
        remedy = Remedy("Find what Python does in these steps and not in the others")  # it compiles nothing
    verdict = _found(found, remedy, pace, limits)
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


def _found(pattern: Pattern, remedy: Remedy, pace: UntracedPace | None, limits: Limits) -> Verdict:
    """Report a pattern, unless the untraced steps contradict it."""
    if pace is not None and pace.contradicts(pattern.share):
        return NotApplicable(reason=f"{pattern.summary}, but the untraced steps lack such long ones")
    longest = milliseconds(max(step.total_ms for step, *_ in pattern.steps))
    durations = f"up to {longest} instead of {milliseconds(pattern.steady_ms)}{pattern.period}"
    table = Table.of(
        pattern.steps,
        ("step", lambda row: count(row[0].number)),
        ("duration", lambda row: ms(row[0].total_ms)),
        ("part that grew most", lambda row: PARTS[row[1]][0]),
        ("growth", lambda row: ms(row[2])),
        most=SHOWN_ROWS,
    )
    return Finding(
        concern=Concern.LONG_STEPS,
        summary=f"{pattern.summary} because of {PARTS[pattern.cause][0]}: {durations}",
        evidence=(
            Measure.share(OF_LONG, pattern.share, limits.share),
            Measure("steady step", ms(pattern.steady_ms)),
            table,
        ),
        remedies=(remedy,),
        severity=Severity.of(pattern.share),
    )
