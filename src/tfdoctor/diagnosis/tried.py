"""What a trial changes of the sums of a diagnosis: upper bounds that it exceeded."""

from dataclasses import replace

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.savings import RunSaving, RunTogether, Saving, Together
from tfdoctor.diagnosis.trials import Difference, Trial, is_broken
from tfdoctor.terms.verdict import Bound


def with_measured_bounds(diagnosis: Diagnosis) -> Diagnosis:
    """Return a diagnosis whose sums are upper bounds only where no trial of their changes exceeded them."""
    rows = [row for row in diagnosis.trials.rows if row.measured] if diagnosis.trials else []
    together, of_run = diagnosis.together, diagnosis.run_together
    of_steps = (row for row in rows if row.examples == 1 and row.measured and not row.measured.of_run)
    whole_runs = (row for row in rows if row.measured and row.measured.of_run)
    in_step = together is not None and any(exceeds(row, together) for row in of_steps)
    # The saving of the run by the same changes is that of the step, times the steps.
    same = bool(together and of_run and set(together.rules) == set(of_run.rules))
    in_run = of_run is not None and ((in_step and same) or any(exceeds(row, of_run) for row in whole_runs))
    return replace(
        diagnosis,
        together=replace(together, bound=Bound.EXPECTED) if together and in_step else together,
        run_together=replace(of_run, bound=Bound.EXPECTED) if of_run and in_run else of_run,
    )


def exceeds(row: Trial, predicted: Saving | RunSaving | Together | RunTogether) -> bool:
    """Return whether a change saves more than was predicted at most of it, or of all changes that it is part of."""
    if isinstance(predicted, Together | RunTogether) and not (row.rules and set(row.rules) <= set(predicted.rules)):
        return False
    found = row.measured
    if found is None or found.difference is not Difference.SAVES or is_broken(row.training):
        return False
    return predicted.bound is Bound.AT_MOST and found.share > predicted.share
