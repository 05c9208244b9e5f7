"""A trial from its variants to what was measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from statistics import median

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rank import rated_by_trial
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.trials import BROKEN, Measured, TrainingState, Trial, Trials
from tfdoctor.edits.splice import Declined
from tfdoctor.stored.report import finished
from tfdoctor.terms.errors import CaptureError, InterruptedTrialError
from tfdoctor.terms.kinds import EnergySource
from tfdoctor.trial import schedule, statistics, training
from tfdoctor.trial.clock import TrialClock
from tfdoctor.trial.combining import Combination, Pairs
from tfdoctor.trial.rounds import AROUND, Runs
from tfdoctor.trial.running import Runner
from tfdoctor.trial.times import TrialTimes
from tfdoctor.trial.trial_run import TrialRun
from tfdoctor.trial.variants import NotTried, Variant

# Makes one variant of several; raises Declined where they do not go together.
Join = Callable[[Sequence[Variant]], Variant]


@dataclass(slots=True)
class Agenda:
    """What a trial tries."""

    variants: Sequence[Variant]
    join: Join
    minutes: float = 10.0
    not_tried: Sequence[NotTried] = ()
    say: Callable[[str], object] = field(default=lambda _: None)
    rivals: Pairs = frozenset()
    share: float = 1.0  # which part the minutes are of those that the user allowed


def conduct(stage: Runner, plan: Agenda) -> tuple[Trials, tuple[Variant, ...]]:
    """Run the trial; return what was measured, and the variants that proved to help together, in their order.

    Ctrl-C ends the run that is going on, and what was measured by then is returned.

    Raises:
        CaptureError: the program cannot be timed even as it is.
        InterruptedTrialError: Ctrl-C came before a round had ended.
    """
    clock = TrialClock(plan.minutes, share=plan.share)
    runs = Runs(stage.run, clock, plan.say, stage.by_turns, stage.at_once)
    combination = Combination(runs, plan.variants, _joining(plan.join), partial(_broken, runs), plan.rivals)
    try:
        _run_all(stage, runs, combination, plan.variants)
    except KeyboardInterrupt as error:
        if not runs.rounds:
            raise InterruptedTrialError("Nothing was measured before the interrupt.") from error
        runs.interrupted = True
    kept = _kept(runs, combination)
    return _trials(stage, plan, runs, combination, kept), kept


def _run_all(stage: Runner, runs: Runs, combination: Combination, variants: Sequence[Variant]) -> None:
    _check(runs.first(), runs, layer=stage.layer)
    if short := schedule.shortage(runs, variants):
        runs.say(short)

    def lost(variant: Variant) -> bool:
        return _state(runs, variant) is TrainingState.NOT_FINITE

    schedule.first_rounds(runs, variants, lost)
    if not runs.rounds and runs.original:
        _check(runs.original[-1], runs, layer=stage.layer)
    combination.add(_helped(runs, variants))
    schedule.narrow(runs, [*variants, *combination.made.values()], lost)
    combination.add(_helped(runs, variants))  # some are shown to help only now


def _check(run: TrialRun, runs: Runs, *, layer: bool) -> None:
    """Refuse a program that cannot be timed.

    Raises:
        CaptureError: why not.
    """
    if isinstance(run.times, TrialTimes):
        return
    why = run.error or run.times.why
    if "EOFError" in why:
        raise CaptureError(
            "The program asks for input: a trial runs it without a terminal, so give its answers as arguments."
        )
    if run.error and run.seconds >= runs.enough.limit_s:
        raise CaptureError(_too_long(runs))
    if run.error:
        other = ", and if it works then, give --no-layer" if layer else ""
        raise CaptureError(f"The program failed when it ran as it is ({why}): run it by itself{other}.")
    raise CaptureError(f"The steps of the program cannot be timed as it is: {why}.")


def _too_long(runs: Runs) -> str:
    """Return what to do about a program that was stopped at the time limit of a run."""
    if not runs.original:
        minutes = f"{runs.enough.limit_s / 60:.3g}"
        return (
            f"The program did not train the few steps of a first run within {minutes} minutes: "
            "allow more with --minutes."
        )
    return (
        f"The program took more than {runs.enough.limit_s:.0f} s as it is, far longer than its first run did: "
        "try again when the machine is less busy."
    )


def _helped(runs: Runs, variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants that save time and may be kept, the largest saving first."""
    measured = runs.measured([variant.name for variant in variants])
    helped = [
        variant
        for variant in variants
        if schedule.helps(measured.get(variant.name)) and variant.may_keep and not _broken(runs, variant)
    ]
    return sorted(helped, key=lambda variant: -measured[variant.name].share)


def _broken(runs: Runs, variant: Variant) -> bool:
    """Say whether a variant trains something else than it should."""
    return _state(runs, variant) in BROKEN


def _state(runs: Runs, variant: Variant) -> TrainingState | None:
    own = runs.tried.get(variant.name, ())
    return training.compare(variant, own, runs.original).state if own else None


def _joining(join: Join) -> Callable[[Sequence[Variant]], Variant | None]:
    def joined(parts: Sequence[Variant]) -> Variant | None:
        try:
            return join(parts)
        except Declined:
            return None

    return joined


def _kept(runs: Runs, combination: Combination) -> tuple[Variant, ...]:
    """Return the variants that proved to help together; the best one alone where their set did not."""
    best = combination.best
    if best is not None and schedule.helps(runs.saving(best.name)) and not _broken(runs, best):
        return tuple(combination.kept)
    return tuple(_helped(runs, combination.variants)[:1])


def _trials(stage: Runner, plan: Agenda, runs: Runs, combination: Combination, kept: Sequence[Variant]) -> Trials:
    sets = [one for one in combination.made.values() if one.name in runs.tried]
    best = combination.best
    rows = [
        replace(_row(runs, variant), kept=variant in kept, beside=combination.beside.get(variant.name))
        for variant in [*plan.variants, *sets]
    ]
    originals = _times(runs.original)
    updates = _updates(runs)
    return Trials(
        rows=tuple(rows),
        as_is_ms=_typical([one.step_ms for one in originals], updates),
        as_is_whole_ms=_typical([one.whole_ms for one in originals], updates),
        as_is=statistics.drift(runs.rounds),
        as_is_energy_j=_energy(runs.original, updates),
        rounds=len(runs.rounds),
        rounds_by_turns=runs.turns,
        runs=len(runs.tries),
        minutes=sum(run.seconds for run in runs.tries) / 60,
        foreign=median(run.foreign for run in runs.tries),
        layer=stage.layer,
        ended_early=runs.interrupted,
        not_tried=tuple((missing.name, missing.why) for missing in plan.not_tried),
        together=best.name if best is not None and len(kept) > 1 else "",
        needed_minutes=None if runs.rounds else _needed_minutes(runs),
    )


def _needed_minutes(runs: Runs) -> float:
    """Return how long the fewest rounds of one variant take, with the first run."""
    more = statistics.FEWEST_ROUNDS * (AROUND + 1)
    return (len(runs.tries) + more) * runs.clock.usual_s / 60


def _row(runs: Runs, variant: Variant) -> Trial:
    own = runs.tried.get(variant.name, [])
    times, measured, updates = _times(own), runs.saving(variant.name), _updates(runs)
    if measured is not None and schedule.is_clearly_worse(measured):
        measured = replace(measured, dropped=True)
    return Trial(
        name=variant.name,
        parts=variant.parts,
        action=variant.action,
        rules=variant.rules,
        promised=variant.promised,
        examples=float(runs.examples.get(variant.name, variant.examples)),
        measured=measured,
        step_ms=_typical([one.step_ms for one in times], updates),
        whole_ms=_typical([one.whole_ms for one in times], updates),
        training=training.compare(variant, own, runs.original) if own else None,
        energy_j=_energy(own, updates),
        runs=len(own),
        missing="" if measured else _missing(runs, variant.name),
    )


def _missing(runs: Runs, name: str) -> str:
    """Return why a variant has no figure."""
    if name in runs.why:
        return runs.why[name]
    if runs.interrupted:
        return "the trial was interrupted before its second round had ended"
    if runs.spoiled >= schedule.MOST_SPOILED:
        return "the steps of the program as it is could not be timed in several rounds"
    limit = runs.clock.minutes
    minutes = "one minute" if limit == 1 else f"the {limit:.3g} minutes"
    if runs.done(name):
        return f"only one round fitted into {minutes}, and a figure needs two: allow more with --minutes"
    return f"its two rounds did not fit into {minutes}: allow more with --minutes"


def _updates(runs: Runs) -> float:
    """Return how many updates of the weights a step of the program as it is makes: a GAN's makes two.

    Runs are timed per update; what is shown is the time for as many as a step as it is makes.
    """
    return float(median([one.per for one in _times(runs.original)] or [Fraction(1)]))


def _typical(times_ms: Sequence[float], updates: float) -> float | None:
    return median(times_ms) * updates if times_ms else None


def _energy(runs: Sequence[TrialRun], updates: float) -> dict[str, float]:
    """Return the median joules of a step by source, of those that were counted in each timed run."""
    timed = [run.energy_j for run in runs if isinstance(run.times, TrialTimes)]
    sources = [source for source in EnergySource if timed and all(source in one for one in timed)]
    return {str(source): median(one[source] for one in timed) * updates for source in sources}


def _times(runs: Sequence[TrialRun]) -> list[TrialTimes]:
    return [run.times for run in runs if isinstance(run.times, TrialTimes)]


def with_measured(diagnosis: Diagnosis, trials: Trials) -> Diagnosis:
    """Return a diagnosis whose findings have what their edits saved: nothing if they train something else.

    None is more severe than what was measured.
    """
    trials = finished(trials)
    measured: Mapping[str, Measured] = {
        row.rules[0]: row.measured
        for row in reversed(trials.rows)  # an edit of ours before a patch for the same rule
        if len(row.rules) == 1 and row.measured and not (row.training and row.training.state in BROKEN)
    }

    def told(result: Result) -> Result:
        return replace(result, measured=measured.get(result.rule.name))

    results = rated_by_trial(tuple(map(told, diagnosis.results)))
    return replace(diagnosis, results=results, trials=trials)
