"""The sentences of the verdict about the run: what it took, what its time went to, what changes save of it."""

import signal
from collections.abc import Sequence

from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import RunTogether
from tfdoctor.diagnosis.work import RunAccount
from tfdoctor.report.run.words import amount, noun, times, whole_ms
from tfdoctor.report.words import is_known, run_saving
from tfdoctor.terms import text
from tfdoctor.terms.humanize import about_duration, counted, duration, factor, milliseconds, share
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.run_time import LongStepTime
from tfdoctor.terms.verdict import Bound

MATTERS = 0.1  # Share of the run from which on the verdict speaks of something: as of the parts of a step
ALIKE = 0.8  # Share of the steps' time below which the traced steps do not stand for the others

MOST = 0.5
# Share of the run: rounded to two digits, as the sentence has it, a time can be 5 % longer than it is.
LITTLE = 0.05
BY_SIGNAL = 128  # What a shell adds to the number of the signal that ended a process, for its exit code
FEW = 2  # Steps without a median: two have no middle

# Phases that are no work of the script's, and the end of the sentence of each where it is much.
NOT_THE_SCRIPT = {
    Phase.PROFILER: "tfdoctor's own: the profiler, and writing the recording (with --no-trace, less)",
    Phase.UNNAMED: "unnamed: the recording does not show what ran",
}


def headline(run: RunAccount, *, trained: bool, exit_code: int | None = None) -> tuple[str, ...]:
    """Return what the whole run took, and what its time went to; ``trained`` says that it has training steps.

    Without an ``exit_code``, it is not known how the run ended.
    """
    took, found = duration(run.total_ms), times(run)
    start = f"The run took {took}" if run.finished else f"{took} of the run were recorded"
    if run.ended_early:
        start = f"The run was ended after its traced steps, as asked, and took {took}"
    told = [f"{start}{_went_to(run, trained=trained)}."]
    if not run.finished:  # the process did not record its end
        told.append(_end(exit_code))
    for phase, what in NOT_THE_SCRIPT.items():
        if phase in found and found[phase] >= MATTERS * whole_ms(run):
            told.append(f"{amount(run, found[phase])} of the run are {what}.")
    return tuple(filter(None, [*told, _long(run)]))


def _end(exit_code: int | None) -> str:
    if exit_code is None:
        return "The run has no recorded end: it was killed, or is still running."
    number = exit_code - BY_SIGNAL
    if number <= 0:
        return f"The run ended abruptly, with exit code {exit_code}."
    known = number in set(signal.Signals)
    return f"The run was ended by {signal.Signals(number).name if known else f'signal {number}'}."


def window(run: RunAccount) -> str:
    """Return that the account covers a traced window alone; "" where it covers the run."""
    if run.whole:
        return ""
    why = text.prose(run.missing).rstrip(".") or "the rest of the run was not recorded"
    return f"The account of the run covers the traced window of {duration(run.total_ms)}; {why}."


def traced_steps(run: RunAccount) -> str:
    """Return what part of the steps the traced ones are like; "" where that is unknown."""
    if not is_known(run.window_share) or not run.window_steps:
        return ""
    one = run.window_steps == 1
    traced = "The traced step" if one else f"The {run.window_steps:,} traced steps"
    if (run.window_share or 0.0) >= ALIKE:
        return f"{traced} {'stands' if one else 'stand'} for {share(run.window_share)} of the steps' time."
    return f"{traced} {'is' if one else 'are'} like only {share(run.window_share)} of the steps by time."


def untraced_steps(run: RunAccount, why: str) -> str:
    """Return the training steps of a run of which none was traced; ``why`` is a clause, or "".

    "" for a run without training steps.
    """
    reason = f": {why}" if why else ""
    loop = f" of the longest of {run.step_loops} loops" if run.step_loops > 1 else ""
    if 1 <= run.steps <= FEW and run.step_mean_ms and is_known(run.step_mean_ms):
        taken = milliseconds(run.steps * run.step_mean_ms)
        one = f"The training step{loop} takes {taken}; its parts are"
        two = f"The two training steps{loop} take {taken} together; their parts are"
        return f"{one if run.steps == 1 else two} unknown{reason}."
    if run.steps and is_known(run.step_median_ms):
        each = f"Each of {run.steps:,} training steps{loop} takes {milliseconds(run.step_median_ms)}"
        return f"{each} (median); its parts are unknown{reason}."
    return f"What a training step consists of is unknown{reason}." if run.of(Phase.STEPS) else ""


def steps_matter(run: RunAccount) -> bool:
    """Return whether training steps are a part of the run that the verdict speaks of.

    They are a part of what recurs in a longer run: a short one mostly imports.
    """
    recurring = run.recurring_ms if is_known(run.recurring_ms) and run.recurring_ms else 0.0
    return run.of(Phase.STEPS) >= MATTERS * (recurring or whole_ms(run)) > 0


def steps_will_matter(run: RunAccount) -> bool:
    """Return whether training steps are much of the run with all its planned epochs, as far as these are known."""
    times = run.for_times
    if times is None or not is_known(times):
        return steps_matter(run)
    planned_ms = whole_ms(run) + (times - 1) * run.recurring_ms
    return times * run.of(Phase.STEPS) >= MATTERS * planned_ms > 0


def change(run: RunAccount, together: RunTogether | None, findings: Sequence[Result], changes: int) -> str:
    """Return what all changes save of the run, or the largest saving; "" where no saving of the run is known."""
    if together is None or not is_known(together.ms) or not 0 < together.ms < run.total_ms:
        savings = [r.run for r in findings if r.run and is_known(r.run.ms)]
        best = max(savings, key=lambda saving: saving.ms, default=None)
        words = run_saving(best, None, run) if best and best.ms > 0 else None
        faults = counted(len(findings), "problem").capitalize()
        return f"{faults} found; the largest saving is {words[0]}." if words else ""
    saved, after = together.ms, run.total_ms - together.ms
    named = counted(changes or len(together.rules), "change").capitalize()
    known = is_known(together.extrapolated_share) and run.for_epochs
    epochs, longer = counted(run.for_epochs or 0, "epoch"), share(together.extrapolated_share)
    counts, bound = _counted(run, together, findings), together.bound is Bound.AT_MOST
    if together.share < LITTLE:
        saves = f"{'at most' if bound else 'about'} {duration(saved)} of the run ({share(together.share)})"
        return f"{named} would save {saves}{f', and {longer} of a run of {epochs}' if known else ''}{counts}."
    about = f"{about_duration(after)} at best" if bound else f"about {about_duration(after)}"
    return (
        f"{named} would reduce the run from {duration(run.total_ms)} to {about} ({factor(run.total_ms / after)})"
        f"{f', and a run of {epochs} by {longer}' if known else ''}{counts}."
    )


def without_savings(findings: Sequence[Result]) -> str:
    """Return how many findings there are, of a run of which no saving is known."""
    faults = counted(len(findings), "problem").capitalize()
    return f"{faults} found; what the changes save of the run could not be computed."


def _counted(run: RunAccount, together: RunTogether, findings: Sequence[Result]) -> str:
    """Return which steps a bound counts, as a clause, where the traced ones do not stand for most; else "".

    What a change of the typical step saves of the others is not known: without the clause, the bound is none.
    """
    saved = [one.saving for one in findings if one.rule.name in together.rules and one.saving]
    of_step = any(is_known(one.ms_per_step) and one.ms_per_step > 0 for one in saved)
    known = run.window_share
    if not of_step or together.bound is not Bound.AT_MOST or not is_known(known):
        return ""
    if (known or 0.0) >= ALIKE:
        return ""
    which = "" if len(saved) == len(together.rules) else " for changes of the typical step"
    return f", counting{which} only the {share(known)} of the steps' time that is like the traced steps"


def _went_to(run: RunAccount, *, trained: bool) -> str:
    """Return what the time of the run went to, as the end of its first sentence."""
    named = {phase: time for phase, time in times(run).items() if phase not in NOT_THE_SCRIPT}
    nothing = ", and no training step was seen" if run.unseen else " and trained nothing"
    if not named:
        return "" if trained else nothing
    largest = max(named, key=lambda phase: named[phase])
    what = next(noun(row) for row in run.rows if row.phase is largest)
    most = f"{amount(run, named[largest])} are {what}"
    steps = named.get(Phase.STEPS, 0.0)
    if not steps:
        return f": {most}" if trained else f"{nothing}: {most}"
    training = f": {amount(run, steps)} are training steps"
    if largest is Phase.STEPS:
        rest = whole_ms(run) - steps
        return f"{training}, {duration(rest)} are not" if rest > 0 else training
    if named[largest] >= MOST * whole_ms(run):
        return f"{training}; {most}"
    return f"{training}; the largest other part is {what}, {amount(run, named[largest])}"


def _long(run: RunAccount) -> str:
    """Return what long steps add to the run, where that is much."""
    long = run.long_steps
    if long is None or not is_known(long.beyond_ms) or long.beyond_ms < MATTERS * whole_ms(run):
        return ""
    unknown = f"; {cause_unknown(long)}" if long.unknown_ms >= MOST * long.beyond_ms else ""
    if unknown and long.other_cores:
        return ""  # the machine's noise, which the account shows
    told = unknown if is_known(long.unknown_ms) else ""
    return f"{amount(run, long.beyond_ms)} are what {long_steps(long)} beyond the usual time{told}."


def cause_unknown(long: LongStepTime) -> str:
    """Return how much of what long steps add has no known cause: "the cause of 8 s is unknown"."""
    time, beyond = duration(long.unknown_ms), duration(long.beyond_ms)
    return f"the cause{'' if time == beyond else f' of {time}'} is unknown"


def long_steps(long: LongStepTime) -> str:
    """Return how many steps are long, with the verb: "three long steps take"."""
    return f"{counted(long.count, 'long step')} {'takes' if long.count == 1 else 'take'}"
