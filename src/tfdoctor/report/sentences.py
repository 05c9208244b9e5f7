"""What run and step take, in sentences that a reviewer can quote, and how far to trust them."""

import signal
from collections.abc import Iterator

from tfdoctor.diagnosis import Account, AccountState, Diagnosis, RunAccount, StepsSummary
from tfdoctor.report import words
from tfdoctor.report.run import amount, cause_unknown, long_steps, noun, times
from tfdoctor.report.words import FEW, PART_WORDS, is_known
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, duration, milliseconds, share, time_span
from tfdoctor.terms.kinds import Phase, StepSource

MATTERS = 0.1  # Share of the run from which on the verdict speaks of something: as of the parts of a step
ALIKE = 0.8  # Share of the steps' time below which the traced steps do not stand for the others
MOST = 0.5
BY_SIGNAL = 128  # What a shell adds to the number of the signal that ended a process, for its exit code
FAR = 1.25  # Times the median: a mean above it shows that outliers take much of the run

# Phases that are no work of the script's, and the end of the sentence of each where it is much.
NOT_THE_SCRIPT = {
    Phase.PROFILER: "tfdoctor's own: the profiler, and writing the recording (with --no-trace, less)",
    Phase.UNNAMED: "unnamed: the recording does not show what ran",
}
_SOURCES = {
    StepSource.KERAS_FIT: "the Keras training loop",
    StepSource.KERAS_TRAIN_ON_BATCH: "Keras train_on_batch calls",
    StepSource.TF_DATA_LOOP: "a loop over a tf.data iterator",
    StepSource.REPEATED_CALL: "repeated calls of one function",
    StepSource.EAGER_GRADIENT: "repeated gradient computations",
    StepSource.SESSION_RUN: "Session.run calls that train",
    StepSource.GRAPH_PERIOD: "the period of graph executions",
    StepSource.MARKERS: "step markers in the trace",
    StepSource.TPU_STEPS: "the step line of the TPU",
    StepSource.XLA_RUNS: "runs of the compiled training program",
    StepSource.XLA_CALLS: "calls of the compiled training function",
    StepSource.GRAPH_LOOP: "a loop inside a tf.function",
    StepSource.NONE: "nothing in the trace",
}


def account(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return what run and step take, the most important sentence first."""
    of_run = tuple(filter(None, _run_sentences(diagnosis)))
    of_step = tuple(_step_sentences(diagnosis))
    return (*of_step, *of_run) if is_of_steps(diagnosis) else (*of_run, *of_step)


def is_of_steps(diagnosis: Diagnosis) -> bool:
    """Return whether the report is about the step first, although the whole run is known.

    Most of a run that was ended after its traced steps, as asked, is what comes once: its steps count as in all of
    its planned epochs, as far as these are known.
    """
    run = whole_run(diagnosis)
    if run is None or not run.ended_early or not is_known(diagnosis.steps.median_ms):
        return False
    if not is_known(run.for_times):
        return steps_matter(run)
    planned_ms = run.total_ms + (run.for_times - 1) * run.recurring_ms
    return run.for_times * run.of(Phase.STEPS) >= MATTERS * planned_ms > 0


def whole_run(diagnosis: Diagnosis) -> RunAccount | None:
    """Return the account where it covers the run: the report is about the run then, not about the step."""
    return diagnosis.run if diagnosis.run and diagnosis.run.whole else None


def steps_matter(run: RunAccount) -> bool:
    """Return whether training steps are a part of the run that the verdict speaks of.

    They are a part of what recurs in a longer run: a short one mostly imports.
    """
    recurring_ms = run.recurring_ms if run.recurring_ms > 0 else run.total_ms
    return run.of(Phase.STEPS) >= MATTERS * recurring_ms > 0


def _run_sentences(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what the whole run took, what its time went to, and how it ended where the process recorded no end."""
    if (run := whole_run(diagnosis)) is None:
        return
    start = f"The run took {duration(run.total_ms)}"
    if run.ended_early:
        start = f"The run was ended after its traced steps, as asked, and took {duration(run.total_ms)}"
    elif not run.finished:
        start = f"{duration(run.total_ms)} of the run were recorded"
    yield f"{start}{_went_to(run, diagnosis.steps)}."
    if not run.finished:
        yield _end(diagnosis.subject.exit_code)
    for phase, what in NOT_THE_SCRIPT.items():
        if (took := run.of(phase)) >= MATTERS * run.total_ms > 0:
            yield f"{amount(run, took)} of the run are {what}."
    yield _long(run)


def _end(exit_code: int | None) -> str:
    if exit_code is None:
        return "The run has no recorded end: it was killed, or is still running."
    if (number := exit_code - BY_SIGNAL) <= 0:
        return f"The run ended abruptly, with exit code {exit_code}."
    names = {one.value: one.name for one in signal.Signals}
    return f"The run was ended by {names.get(number, f'signal {number}')}."


def _went_to(run: RunAccount, step: StepsSummary) -> str:
    """Return what the time of the run went to, as the end of its first sentence."""
    # Steps in a graph are seen by their loop alone.
    seen = is_known(step.median_ms) or step.source is StepSource.GRAPH_LOOP
    trained = seen or run.steps > 0 or run.of(Phase.STEPS) > 0
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
        rest = run.total_ms - steps
        return f"{training}, {duration(rest)} are not" if rest > 0 else training
    if named[largest] >= MOST * run.total_ms:
        return f"{training}; {most}"
    return f"{training}; the largest other part is {what}, {amount(run, named[largest])}"


def _long(run: RunAccount) -> str:
    """Return what long steps add to the run, where that is much."""
    long = run.long_steps
    if long is None or not long.beyond_ms >= MATTERS * run.total_ms:
        return ""
    unknown = f"; {cause_unknown(long)}" if long.unknown_ms >= MOST * long.beyond_ms else ""
    if unknown and long.other_cores:
        return ""  # the machine's noise, which the account shows
    return f"{amount(run, long.beyond_ms)} are what {long_steps(long)} beyond the usual time{unknown}."


def _step_sentences(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what steps take and which steps that stands for; nothing where steps are little of the run."""
    run, steps = diagnosis.run, diagnosis.steps
    if run is None or not run.whole:
        if (slow := steps.slow) is not None:  # the typical step says little then
            timed = f"{milliseconds(slow.timed_ms)} of {counted(slow.timed, 'timed step')}"
            number = f"{'at least ' if slow.at_least else ''}{counted(slow.number, 'slow step')}"
            yield f"{milliseconds(slow.ms)} of the {timed} are in {number}."
    elif not is_known(steps.median_ms):
        if untraced := _untraced_steps(run, steps):
            yield untraced
        return
    elif not steps_matter(run):
        return
    yield _step_sentence(steps, words.pace_ms(diagnosis))
    if run is None or not is_known(run.window_share) or not run.window_steps:
        return
    one, part = run.window_steps == 1, share(run.window_share)
    traced = "The traced step" if one else f"The {run.window_steps:,} traced steps"
    if run.window_share >= ALIKE:
        yield f"{traced} {'stands' if one else 'stand'} for {part} of the steps' time."
    else:
        yield f"{traced} {'is' if one else 'are'} like only {part} of the steps by time."


def _untraced_steps(run: RunAccount, steps: StepsSummary) -> str:
    """Return the training steps of a run of which none was traced; "" for a run without training steps."""
    reason = _because(steps)
    loop = f" of the longest of {run.step_loops} loops" if run.step_loops > 1 else ""
    if 1 <= run.steps <= FEW and is_known(run.step_mean_ms) and run.step_mean_ms:  # two have no middle
        taken = milliseconds(run.steps * run.step_mean_ms)
        one = f"The training step{loop} takes {taken}; its parts are"
        two = f"The two training steps{loop} take {taken} together; their parts are"
        return f"{one if run.steps == 1 else two} unknown{reason}."
    if run.steps and is_known(run.step_median_ms):
        each = f"Each of {run.steps:,} training steps{loop} takes {milliseconds(run.step_median_ms)}"
        return f"{each} (median); its parts are unknown{reason}."
    return f"What a training step consists of is unknown{reason}." if run.of(Phase.STEPS) else ""


def _because(steps: StepsSummary) -> str:
    return f": {text.prose(steps.missing).rstrip('.')}" if steps.missing else ""


def _step_sentence(steps: StepsSummary, outside_ms: float | None) -> str:
    if not is_known(steps.median_ms):
        return f"No training step found{_because(steps)}."
    start = _step_time(steps, outside_ms)
    if not (parts := words.parts_of(steps.shown_breakdown_ms)):
        return f"{start}."
    part, time = max(parts, key=lambda entry: entry[1])
    of_it = f"{share(time / sum(ms for _, ms in parts))} of it" if outside_ms else ""
    amount = "all" if len(parts) == 1 else of_it or f"including {milliseconds(time)}"
    return f"{start}, {amount} {PART_WORDS[part][1]}{_unlike(steps)}."


def _step_time(steps: StepsSummary, outside_ms: float | None) -> str:
    """Return of which steps the time is, then the time: "A typical step takes 18.5 ms".

    What traced steps took is beside it, where the verdict is about the step without the profiler's cost.
    """
    count, beside = words.step_count(steps), ""
    if count <= FEW and steps.untraced_ms is not None:
        which = "Without tracing, a step takes"
    elif count <= FEW:
        which = "The only recorded step took" if count == 1 else "The two recorded steps took"
        beside = " (median)" if count == FEW else ""
    elif steps.stalled:
        which = "On average, a step takes"
    else:
        which = "A typical step takes" if is_mixed(steps) or steps.slow else "Each step takes"
    if steps.untraced_ms is not None or outside_ms:
        traced_ms = steps.median_ms if steps.step_ms is None else steps.step_ms
        beside = f" ({milliseconds(traced_ms)} while it was traced)"
    return f"{which} {milliseconds(outside_ms or steps.shown_ms)}{beside}"


def is_mixed(steps: StepsSummary) -> bool:
    """Return whether outliers, which the breakdown excludes, take so long that they matter for the run."""
    mean, usual = steps.mean_ms, steps.median_ms if steps.step_ms is None else steps.step_ms
    apart = any(not row.steady for row in steps.rows)
    return bool(apart and mean and usual and is_known(mean) and mean >= FAR * usual)


def _unlike(steps: StepsSummary) -> str:
    """Return how many steps the input stalls, and how much outliers raise the mean, where that is much.

    The mean contains the stalled steps; the first sentence may say already that some are slow.
    """
    found, traced = "", "" if steps.untraced_ms is None else "traced "
    if steps.stalled and steps.median_ms is not None:
        wait = f"{traced}steps {'waits' if steps.stalled == 1 else 'wait'} long for input"
        usual = f"the median step takes {milliseconds(steps.median_ms)}"
        found = f"; {steps.stalled} of {len(steps.rows)} {wait}, {usual}"
    if is_mixed(steps) and not steps.slow:
        long = [row.total_ms for row in steps.rows if not row.steady]
        found += (
            f"; {counted(len(long), 'outlier')} in {len(steps.rows)} {traced}steps took up to "
            f"{milliseconds(max(long))}, so the mean is {milliseconds(steps.mean_ms)}"
        )
    return found


def unexplained(diagnosis: Diagnosis) -> tuple[Account, ...]:
    """Return the large parts of the step that neither findings nor necessary work explain, largest first."""
    accounts = (a for a in diagnosis.accounts if a.state is AccountState.UNEXPLAINED)
    return tuple(sorted(accounts, key=lambda account: -account.unexplained_ms))


def unknown(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return a sentence for each part of the step without a finding."""
    each = words.each(diagnosis)
    parts = ((milliseconds(one.unexplained_ms), one.part) for one in unexplained(diagnosis))
    named = ((time, PART_WORDS.get(part, ("", "", text.name(part)))[2]) for time, part in parts)
    return tuple(f"{time} of {each} are {part} without a finding." for time, part in named)


def trust(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the basis of the trust level: the steps seen, their spread, and each doubt."""
    run, code, steps = diagnosis.run, diagnosis.subject.exit_code, diagnosis.steps
    told: list[str] = []
    if steps.rows:
        count, outliers = words.step_count(steps), sum(not row.steady for row in steps.rows)
        shown = "in the account of the run, not in" if whole_run(diagnosis) else "excluded from"
        apart = f", {counted(outliers, 'outlier')} {shown} the breakdown" if outliers else ""
        seen = counted(count, "step").capitalize()
        told.append(f"{seen} traced, identified by {_SOURCES[steps.source]}{apart}.")
        if count > 1 and is_known(steps.p10_ms) and is_known(steps.p90_ms):
            low, high = milliseconds(steps.p10_ms), milliseconds(steps.p90_ms)
            which = "Steps" if steps.untraced_ms is None else "Traced steps"
            span = f"{which} took {time_span(steps.p10_ms, steps.p90_ms)} (p10 to p90)."
            told.append(f"Steps took {low} at p10 and at p90." if low == high else span)
    told += map(text.sentence, diagnosis.trust.reasons)
    if run and not run.whole:
        why = text.prose(run.missing).rstrip(".") or "the rest of the run was not recorded"
        told.append(f"The account of the run covers the traced window of {duration(run.total_ms)}; {why}.")
    told.append(f"The run ended with exit code {code}." if code else "")
    return tuple(filter(None, told))
