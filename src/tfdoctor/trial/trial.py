"""A trial from its variants to what was measured: by its steps, or by whole runs.

Time that comes once or with each epoch does not show in the steps. So a change whose promise is about the whole run
is timed by whole runs: the rounds are the same, but each run is the whole process. That takes long, so what does
not fit into the time is not tried, and the reason says how much time it needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from statistics import median
from typing import Any

from tfdoctor.diagnosis import Diagnosis, Difference, Measured, Result, Trial, Trials, is_broken
from tfdoctor.diagnosis.rank import rated_by_trial
from tfdoctor.stored.report import finished
from tfdoctor.terms.errors import CaptureError
from tfdoctor.terms.kinds import EnergySource
from tfdoctor.terms.record import Record, common
from tfdoctor.terms.verdict import Recurrence
from tfdoctor.trial import schedule, statistics
from tfdoctor.trial.clock import TrialClock
from tfdoctor.trial.program import Variant
from tfdoctor.trial.rounds import AROUND, Runs, Say
from tfdoctor.trial.running import Runner, TrialRun
from tfdoctor.trial.schedule import Combination, Join, Pairs

Outcome = tuple[Trials, tuple[Variant, ...]]  # What was measured, and what proved to help together, in their order


class Agenda(Record):
    """What a trial tries."""

    variants: Sequence[Variant]
    join: Join
    minutes: float = 10.0
    say: Say = lambda _: None
    rivals: Pairs = frozenset()
    share: float = 1.0  # which part the minutes are of those that the user allowed


def is_about_run(variant: Variant) -> bool:
    """Whether a variant promises to save time of the run that is not that of its typical steps."""
    promised = variant.promised_run
    return promised is not None and promised.recurs is not Recurrence.PER_STEP


def conduct(stage: Runner, plan: Agenda) -> Outcome:
    """Run the trial of steps, and that of whole runs for what promises to save other time of the run.

    What proved to help the steps is kept, else the change that saves most of the whole run: of both together
    nothing is known. Ctrl-C ends the run that is going on, and what was measured by then is returned.

    Raises:
        CaptureError: the program cannot be timed even as it is.
        InterruptedTrialError: Ctrl-C came before a round had ended.
    """
    about_run = [variant for variant in plan.variants if is_about_run(variant)]
    of_steps = [variant for variant in plan.variants if not is_about_run(variant)]
    if not about_run:
        return _by_steps(stage, plan)
    if of_steps:
        plan = replace(plan, minutes=plan.minutes / 2, share=plan.share / 2)
    of_run, best = _by_whole_runs(stage, replace(plan, variants=about_run))
    if not of_steps or of_run.ended_early:
        return of_run, best
    trials, kept = _by_steps(stage, replace(plan, variants=of_steps))
    rows = tuple(replace(row, kept=row.kept and not kept) for row in of_run.rows)
    both = replace(trials, rows=(*trials.rows, *rows), as_is_run_ms=of_run.as_is_run_ms)
    return summed(both, of_run), kept or best


def summed(trials: Trials, others: Trials) -> Trials:
    """Return a trial with the numbers of runs of another one as well."""
    return replace(
        trials,
        rounds=trials.rounds + others.rounds,
        runs=trials.runs + others.runs,
        minutes=trials.minutes + others.minutes,
        foreign=max(trials.foreign, others.foreign),
        ended_early=trials.ended_early or others.ended_early,
    )


def numbers(runs: Runs) -> Trials:
    """Return how many runs there were, how long they took, and what disturbed them."""
    return Trials(
        rows=(),
        rounds=len(runs.rounds),
        runs=len(runs.tries),
        minutes=sum(run.seconds for run in runs.tries) / 60,
        foreign=median([run.foreign for run in runs.tries] or [0.0]),
        ended_early=runs.interrupted,
    )


def begin(runs: Runs, variants: Sequence[Variant]) -> None:
    """Run the program as it is, and tell where the time allows too few rounds of these variants.

    Raises:
        CaptureError: the program cannot be timed.
    """
    if runs.whole:
        runs.first_whole()
    else:
        _check(runs.first(), runs)
    if short := schedule.shortage(runs, variants):
        runs.say(short)


def how_long(runs: Runs) -> str:
    """Return how much time a further variant needs by whole runs, as a clause."""
    needed = _needed_minutes(runs, max(1, len(runs.tried) + 1))
    return f"two rounds of whole runs take about {needed:.0f} minutes: allow more with --minutes"


def _by_whole_runs(stage: Runner, plan: Agenda) -> Outcome:
    runs = Runs(stage, TrialClock(plan.minutes, share=plan.share), plan.say, whole=True)
    with runs.until_interrupted():
        begin(runs, plan.variants)
        schedule.whole_rounds(runs, plan.variants)
    rows = [_row(runs, variant) for variant in plan.variants]
    shown = [row for row in rows if row.measured and row.measured.difference is Difference.SAVES]
    best = max(shown, key=lambda row: row.measured.share if row.measured else 0.0, default=None)
    trials = _trials(runs, [replace(row, kept=row is best) for row in rows])
    kept = tuple(one for one in plan.variants if best is not None and one.name == best.name)
    return replace(trials, as_is_run_ms=runs.whole_ms(runs.original)), kept


def _by_steps(stage: Runner, plan: Agenda) -> Outcome:
    runs = Runs(stage, TrialClock(plan.minutes, share=plan.share), plan.say)
    combination = Combination(runs, plan.variants, plan.join, plan.rivals)
    with runs.until_interrupted():
        begin(runs, plan.variants)
        schedule.first_rounds(runs, plan.variants)
        if not runs.rounds and runs.original:
            _check(runs.original[-1], runs)
        combination.add_what_helps()
        schedule.narrow(runs, [*plan.variants, *combination.made.values()])
        combination.add_what_helps()  # some are shown to help only now
    kept, best = combination.proved(), combination.best
    sets = [one for one in combination.made.values() if one.name in runs.tried]
    rows = [
        replace(_row(runs, variant), kept=variant in kept, beside=combination.beside.get(variant.name))
        for variant in [*plan.variants, *sets]
    ]
    as_is = _figures(runs, runs.original)
    trials = replace(
        _trials(runs, rows),
        as_is_ms=as_is["step_ms"],
        as_is_whole_ms=as_is["whole_ms"],
        as_is_energy_j=as_is["energy_j"],
        together=best.name if best is not None and len(kept) > 1 else "",
    )
    return trials, kept


def _check(run: TrialRun, runs: Runs) -> None:
    if run.times:
        return
    why = run.error or run.why
    if "EOFError" in why:
        raise CaptureError(
            "The program asks for input: a trial runs it without a terminal, so give its answers as arguments."
        )
    if run.error and run.seconds >= runs.enough.limit_s and not runs.original:
        raise CaptureError(
            "The program did not train the few steps of a first run within "
            f"{runs.enough.limit_s / 60:.3g} minutes: allow more with --minutes."
        )
    if run.error and run.seconds >= runs.enough.limit_s:
        raise CaptureError(
            f"The program took more than {runs.enough.limit_s:.0f} s as it is, far longer than its first run did: "
            "try again when the machine is less busy."
        )
    if run.error:
        other = ", and if it works then, give --no-layer" if runs.stage.layer else ""
        raise CaptureError(f"The program failed when it ran as it is ({why}): run it by itself{other}.")
    raise CaptureError(f"The steps of the program cannot be timed as it is: {why}.")


def _trials(runs: Runs, rows: Sequence[Trial]) -> Trials:
    return replace(
        numbers(runs),
        rows=tuple(rows),
        as_is=statistics.drift(runs.rounds),
        rounds_by_turns=runs.turns,
        needed_minutes=None if runs.rounds else _needed_minutes(runs),
    )


def _needed_minutes(runs: Runs, variants: int = 1) -> float:
    """Return how long the fewest rounds of so many variants take, with the first run of steps."""
    before = 0 if runs.whole else len(runs.tries)
    return (before + statistics.FEWEST_ROUNDS * (AROUND + variants)) * runs.clock.usual_s / 60


def _row(runs: Runs, variant: Variant) -> Trial:
    own, measured, name = runs.tried.get(variant.name, []), runs.saving(variant.name), variant.name
    told: dict[str, Any] = {"run_ms": runs.whole_ms(own), "promised": None, "examples": 1.0}  # by whole runs
    if not runs.whole:
        examples = float(runs.examples.get(name, variant.examples))
        told = {"promised_run": None, "examples": examples, **_figures(runs, own)}
        if measured and schedule.is_clearly_worse(measured):
            measured = replace(measured, dropped=True)
    told |= {"training": runs.training(variant), "missing": "" if measured else _missing(runs, name)}
    return common(Trial, variant, measured=measured, runs=len(own), **told)


def _figures(runs: Runs, own: Sequence[TrialRun]) -> dict[str, Any]:
    """Return the typical step, the mean one, and the joules by the sources that were counted in each timed run.

    Runs are timed per update of the weights; what is shown is of as many as a step as it is makes: two in a GAN.
    """
    per = [run.times.per for run in runs.original if run.times]
    updates = float(median(per or [Fraction(1)]))
    timed = [(run.times, run.energy_j) for run in own if run.times]
    sources = [source for source in EnergySource if timed and all(source in joules for _, joules in timed)]
    return {
        "step_ms": median(times.step_ms for times, _ in timed) * updates if timed else None,
        "whole_ms": median(times.whole_ms for times, _ in timed) * updates if timed else None,
        "energy_j": {str(one): median(joules[one] for _, joules in timed) * updates for one in sources},
    }


def _missing(runs: Runs, name: str) -> str:
    if name in runs.why:
        return runs.why[name]
    if runs.interrupted:
        kind = " of whole runs" if runs.whole else ""
        return f"the trial was interrupted before its second round{kind} had ended"
    if runs.whole:
        return f"its promise is about the whole run, and {how_long(runs)}"
    if runs.spoiled >= schedule.MOST_SPOILED:
        return "the steps of the program as it is could not be timed in several rounds"
    limit = runs.clock.minutes
    minutes = "one minute" if limit == 1 else f"the {limit:.3g} minutes"
    if runs.done(name):
        return f"only one round fitted into {minutes}, and a figure needs two: allow more with --minutes"
    return f"its two rounds did not fit into {minutes}: allow more with --minutes"


def with_measured(diagnosis: Diagnosis, trials: Trials) -> Diagnosis:
    """Return a diagnosis whose findings have what their edits saved: nothing if they train something else.

    None is more severe than what was measured.
    """
    trials = finished(trials)
    measured: Mapping[str, Measured] = {
        row.rules[0]: row.measured
        for row in reversed(trials.rows)  # an edit of ours before a patch for the same rule
        if len(row.rules) == 1 and row.measured and not is_broken(row.training)
    }

    def told(result: Result) -> Result:
        return replace(result, measured=measured.get(result.rule.name))

    results = rated_by_trial(tuple(map(told, diagnosis.results)))
    return replace(diagnosis, results=results, trials=trials)
