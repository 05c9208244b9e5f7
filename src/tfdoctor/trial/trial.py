"""A trial from its variants to what was measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from tfdoctor.diagnosis import BROKEN, Diagnosis, Measured, Result, Trial, Trials
from tfdoctor.edits.splice import Declined
from tfdoctor.errors import CaptureError
from tfdoctor.trial import rounds, statistics, training
from tfdoctor.trial.rounds import Runs, TrialClock, helps
from tfdoctor.trial.running import Runner, TrialRun
from tfdoctor.trial.times import NoTimes, RunTimes
from tfdoctor.trial.variants import NotTried, Variant

Join = Callable[[Sequence[Variant]], Variant]
"""Makes one variant of several; raises Declined where they do not go together."""


@dataclass(slots=True)
class Agenda:
    """What a trial tries."""

    variants: Sequence[Variant]
    join: Join
    minutes: float = 10.0
    not_tried: Sequence[NotTried] = ()
    say: Callable[[str], object] = field(default=lambda _: None)


def conduct(stage: Runner, plan: Agenda) -> tuple[Trials, tuple[Variant, ...]]:
    """Run the trial; return what was measured, and the variants that proved to help together, in their order.

    Ctrl-C ends the run that is going on, and what was measured by then is returned.

    Raises:
        CaptureError: the program cannot be timed even as it is.
    """
    clock = TrialClock(plan.minutes)
    runs = Runs(stage.run, clock, plan.say)
    _check(runs.first())
    kept: tuple[Variant, ...] = ()
    extra: list[Variant] = []
    interrupted = False
    try:
        rounds.run_rounds(runs, plan.variants)
        kept = _helped(runs, plan.variants)
        if len(kept) > 1:
            best = rounds.together(runs, kept, _joining(plan.join, extra))
            kept = _parts(kept, best)
    except KeyboardInterrupt:
        interrupted = True
        kept = kept or _helped(runs, plan.variants)[:1]
    trials = _trials(stage, plan, runs, [*plan.variants, *extra], kept)
    return replace(trials, ended_early=interrupted), kept


def _check(first: TrialRun) -> None:
    """Refuse a program that cannot be timed.

    Raises:
        CaptureError: why not.
    """
    if isinstance(first.times, RunTimes):
        return
    why = first.error or first.times.why
    if "EOFError" in why:
        raise CaptureError(
            "The program asks for input: a trial runs it without a terminal, so give its answers as arguments."
        )
    if first.error:
        raise CaptureError(f"The program failed when it ran as it is ({why}): run it by itself.")
    raise CaptureError(f"The steps of the program cannot be timed as it is: {why}.")


def _helped(runs: Runs, variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """Return the variants that save time and may be kept, in their order."""
    measured = runs.measured([variant.name for variant in variants])
    return tuple(
        variant
        for variant in variants
        if helps(measured.get(variant.name)) and variant.may_keep and not _broken(runs, variant)
    )


def _broken(runs: Runs, variant: Variant) -> bool:
    """Say whether a variant trains something else than it should."""
    reference = training.reference(runs.original)
    compared = training.compare(variant, runs.tried.get(variant.name, ()), reference)
    return compared.state in BROKEN


def _joining(join: Join, extra: list[Variant]) -> rounds.Join:
    def joined(parts: Sequence[Variant]) -> Variant | None:
        try:
            variant = join(parts)
        except Declined:
            return None
        extra.append(variant)
        return variant

    return joined


def _parts(helped: Sequence[Variant], best: Variant | None) -> tuple[Variant, ...]:
    """Return the variants that the best set is made of; without a set, the first alone."""
    if best is None:
        return tuple(helped[:1])
    names = best.name.split(" + ")
    return tuple(variant for variant in helped if variant.name in names)


def _trials(
    stage: Runner, plan: Agenda, runs: Runs, variants: Sequence[Variant], kept: Sequence[Variant]
) -> Trials:
    measured = runs.measured([variant.name for variant in variants])
    reference = training.reference(runs.original)
    names = {variant.name for variant in kept}
    joined = " + ".join(variant.name for variant in kept) if len(kept) > 1 else ""
    rows = [
        _row(runs, variant, measured.get(variant.name), reference, kept=variant.name in names)
        for variant in variants
        if variant.name in runs.tried or variant in plan.variants
    ]
    originals = _steps(runs.original)
    everything = [*runs.original, *(run for tried in runs.tried.values() for run in tried)]
    return Trials(
        rows=tuple(rows),
        as_is_ms=median(originals) if originals else None,
        as_is=statistics.drift(runs.rounds) if runs.rounds else None,
        rounds=len(runs.rounds),
        runs=len(everything),
        minutes=sum(run.seconds for run in everything) / 60,
        foreign=median([run.foreign for run in everything]),
        layer=stage.layer,
        not_tried=tuple((missing.name, missing.why) for missing in plan.not_tried),
        together=joined,
    )


def _row(
    runs: Runs,
    variant: Variant,
    measured: Measured | None,
    reference: training.Reference,
    *,
    kept: bool,
) -> Trial:
    own = runs.tried.get(variant.name, [])
    steps = _steps(own)
    whole = [run.times.whole_ms for run in own if isinstance(run.times, RunTimes)]
    missing = "" if measured else runs.why.get(variant.name, "there was no time left for it")
    return Trial(
        name=variant.name,
        action=variant.action,
        rules=variant.rules,
        promised=variant.promised,
        examples=float(variant.examples),
        measured=measured,
        step_ms=median(steps) if steps else None,
        whole_ms=median(whole) if whole else None,
        training=training.compare(variant, own, reference) if own else None,
        runs=len(own),
        missing=missing,
        kept=kept,
    )


def _steps(runs: Sequence[TrialRun]) -> list[float]:
    return [run.times.step_ms for run in runs if not isinstance(run.times, NoTimes)]


def with_measured(diagnosis: Diagnosis, trials: Trials) -> Diagnosis:
    """Return a diagnosis whose findings have what their edits saved."""
    measured: Mapping[str, Measured] = {
        row.rules[0]: row.measured for row in trials.rows if len(row.rules) == 1 and row.measured
    }

    def told(result: Result) -> Result:
        return replace(result, measured=measured.get(result.rule.name))

    return replace(diagnosis, results=tuple(map(told, diagnosis.results)), trials=trials)
