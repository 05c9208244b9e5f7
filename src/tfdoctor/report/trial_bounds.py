"""Upper bounds of the report that a trial exceeded: what was measured counts, so they are bounds no more."""

from collections.abc import Iterable
from dataclasses import replace

from tfdoctor.diagnosis import Diagnosis, Difference, RunSaving, RunTogether, Saving, Together, Trial
from tfdoctor.report.trial_words import is_broken
from tfdoctor.report.words import is_known
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.verdict import Bound

# What the report says that one change saves, or all of them.
Prediction = Saving | RunSaving | Together | RunTogether


def more_than_predicted(row: Trial, together: Together | None) -> str:
    """Return that a variant saves more than the upper bound of the report, as the end of a sentence; else "".

    ``together`` is what the report predicts of all changes: at most as much is predicted of some of them at once.
    """
    if row.measured is None:
        return ""
    own: Prediction | None = row.promised_run or row.promised
    if own is None and together and not row.measured.of_run and _is_of(row, together):
        own = together
    if own is None or not _exceeds(row, own):
        return ""
    within = "" if row.measured.low > own.share else ", which is within the interval"
    return f", more than predicted (at most {percent(own.share)}{within})"


def with_measured_bounds(diagnosis: Diagnosis) -> Diagnosis:
    """Return a diagnosis whose sums are upper bounds only where no trial of their changes exceeded them."""
    rows = diagnosis.trials.rows if diagnosis.trials else ()
    together, of_run = diagnosis.together, diagnosis.run_together
    of_steps = [row for row in rows if row.measured and not row.measured.of_run and row.examples == 1]
    whole_runs = [row for row in rows if row.measured and row.measured.of_run]
    in_step = together is not None and _refuted(of_steps, together)
    # The saving of the run by the same changes is that of the step, times the steps.
    same = bool(together and of_run and set(together.rules) == set(of_run.rules))
    in_run = of_run is not None and ((in_step and same) or _refuted(whole_runs, of_run))
    return replace(
        diagnosis,
        together=replace(together, bound=Bound.EXPECTED) if together and in_step else together,
        run_together=replace(of_run, bound=Bound.EXPECTED) if of_run and in_run else of_run,
    )


def _refuted(rows: Iterable[Trial], predicted: Together | RunTogether) -> bool:
    """Say whether some of the changes save more than all of them were to save at most."""
    return any(_is_of(row, predicted) and _exceeds(row, predicted) for row in rows)


def _is_of(row: Trial, predicted: Together | RunTogether) -> bool:
    return bool(row.rules) and set(row.rules) <= set(predicted.rules)


def _exceeds(row: Trial, predicted: Prediction) -> bool:
    return (
        predicted.bound is Bound.AT_MOST
        and is_known(predicted.share)
        and row.measured is not None
        and row.measured.difference is Difference.SAVES
        and not is_broken(row.training)
        and row.measured.share > predicted.share
    )
