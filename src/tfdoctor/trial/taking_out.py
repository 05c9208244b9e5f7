"""A trial of the program without its parts: by its steps where a part is in them, else by whole runs.

Those are tried that the recording shows to take time. The mean over the steady steps is compared, not the typical
step: a checkpoint in every fifth step costs time that the typical one does not show. What lies between epochs, or
comes so seldom that fifty steps may hold none of it, shows in whole runs only.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from tfdoctor.diagnose.diagnose import chart_of
from tfdoctor.diagnosis import Diagnosis, PartTrial, Result, Trials
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.facts.run_work.run_parts import RunPart, RunParts
from tfdoctor.recording import Recording
from tfdoctor.terms.errors import CaptureError, InterruptedTrialError
from tfdoctor.terms.kinds import Part
from tfdoctor.terms.record import common
from tfdoctor.terms.text import prose
from tfdoctor.trial import schedule, trial
from tfdoctor.trial.clock import TrialClock
from tfdoctor.trial.program import NotTried, Variant
from tfdoctor.trial.rounds import AROUND, Runs, Say
from tfdoctor.trial.running import Runner
from tfdoctor.trial.statistics import FEWEST_ROUNDS
from tfdoctor.trial.times import MS_PER_S

# Share of what recurs in the run from which on a part is tried: less is within the usual interval of a trial.
WORTH = 0.02
# The same for a part that is tried without being asked for, because no finding has an edit for it.
UNEXPLAINED = 0.15
WHOLE = "the program without its parts"  # The name of what cannot be tried where no part is known
BOUND = "input-bound"  # The rule that bounds what all changes of the input can save
LEAST_STEPS = 60  # Steps of a run below which its parts are timed by whole runs: those of the warm-up are left out

NO_TIME = "its two rounds did not fit into the minutes: allow more with --minutes"


def of_recording(recording: Recording, diagnosis: Diagnosis) -> tuple[list[Variant], list[NotTried]]:
    """Return a variant for each part that takes time, the largest first; or why there is none."""
    chart = chart_of(recording)
    parts = chart.get(RunParts)
    if parts is None:
        return [], [NotTried(WHOLE, chart.why_missing(RunParts))]
    worth = [one for one in parts.parts if parts.share(one) >= WORTH]
    same = [(one.part, one.name if one.part is Part.CALLBACK else one.line) for one in worth]
    distinct = [one for n, one in enumerate(worth) if same[n] not in same[:n]]  # of those that take the same out
    return [_variant(one, parts.share(one), diagnosis) for one in distinct], []


def unexplained(variants: Sequence[Variant], diagnosis: Diagnosis) -> list[Variant]:
    """Return the large parts for which no finding has an edit."""
    edited = [result for result in diagnosis.results if any(edit.before or edit.after for edit in result.edits)]
    large = [one for one in variants if (one.share or 0.0) >= UNEXPLAINED]
    return [one for one in large if one.without and not any(_covers(result, one.without) for result in edited)]


def _covers(result: Result, part: RunPart) -> bool:
    """Say whether the edit of a finding is about a part: of the input, or at its line."""
    if part.part is Part.INPUT:
        return result.rule.topic is Topic.INPUT
    places = {(place.path, place.line) for place in result.places}
    places |= {(edit.at.path, edit.at.line) for edit in result.edits if edit.at}
    return part.at is not None and (part.at.path, part.at.line) in places


def bound_of(diagnosis: Diagnosis) -> Result | None:
    """Return the finding that bounds what the input can save."""
    return next((r for r in diagnosis.results if r.finding and r.saving and r.rule.name == BOUND), None)


def _variant(part: RunPart, share: float, diagnosis: Diagnosis) -> Variant:
    bound = bound_of(diagnosis) if part.part is Part.INPUT else None
    line = f"({prose(part.at.path)}:{part.at.line})" if part.at else ""
    return Variant(
        name=" ".join(filter(None, ("without", part.name, line))),  # results are kept by it
        without=part,
        share=share,
        rules=(BOUND,) if bound else (),
        promised=bound.saving if bound else None,
        may_keep=False,
    )


Length = tuple[float, int]  # Of a run: seconds and steps


def recorded_length(diagnosis: Diagnosis) -> Length:
    """Return how long the run takes by its account; without one, it is taken to be long."""
    run = diagnosis.run
    return (run.total_ms / MS_PER_S, run.steps) if run and run.whole else (inf, diagnosis.steps.count)


def conduct(
    stage: Runner, variants: Sequence[Variant], recorded: Length, minutes: float, say: Say, trials: Trials
) -> Trials:
    """Run the program without each part and as it is, by turns; add what that shows to a trial.

    Ctrl-C ends the run that is going on, and what was measured by then is returned.
    """
    clock, rows = TrialClock(minutes), dict[str, PartTrial]()
    of_runs, of_steps = divided(variants, recorded, minutes)
    whole = Runs(stage, TrialClock(minutes / 2 if of_steps else minutes), say, whole=True)
    trials = _measured(whole, of_runs, rows, trials)
    failed = [one for one in of_runs if (row := rows.get(one.name)) and row.measured is None and row.runs > 0]
    # Of a whole run that fails without a part, the steps come before what misses it:
    of_steps += [one for one in failed if one.without and one.without.in_step is not False]
    steps = Runs(stage, TrialClock(max(0.0, clock.left_s) / 60), say, by_mean=True)
    trials = _measured(steps, of_steps, rows, trials)
    return replace(trials, parts=tuple(rows[one.name] for one in variants if one.name in rows))


def divided(variants: Sequence[Variant], recorded: Length, minutes: float) -> tuple[list[Variant], list[Variant]]:
    """Return the parts that are timed by whole runs, and those by steps.

    Where it is not known how often a part comes, whole runs tell for certain, if they fit into the time.
    """
    seconds, steps = recorded
    fits = FEWEST_ROUNDS * (AROUND + len(variants)) * seconds <= 60 * minutes

    def by_run(variant: Variant) -> bool:
        in_step = variant.without.in_step if variant.without else None
        if steps < LEAST_STEPS:
            return True
        return fits if in_step is None else not in_step

    of_runs = [one for one in variants if by_run(one)]
    return of_runs, [one for one in variants if one not in of_runs]


def _measured(runs: Runs, variants: Sequence[Variant], rows: dict[str, PartTrial], trials: Trials) -> Trials:
    """Measure parts in one way; where the program cannot be timed so, their rows say why."""
    if not variants or trials.ended_early:
        return trials
    try:
        with runs.until_interrupted():
            trial.begin(runs, variants)
            if runs.whole:
                schedule.whole_rounds(runs, variants)
            else:
                schedule.narrow(runs, variants)
    except (CaptureError, InterruptedTrialError) as error:
        sentence = str(error).rstrip(".")
        why = sentence[:1].lower() + sentence[1:]  # it follows "because"
        for one in variants:
            rows.setdefault(one.name, _row(one, None, why))
        return replace(trials, ended_early=isinstance(error, InterruptedTrialError))
    for one in variants:
        row = _row(one, runs, runs.why.get(one.name) or (trial.how_long(runs) if runs.whole else NO_TIME))
        if row.measured or one.name not in rows:  # what another way measured, or why it could not, stays
            rows[one.name] = row
    return trial.summed(trials, trial.numbers(runs))


def _row(variant: Variant, runs: Runs | None, missing: str) -> PartTrial:
    part = variant.without
    assert part is not None  # noqa: S101 - it is made with one
    own = runs.tried.get(variant.name, []) if runs else []
    measured = runs.saving(variant.name) if runs else None
    failed = next((run.error for run in own if run.error), "")
    ineffective = next((run.ineffective for run in own if run.ineffective), "")
    why = f"the program fails without it ({failed})" if failed else ineffective or missing
    by_step = measured is None or not measured.of_run
    took = {"as_is_ms": runs.whole_ms(runs.original), "without_ms": runs.whole_ms(own)} if runs else {}
    # What is promised is a saving of a step.
    bound = {} if by_step else {"promised": None}
    rule, missing = next(iter(variant.rules), "") if by_step else "", "" if measured else why
    return common(
        PartTrial, part, variant, measured=measured, runs=len(own), missing=missing, rule=rule, **took, **bound
    )
