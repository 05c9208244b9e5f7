"""What a change saves of the run, in words: in all, and each time that it saves something."""

from tfdoctor.diagnosis import RunAccount, RunSaving, Saving
from tfdoctor.report.run.words import is_known
from tfdoctor.terms.humanize import duration, milliseconds, share
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound, Recurrence, Severity


class SavingWords(Record):
    """A saving of the run: "at most 9.4 s of the run (7 %)", "0.9 s in each of 10 epochs"."""

    amount: str
    each: str

    @property
    def whole(self) -> str:
        """Both, as the end of "saves …"."""
        return ", ".join(filter(None, (self.amount, self.each)))


def saving_words(
    saving: RunSaving | None, step: Saving | None, run: RunAccount | None, which: str = "each step"
) -> SavingWords | None:
    """Return what a change saves of the run, or of each step of it; None where a report of the step says all.

    ``step`` is the saving of the same change in the step, and ``which`` the steps that it is of.
    """
    if run is None or (step is not None and not run.whole):  # a traced window is made of steps
        return None
    if saving is None or not is_known(saving.total.value) or (step and saving.total.value <= 0):
        return SavingWords(of_step(step, which), "") if step and _gains(step) else None
    if saving.total.value <= 0:
        return SavingWords("nothing", "")
    longer = ""
    if is_known(saving.extrapolated):
        epochs = f"{run.for_epochs:,} epochs" if run.for_epochs else "more epochs"
        longer = f"{share(saving.extrapolated)} of a run of {epochs}"
    if run.ended_early and step and _gains(step):  # its length says nothing of a training
        told = (longer, _rated(saving, step.share))
        return SavingWords(of_step(step, which), ", ".join(filter(None, told)))
    ceiling = "at most " if saving.bound is Bound.AT_MOST else ""
    rated = "".join(f", {words}" for words in [_rated(saving, saving.share)] if words)
    part = f"{'run' if run.whole else 'traced window'} ({share(saving.share)}{rated})"
    each = ", ".join(filter(None, (_each(saving, step, which), longer)))
    return SavingWords(f"{ceiling}{duration(saving.total.value)} of the {part}", each)


def of_step(saving: Saving, which: str) -> str:
    """Return what a change saves of each step, in a report of the run."""
    ceiling = "at most " if saving.bound is Bound.AT_MOST else ""
    return f"{ceiling}{milliseconds(saving.per_step.value)} of {which} ({share(saving.share)})"


def _gains(saving: Saving) -> bool:
    return is_known(saving.per_step.value) and saving.per_step.value > 0


def _rated(saving: RunSaving, told: float) -> str:
    """Return the share that the severity follows, where no share that is told gives the same one."""
    shares = [told, saving.extrapolated] if is_known(saving.extrapolated) else [told]
    if any(one is not None and Severity.of(one) == Severity.of(saving.rated) for one in shares):
        return ""
    of = "a longer run" if saving.recurs is Recurrence.ONCE else "what recurs"
    return f"{share(saving.rated)} of {of}"


def _each(saving: RunSaving, step: Saving | None, which: str) -> str:
    """Return how often a change saves how much: "0.9 s in each of 10 epochs"; "" where that was not counted."""
    match saving.recurs:
        case Recurrence.ONCE:
            return "once"
        case Recurrence.PER_EPOCH:
            noun, each = "epoch", duration(saving.each.value)
        case Recurrence.PER_CALL:
            noun, each = "call", duration(saving.each.value)
        case Recurrence.PER_STEP if step is not None and _gains(step):
            return of_step(step, which).removeprefix("at most ")
        case Recurrence.PER_STEP:
            noun, each = "step", milliseconds(saving.each.value)
    if saving.times <= 1:
        return f"in one {noun}" if saving.times else ""
    if not is_known(saving.each.value):
        return f"in {saving.times:,} {noun}s"
    return f"{each} in each of {saving.times:,} {noun}s"
