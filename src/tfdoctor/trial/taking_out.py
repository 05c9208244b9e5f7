"""A trial of the program without its parts: by its steps where a part is in them, else by whole runs.

The mean over the steady steps is compared, not the typical step: a checkpoint in every fifth step costs time that
the typical one does not show. What lies between epochs, or comes so seldom that fifty steps may hold none of it,
shows in whole runs only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median
from typing import Self

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.trials import Measured, PartTrial, Trials
from tfdoctor.terms.errors import CaptureError, InterruptedTrialError
from tfdoctor.terms.record import Record
from tfdoctor.trial import schedule, whole
from tfdoctor.trial.clock import TrialClock
from tfdoctor.trial.rounds import AROUND, Runs
from tfdoctor.trial.running import Runner
from tfdoctor.trial.statistics import FEWEST_ROUNDS
from tfdoctor.trial.times import NoTimes, TrialTimes
from tfdoctor.trial.trial_run import TrialRun
from tfdoctor.trial.variants import Variant

LEAST_STEPS = 60  # Steps of a run below which its parts are timed by whole runs: those of the warm-up are left out

NO_TIME = "its two rounds did not fit into the minutes: allow more with --minutes"

Say = Callable[[str], object]


class RecordedRun(Record):
    """What the recording shows of the run: how long it takes, and how many steps it has."""

    seconds: float
    steps: int

    @classmethod
    def of(cls, diagnosis: Diagnosis) -> Self:
        """Read the account of the run; without one, the run is taken to be long."""
        run = diagnosis.run
        if run is None or not run.whole:
            return cls(inf, diagnosis.steps.count)
        return cls(run.total_ms / whole.MS_PER_S, run.steps)


@dataclass(slots=True)
class PartTrials:
    """What was measured of the parts, by the variants' names, and the runs that it took."""

    rows: dict[str, PartTrial] = field(default_factory=dict)
    runs: list[TrialRun] = field(default_factory=list)
    rounds: int = 0
    interrupted: bool = False

    def put(self, variant: Variant, row: PartTrial) -> None:
        """Add what one way of measuring gives; what another one measured, or why it could not, stays."""
        if row.measured or variant.name not in self.rows:
            self.rows[variant.name] = row

    def added_to(self, trials: Trials, variants: Sequence[Variant]) -> Trials:
        """Return a trial with these parts, in the order of the variants."""
        foreign = [run.foreign for run in self.runs]
        return replace(
            trials,
            parts=tuple(self.rows[one.name] for one in variants if one.name in self.rows),
            runs=trials.runs + len(self.runs),
            rounds=trials.rounds + self.rounds,
            minutes=trials.minutes + sum(run.seconds for run in self.runs) / 60,
            foreign=max([trials.foreign, *([median(foreign)] if foreign else [])]),
            ended_early=trials.ended_early or self.interrupted,
        )


Method = Callable[[Runner, Sequence[Variant], float, Say, PartTrials], None]


def conduct(
    stage: Runner, variants: Sequence[Variant], recorded: RecordedRun, minutes: float, say: Say
) -> PartTrials:
    """Run the program without each part and as it is, by turns.

    Ctrl-C ends the run that is going on, and what was measured by then is returned.
    """
    clock, found = TrialClock(minutes), PartTrials()
    of_runs, of_steps = divided(variants, recorded, minutes)
    half = 0.5 if of_steps else 1.0
    _guarded(_by_whole_runs, stage, of_runs, half * minutes, say, found)
    broken = [one for one in of_runs if _may_be_in_steps(one, found)]
    left = max(0.0, clock.left_s) / 60
    _guarded(_by_steps, stage, [*of_steps, *broken], left, say, found)
    return found


def _may_be_in_steps(variant: Variant, found: PartTrials) -> bool:
    """Say whether a whole run fails without a part that its steps may show: these come before what misses it."""
    row, part = found.rows.get(variant.name), variant.without
    failed = row is not None and row.measured is None and row.runs > 0
    return failed and part is not None and part.in_step is not False


def _guarded(
    by: Method, stage: Runner, variants: Sequence[Variant], minutes: float, say: Say, found: PartTrials
) -> None:
    """Measure parts in one way; where the program cannot be timed so, their rows say why."""
    if not variants or found.interrupted:
        return
    try:
        by(stage, variants, minutes, say, found)
    except (CaptureError, InterruptedTrialError) as error:
        found.interrupted = isinstance(error, InterruptedTrialError)
        sentence = str(error).rstrip(".")
        why = sentence[:1].lower() + sentence[1:]  # it follows "because"
        for one in variants:
            found.rows.setdefault(one.name, _row(one, missing=why))


def divided(
    variants: Sequence[Variant], recorded: RecordedRun, minutes: float
) -> tuple[list[Variant], list[Variant]]:
    """Return the parts that are timed by whole runs, and those by steps.

    Where it is not known how often a part comes, whole runs tell for certain, if they fit into the time.
    """
    rounds = FEWEST_ROUNDS * (AROUND + len(variants))
    fits = rounds * recorded.seconds <= 60 * minutes

    def by_run(variant: Variant) -> bool:
        in_step = variant.without.in_step if variant.without else None
        if recorded.steps < LEAST_STEPS:
            return True
        return fits if in_step is None else not in_step

    of_runs = [one for one in variants if by_run(one)]
    return of_runs, [one for one in variants if one not in of_runs]


def _by_whole_runs(stage: Runner, variants: Sequence[Variant], minutes: float, say: Say, found: PartTrials) -> None:
    """Time whole runs.

    Raises:
        CaptureError: the program cannot be timed as it is.
        InterruptedTrialError: Ctrl-C came before a round had ended.
    """
    runs = whole.rounds_of(stage.run, variants, TrialClock(minutes), say)
    for one in variants:
        own = runs.tried.get(one.name, [])
        row = _row(
            one,
            measured=runs.saving(one.name),
            as_is_ms=_run_ms(runs.original),
            without_ms=_run_ms(own),
            runs=len(own),
            missing=_why(own) or whole.how_long(runs),
        )
        found.put(one, row)
    found.runs += runs.all
    found.rounds += len(runs.rounds)
    found.interrupted |= runs.interrupted


def _run_ms(runs: Sequence[TrialRun]) -> float | None:
    times = [whole.MS_PER_S * run.seconds for run in runs if not run.error]
    return median(times) if times else None


def _by_steps(stage: Runner, variants: Sequence[Variant], minutes: float, say: Say, found: PartTrials) -> None:
    """Time the steady steps of runs.

    Raises:
        CaptureError: the program cannot be timed as it is.
        InterruptedTrialError: Ctrl-C came before a round had ended.
    """
    clock = TrialClock(minutes)
    runs = Runs(stage.run, clock, say, stage.by_turns, stage.at_once, by_mean=True)
    try:
        _rounds(runs, variants)
    except KeyboardInterrupt as error:
        if not runs.rounds:
            raise InterruptedTrialError("Nothing was measured before the interrupt.") from error
        runs.interrupted = True
    for one in variants:
        own = runs.tried.get(one.name, [])
        row = _row(
            one,
            measured=runs.saving(one.name),
            as_is_ms=_mean_ms(runs.original),
            without_ms=_mean_ms(own),
            runs=len(own),
            missing=_why(own) or runs.why.get(one.name) or NO_TIME,
        )
        found.put(one, row)
    found.runs += runs.tries
    found.rounds += len(runs.rounds)
    found.interrupted |= runs.interrupted


def _rounds(runs: Runs, variants: Sequence[Variant]) -> None:
    """Run the rounds that fit in.

    Raises:
        CaptureError: the program cannot be timed as it is.
    """
    first = runs.first()
    if isinstance(first.times, NoTimes):
        raise CaptureError(f"The program cannot be timed as it is: {first.error or first.times.why}.")
    schedule.first_rounds(runs, variants, lambda _: False)
    schedule.narrow(runs, variants, lambda _: False)


def _why(own: Sequence[TrialRun]) -> str:
    """Return why the runs without a part give no figure; "" where they do."""
    failed = next((run.error for run in own if run.error), "")
    if failed:
        return f"the program fails without it ({failed})"
    return next((run.ineffective for run in own if run.ineffective), "")


def _mean_ms(runs: Sequence[TrialRun]) -> float | None:
    times = [run.times.whole_ms for run in runs if isinstance(run.times, TrialTimes)]
    return median(times) if times else None


def _row(
    variant: Variant,
    *,
    measured: Measured | None = None,
    as_is_ms: float | None = None,
    without_ms: float | None = None,
    runs: int = 0,
    missing: str = "",
) -> PartTrial:
    part = variant.without
    if part is None:
        raise ValueError(f"{variant.name} takes no part out")
    by_step = measured is None or not measured.of_run
    return PartTrial(
        part=part.part,
        name=part.name,
        at=part.at,
        share=variant.share,
        measured=measured,
        as_is_ms=as_is_ms,
        without_ms=without_ms,
        runs=runs,
        missing="" if measured else missing,
        rule=next(iter(variant.rules), "") if by_step else "",
        promised=variant.promised if by_step else None,  # of a step
    )
