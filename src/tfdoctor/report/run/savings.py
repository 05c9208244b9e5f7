"""What a change saves of the run, in words: in all, and each time that it saves something."""

from dataclasses import dataclass

from tfdoctor.diagnosis import RunAccount, RunSaving, Saving
from tfdoctor.report.run.words import is_known
from tfdoctor.terms.humanize import duration, milliseconds, share
from tfdoctor.terms.verdict import Bound, Recurrence, Severity


@dataclass(frozen=True, slots=True)
class SavingWords:
    """A saving of the run: "at most 9.4 s of the run (7 %)", "0.9 s in each of 10 epochs"."""

    amount: str
    each: str

    @property
    def whole(self) -> str:
        """Both, as the end of "saves …"."""
        return ", ".join(filter(None, (self.amount, self.each)))


def saving_words(
    saving: RunSaving | None, step: Saving | None, run: RunAccount | None
) -> SavingWords | None:
    """Return what a change saves of the run, or of each step of it; None where a report of the step says all.

    ``step`` is the saving of the same change in the step.
    """
    if run is None or (step is not None and not run.whole):  # a traced window is made of steps
        return None
    if saving is None or not is_known(saving.total.value) or (step and saving.total.value <= 0):
        return SavingWords(of_step(step), "") if step and _gains(step) else None
    if saving.total.value <= 0:
        return SavingWords("nothing", "")
    return SavingWords(_amount(saving, run), ", ".join(filter(None, _each(saving, step, run))))


def of_step(saving: Saving) -> str:
    """Return what a change saves of each step, in a report of the run."""
    ceiling = "at most " if saving.bound is Bound.AT_MOST else ""
    return f"{ceiling}{milliseconds(saving.per_step.value)} of each step ({share(saving.share)})"


def _gains(saving: Saving) -> bool:
    return is_known(saving.per_step.value) and saving.per_step.value > 0


def _amount(saving: RunSaving, run: RunAccount) -> str:
    ceiling = "at most " if saving.bound is Bound.AT_MOST else ""
    whole = "run" if run.whole else "traced window"
    return f"{ceiling}{duration(saving.total.value)} of the {whole} ({share(saving.share)}{_rated(saving)})"


def _rated(saving: RunSaving) -> str:
    """Return the share that the severity follows, where that of the run would give another one."""
    if Severity.of(saving.rated) == Severity.of(saving.share):
        return ""
    of = "a longer run" if saving.recurs is Recurrence.ONCE else "what recurs"
    return f", {share(saving.rated)} of {of}"


def _each(saving: RunSaving, step: Saving | None, run: RunAccount) -> tuple[str, str]:
    """Return how often it saves how much, and the share of a longer run."""
    longer = ""
    if is_known(saving.extrapolated):
        epochs = f"{run.for_epochs:,} epochs" if run.for_epochs else "more epochs"
        longer = f"{share(saving.extrapolated)} of a run of {epochs}"
    return _recurring(saving, step), longer


def _recurring(saving: RunSaving, step: Saving | None) -> str:
    match saving.recurs:
        case Recurrence.ONCE:
            return "once"
        case Recurrence.PER_EPOCH:
            return _times(saving, "epoch", duration(saving.each.value))
        case Recurrence.PER_CALL:
            return _times(saving, "call", duration(saving.each.value))
        case Recurrence.PER_STEP if step is not None and _gains(step):
            return of_step(step).removeprefix("at most ")
        case Recurrence.PER_STEP:
            return _times(saving, "step", milliseconds(saving.each.value))


def _times(saving: RunSaving, noun: str, each: str) -> str:
    if saving.times <= 1 or not is_known(saving.each.value):
        return f"in one {noun}" if saving.times <= 1 else f"in {saving.times:,} {noun}s"
    return f"{each} in each of {saving.times:,} {noun}s"
