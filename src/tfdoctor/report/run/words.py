"""Names and amounts of the account of the run, and what a change saves of it."""

import math
import re

from tfdoctor.diagnosis.savings import RunSaving, Saving
from tfdoctor.diagnosis.work import PhaseRow, RunAccount
from tfdoctor.terms.humanize import duration, milliseconds, share
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound, Recurrence, Severity

# Of each phase: what it is in a sentence, "30 s (73 %) are <...>"; its colour, as those of the parts of a step
# (training steps as computing, preparing data as waiting for input); its cell in a bar that is read without them.
PHASES = {
    Phase.START: ("the start of Python", "#7f8791", "▖"),
    Phase.IMPORTS: ("imports", "#5b7a99", "▄"),
    Phase.PREPARING: ("preparation of data", "#d55e00", "▓"),
    Phase.CHILDREN: ("waiting for child processes", "#8c8440", "▘"),
    Phase.OWN: ("the script's own work", "#4f86a8", "▙"),
    Phase.BUILDING: ("building of the model", "#b8609a", "▞"),
    Phase.TRACING: ("tracing and compiling", "#8a63c9", "▒"),
    Phase.STEPS: ("training steps", "#0f76b5", "█"),
    Phase.BOUNDARIES: ("work at epoch boundaries", "#b07d0e", "░"),
    Phase.EVALUATION: ("evaluation", "#1f958c", "▀"),
    Phase.PREDICTION: ("prediction", "#5f8f1d", "▚"),
    Phase.SAVING: ("saving", "#a4663f", "▌"),
    Phase.PROFILER: ("tfdoctor's profiler", "#cc4455", "▐"),
    Phase.END: ("the end of the run", "#7b8a7b", "▗"),
    Phase.UNNAMED: ("unnamed", "#69717c", "?"),
}
PHASE_NOUNS, PHASE_COLOURS, GLYPHS = (
    {phase: of_phase[at] for phase, of_phase in PHASES.items()} for at in range(3)
)
# In the name of a function that writes summaries.
SUMMARIES = re.compile(r"(^|\.)(summary(_ops_v2)?|TensorBoard)\.")


def noun(row: PhaseRow) -> str:
    """Return what a phase was in a sentence: what was saved is told by what its lines call."""
    if row.phase is not Phase.SAVING or not row.lines:
        return PHASE_NOUNS[row.phase]
    summaries = {bool(SUMMARIES.search(line.calls)) for line in row.lines}
    if summaries == {True}:
        return "saving of summaries"
    return f"saving of models{', checkpoints and summaries' if True in summaries else ' and checkpoints'}"


def is_known(value: float | None) -> bool:
    """Return whether there is a number, and a finite one."""
    return value is not None and math.isfinite(value)


def times(run: RunAccount) -> dict[Phase, float]:
    """Return the phases that take time, in ms and in their order."""
    return {row.phase: row.ms for row in run.rows if is_known(row.ms) and row.ms > 0}


def whole_ms(run: RunAccount) -> float:
    """Return the time that the shares are of: all phases together, which is the run's."""
    return sum(times(run).values())


def amount(run: RunAccount, time_ms: float) -> str:
    """Return a time with its share of the run: "72 s (55 %)"."""
    whole = whole_ms(run)
    return f"{duration(time_ms)} ({share(time_ms / whole)})" if whole else duration(time_ms)


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
    gains = step is not None and is_known(step.per_step.value) and step.per_step.value > 0
    of_step = ""
    if step and gains:
        of_step = f"{at_most(step.bound)}{milliseconds(step.per_step.value)} of {which} ({share(step.share)})"
    if saving is None or not is_known(saving.total.value) or (step and saving.total.value <= 0):
        return SavingWords(of_step, "") if gains else None
    if saving.total.value <= 0:
        return SavingWords("nothing", "")
    longer = ""
    if is_known(saving.extrapolated):
        epochs = f"{run.for_epochs:,} epochs" if run.for_epochs else "more epochs"
        longer = f"{share(saving.extrapolated)} of a run of {epochs}"
    if run.ended_early and step and gains:  # its length says nothing of a training
        return SavingWords(of_step, ", ".join(filter(None, (longer, _rated(saving, step.share)))))
    part = "run" if run.whole else "traced window"
    shares = ", ".join(filter(None, (share(saving.share), _rated(saving, saving.share))))
    each = ", ".join(filter(None, (_each(saving, of_step.removeprefix("at most ")), longer)))
    return SavingWords(f"{at_most(saving.bound)}{duration(saving.total.value)} of the {part} ({shares})", each)


def at_most(bound: Bound) -> str:
    """Return what stands before an amount that is an upper bound; "" before another."""
    return "at most " if bound is Bound.AT_MOST else ""


def _rated(saving: RunSaving, told: float) -> str:
    """Return the share that the severity follows, where no share that is told gives the same one."""
    shares = [told, saving.extrapolated] if is_known(saving.extrapolated) else [told]
    if any(one is not None and Severity.of(one) == Severity.of(saving.rated) for one in shares):
        return ""
    return f"{share(saving.rated)} of {'a longer run' if saving.recurs is Recurrence.ONCE else 'what recurs'}"


def _each(saving: RunSaving, of_step: str) -> str:
    """Return how often a change saves how much: "0.9 s in each of 10 epochs"; "" where that was not counted."""
    if saving.recurs is Recurrence.ONCE:
        return "once"
    if saving.recurs is Recurrence.PER_STEP and of_step:
        return of_step
    noun = {Recurrence.PER_EPOCH: "epoch", Recurrence.PER_CALL: "call", Recurrence.PER_STEP: "step"}[saving.recurs]
    if saving.times <= 1:
        return f"in one {noun}" if saving.times else ""
    if not is_known(saving.each.value):
        return f"in {saving.times:,} {noun}s"
    told = milliseconds if saving.recurs is Recurrence.PER_STEP else duration
    return f"{told(saving.each.value)} in each of {saving.times:,} {noun}s"
