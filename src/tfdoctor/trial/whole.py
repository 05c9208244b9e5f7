"""A trial of changes whose promise is about the whole run: each run goes to its end, and its wall time is compared.

Time that comes once or with each epoch does not show in the steps. So the rounds are those of other trials, as it
is, the variants, as it is, but each run is the whole process. That takes long, so what does not fit into the time
is not tried, and the reason says how much time it needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from tfdoctor.diagnosis.trials import Difference, Measured, Trial, Trials
from tfdoctor.terms.errors import CaptureError, InterruptedTrialError
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.verdict import Recurrence
from tfdoctor.trial import statistics, training
from tfdoctor.trial.clock import TrialClock
from tfdoctor.trial.rounds import AROUND, RunOne, Say
from tfdoctor.trial.run_length import LIMIT_FACTOR, LIMIT_S, Enough
from tfdoctor.trial.statistics import FEWEST_ROUNDS, Round
from tfdoctor.trial.trial_run import TrialRun
from tfdoctor.trial.variants import ORIGINAL, Variant

MS_PER_S = 1000.0

MOST_ROUNDS = 4  # Rounds of whole runs at most: each takes minutes, and two agree or do not
# Number of the first whole run: runs of steps have smaller ones, and each has a folder of its own.
NUMBERS_FROM = 1_000_000


def is_about_run(variant: Variant) -> bool:
    """Whether a variant promises to save time of the run that is not that of its typical steps."""
    promised = variant.promised_run
    return promised is not None and promised.recurs is not Recurrence.PER_STEP


@dataclass(slots=True)
class WholeRuns:
    """The whole runs of a trial so far."""

    one: RunOne
    clock: TrialClock
    say: Say
    enough: Enough
    original: list[TrialRun] = field(default_factory=list)
    tried: dict[str, list[TrialRun]] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)  # variants without a figure
    number: int = NUMBERS_FROM
    interrupted: bool = False

    def first(self) -> None:
        """Run the program as it is, to its end.

        Raises:
            CaptureError: it fails, or takes longer than the time of the trial.
        """
        run = self._run(ORIGINAL, "whole run, as it is")
        if run.error:
            raise CaptureError(
                f"The program cannot be timed from its start to its end as it is ({run.error}): run it by itself, "
                "or allow more with --minutes."
            )
        self.original.append(run)
        self.clock.usual_s = run.seconds
        self.enough = Enough.whole(LIMIT_FACTOR * run.seconds + LIMIT_S)

    def chosen(self, variants: Sequence[Variant]) -> list[Variant]:
        """Return the variants of which two rounds fit into the time, those that promise most first."""
        fit = (self.clock.affordable() + 1) // FEWEST_ROUNDS - AROUND  # the first run is part of the first round
        ordered = sorted(variants, key=lambda one: -(one.promised_run.share if one.promised_run else 0.0))
        return ordered[: max(0, fit)]

    def round(self, variants: Sequence[Variant]) -> None:
        """Run one round; the first one begins with the run that there is."""
        turn = list(variants) if len(self.rounds) % 2 == 0 else list(variants)[::-1]
        before = self.original[-1] if not self.rounds else self._as_is()
        timed = {variant.name: self._variant(variant) for variant in turn}
        after = self._as_is()
        if before.error or after.error:
            return
        seconds = {name: np.array([run.seconds]) for name, run in timed.items() if not run.error}
        self.rounds.append(Round(np.array([before.seconds]), np.array([after.seconds]), seconds))

    def going(self, variants: Sequence[Variant]) -> list[Variant]:
        """Return the variants of a further round; none where it does not fit into the time."""
        left = [variant for variant in variants if variant.name not in self.why]
        fits = self.clock.affordable() >= AROUND + len(left)
        return left if fits and len(self.rounds) < MOST_ROUNDS else []

    def saving(self, name: str) -> Measured | None:
        """Return what a variant saves of the whole run; None without two rounds."""
        if name in self.why:
            return None
        found = statistics.saving(self.rounds, name, max(1, len(self.tried)))
        return replace(found, of_run=True) if found else None

    @property
    def all(self) -> list[TrialRun]:
        """All runs."""
        return [*self.original, *(run for runs in self.tried.values() for run in runs)]

    def _as_is(self) -> TrialRun:
        run = self._run(ORIGINAL, f"round {len(self.rounds) + 1} of whole runs, as it is")
        self.original.append(run)
        return run

    def _variant(self, variant: Variant) -> TrialRun:
        run = self._run(variant, f"round {len(self.rounds) + 1} of whole runs, {variant.name}")
        self.tried.setdefault(variant.name, []).append(run)
        if why := run.error or run.ineffective:
            self.why[variant.name] = why
        return run

    def _run(self, variant: Variant, what: str) -> TrialRun:
        left = max(0.0, self.clock.left_s) / 60
        self.say(f"{what} ({left:.1f} of {self.clock.minutes:.1f} minutes left)")
        self.number += 1
        run = self.one(variant, self.enough, self.number)
        self.clock.took(run.seconds)
        return run


def conduct(one: RunOne, variants: Sequence[Variant], minutes: float, say: Say, share: float = 1.0) -> Trials:
    """Run the program to its end with each change and without; Ctrl-C ends the run that is going on.

    The minutes are a ``share`` of those that the user allowed.

    Raises:
        CaptureError: the program cannot be timed as it is.
        InterruptedTrialError: Ctrl-C came before a round had ended.
    """
    return _trials(rounds_of(one, variants, TrialClock(minutes, share=share), say), variants)


def rounds_of(one: RunOne, variants: Sequence[Variant], clock: TrialClock, say: Say) -> WholeRuns:
    """Run the rounds of whole runs that fit into the time.

    Raises:
        CaptureError: the program cannot be timed as it is.
        InterruptedTrialError: Ctrl-C came before a round had ended.
    """
    runs = WholeRuns(one, clock, say, Enough.whole(max(LIMIT_S, clock.left_s)))
    try:
        runs.first()
        if short := _shortage(runs, variants):
            say(short)
        turn = runs.chosen(variants)
        while turn:
            runs.round(turn)
            turn = runs.going(turn)
    except KeyboardInterrupt as error:
        if not runs.rounds:
            raise InterruptedTrialError("Nothing was measured before the interrupt.") from error
        runs.interrupted = True
    return runs


def _shortage(runs: WholeRuns, variants: Sequence[Variant]) -> str:
    """Return that two rounds of all variants do not fit into the time, and what would do; "" where they do."""
    more = FEWEST_ROUNDS * (AROUND + len(variants)) - 1  # the first run is part of the first round
    least = FEWEST_ROUNDS * (AROUND + 1) - 1
    return runs.clock.shortage(f"{counted(FEWEST_ROUNDS, 'round')} of whole runs", more, least)


def merged(steps: Trials, whole: Trials) -> Trials:
    """Return the trial of steps and that of whole runs as one."""
    return replace(
        steps,
        rows=(*steps.rows, *whole.rows),
        as_is_run_ms=whole.as_is_run_ms,
        rounds=steps.rounds + whole.rounds,
        runs=steps.runs + whole.runs,
        minutes=steps.minutes + whole.minutes,
        foreign=max(steps.foreign, whole.foreign),
        ended_early=steps.ended_early or whole.ended_early,
    )


def helped(trials: Trials, variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """Return the variant that was shown to save most of the whole run; none where no one was."""
    kept = {row.name for row in trials.rows if row.kept}
    return tuple(variant for variant in variants if variant.name in kept)


def _trials(runs: WholeRuns, variants: Sequence[Variant]) -> Trials:
    rows = [_row(runs, variant) for variant in variants]
    shown = [row for row in rows if row.measured and row.measured.difference is Difference.SAVES]
    best = max(shown, key=lambda row: row.measured.share if row.measured else 0.0, default=None)
    as_is = [MS_PER_S * run.seconds for run in runs.original if not run.error]
    done = runs.all
    return Trials(
        rows=tuple(replace(row, kept=row is best) for row in rows),
        as_is_run_ms=median(as_is) if as_is else None,
        as_is=statistics.drift(runs.rounds),
        rounds=len(runs.rounds),
        runs=len(done),
        minutes=sum(run.seconds for run in done) / 60,
        foreign=median(run.foreign for run in done),
        ended_early=runs.interrupted,
        needed_minutes=None if runs.rounds else _needed_minutes(runs),
    )


def _needed_minutes(runs: WholeRuns, variants: int = 1) -> float:
    """Return how long two rounds of so many variants take, in minutes."""
    return FEWEST_ROUNDS * (AROUND + variants) * runs.clock.usual_s / 60


def _row(runs: WholeRuns, variant: Variant) -> Trial:
    own, measured = runs.tried.get(variant.name, []), runs.saving(variant.name)
    times = [MS_PER_S * run.seconds for run in own if not run.error]
    return Trial(
        name=variant.name,
        action=variant.action,
        rules=variant.rules,
        promised_run=variant.promised_run,
        measured=measured,
        run_ms=median(times) if times else None,
        training=training.compare(variant, own, runs.original) if own else None,
        runs=len(own),
        missing="" if measured else _missing(runs, variant),
    )


def _missing(runs: WholeRuns, variant: Variant) -> str:
    """Return why a variant has no figure."""
    if variant.name in runs.why:
        return runs.why[variant.name]
    if runs.interrupted:
        return "the trial was interrupted before its second round of whole runs had ended"
    return f"its promise is about the whole run, and {how_long(runs)}"


def how_long(runs: WholeRuns) -> str:
    """Return how much time a further variant needs, as a clause."""
    needed = _needed_minutes(runs, max(1, len(runs.tried) + 1))
    return f"two rounds of whole runs take about {needed:.0f} minutes: allow more with --minutes"
