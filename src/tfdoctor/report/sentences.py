"""The verdict in words that a reviewer can quote, and how far to trust it."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.step import Account, AccountState, StepsSummary
from tfdoctor.diagnosis.work import RunAccount
from tfdoctor.report import words
from tfdoctor.report.run import verdict as run_verdict
from tfdoctor.report.sections import profile_cells, reached, reached_told
from tfdoctor.report.words import FEW, PART_WORDS, is_known
from tfdoctor.terms import text
from tfdoctor.terms.humanize import about_ms, counted, factor, milliseconds, share, time_span
from tfdoctor.terms.kinds import Phase, StepSource
from tfdoctor.terms.verdict import Bound, Concern, Errored, Finding, Healthy, NotApplicable, Severity

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


def verdict(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the sentences of the verdict: what run and step take, what would change it."""
    return (*account(diagnosis), *changes(diagnosis))


def account(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return what run and step take, the most important sentence first."""
    run, steps = whole_run(diagnosis), diagnosis.steps
    of_run: tuple[str, ...] = ()
    if run is not None:
        # Steps in a graph are seen by their loop alone.
        seen = is_known(steps.median_ms) or steps.source is StepSource.GRAPH_LOOP
        trained = seen or run.steps > 0 or run.of(Phase.STEPS) > 0
        code = diagnosis.subject.exit_code
        of_run = run_verdict.headline(run, trained=trained, exit_code=code)
    of_step = tuple(_step_sentences(diagnosis))
    return (*of_step, *of_run) if is_of_steps(diagnosis) else (*of_run, *of_step)


def is_of_steps(diagnosis: Diagnosis) -> bool:
    """Return whether the report is about the step first, although the whole run is known.

    Most of a run that was ended after its traced steps, as asked, is what comes once.
    """
    run, known = whole_run(diagnosis), is_known(diagnosis.steps.median_ms)
    return bool(run and run.ended_early and known and run_verdict.steps_will_matter(run))


def whole_run(diagnosis: Diagnosis) -> RunAccount | None:
    """Return the account where it covers the run: the report is about the run then, not about the step."""
    return diagnosis.run if diagnosis.run and diagnosis.run.whole else None


def _step_sentences(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what steps take and which steps that stands for; nothing where steps are little of the run."""
    run, steps = diagnosis.run, diagnosis.steps
    if run is None or not run.whole:
        if (slow := steps.slow) is not None:  # the typical step says little then
            timed = f"{milliseconds(slow.timed_ms)} of {counted(slow.timed, 'timed step')}"
            number = f"{'at least ' if slow.at_least else ''}{counted(slow.number, 'slow step')}"
            yield f"{milliseconds(slow.ms)} of the {timed} are in {number}."
    elif not is_known(steps.median_ms):
        if untraced := run_verdict.untraced_steps(run, text.prose(steps.missing).rstrip(".")):
            yield untraced
        return
    elif not run_verdict.steps_matter(run):
        return
    yield _step_sentence(steps, words.pace_ms(diagnosis))
    if run is not None and (traced := run_verdict.traced_steps(run)):
        yield traced


def unexplained(diagnosis: Diagnosis) -> tuple[Account, ...]:
    """Return the large parts of the step that neither findings nor necessary work explain, largest first."""
    accounts = (a for a in diagnosis.accounts if a.state is AccountState.UNEXPLAINED)
    return tuple(sorted(accounts, key=lambda account: -account.unexplained_ms))


def unknown(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return a sentence for each part of the step without a finding."""
    told: list[str] = []
    for one in unexplained(diagnosis):
        part = PART_WORDS[one.part][2] if one.part in PART_WORDS else text.name(one.part)
        told.append(f"{milliseconds(one.unexplained_ms)} of {words.each(diagnosis)} are {part} without a finding.")
    return tuple(told)


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
    told += [run_verdict.window(run) if run else "", f"The run ended with exit code {code}." if code else ""]
    return tuple(filter(None, told))


def _step_sentence(steps: StepsSummary, outside_ms: float | None) -> str:
    if steps.median_ms is None or not is_known(steps.median_ms):
        reason = text.prose(steps.missing).rstrip(".")
        return f"No training step found: {reason}." if reason else "No training step found."
    start = _step_time(steps, outside_ms)
    if not (parts := words.parts_of(steps)):
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


FAR = 1.25  # Times the median: a mean above it shows that outliers take much of the run


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
        waits = "waits" if steps.stalled == 1 else "wait"
        found = (
            f"; {steps.stalled} of {len(steps.rows)} {traced}steps {waits} long for input, the median step takes "
            f"{milliseconds(steps.median_ms)}"
        )
    if is_mixed(steps) and steps.mean_ms is not None and not steps.slow:
        long = [row.total_ms for row in steps.rows if not row.steady]
        found += (
            f"; {counted(len(long), 'outlier')} in {len(steps.rows)} {traced}steps took up to "
            f"{milliseconds(max(long))}, so the mean is {milliseconds(steps.mean_ms)}"
        )
    return found


def changes(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return what would change it, or that nothing was found, the most important sentence first."""
    findings = [
        result
        for result in diagnosis.results
        if isinstance(result.outcome, Finding) and not words.is_about_money(result)
    ]
    if not findings:
        return tuple(filter(None, [_nothing_found(diagnosis), _heaviest(diagnosis)]))
    # A saving of typical steps says nothing of long ones.
    long = [
        text.sentence(text.prose(found.summary))
        for found, severity in ((one.outcome, one.severity) for one in findings)
        if isinstance(found, Finding) and found.concern is Concern.LONG_STEPS and (severity or 0) > Severity.NOTE
    ]
    if of_run := _run_change(diagnosis, findings):
        told = (*of_run, *long)
    elif diagnosis.steps.too_few:
        told = (_too_few(diagnosis),)
    else:
        told = (*long, *(_together(diagnosis) or (_best_alone(findings, words.each(diagnosis)),)))
    return tuple(filter(None, told))


def _run_change(diagnosis: Diagnosis, findings: Sequence[Result]) -> tuple[str, ...]:
    """Return what changes save of the run, then of a step where steps are much of it; () where it is unknown."""
    if (run := whole_run(diagnosis)) is None:
        return ()
    made = [entry for entry in diagnosis.entries if entry.in_run_sum]
    of_run = run_verdict.change(run, diagnosis.run_together, findings, len(made))
    if not run_verdict.steps_matter(run):
        return (of_run or run_verdict.without_savings(findings),)
    if not of_run:
        return ()
    of_step = [_too_few(diagnosis)] if diagnosis.steps.too_few else _together(diagnosis)
    return (*of_step, of_run) if is_of_steps(diagnosis) else (of_run, *of_step)


FEW_TRACED = "because fewer than five steps, or fewer than three calls of several steps, were traced"
FEW_STEPS = f"No saving of a step is computed, {FEW_TRACED}."
TOO_FEW = f"No saving is computed and every finding is a note, {FEW_TRACED}: train for 20 calls or more."


def _too_few(diagnosis: Diagnosis) -> str:
    """Say that too few steps were traced; nothing where none was, or where findings about the run are judged."""
    if whole_run(diagnosis) is None:
        return TOO_FEW
    return FEW_STEPS if diagnosis.steps.rows else ""


ONLY_TOGETHER = "Part of this gain needs the changes combined."


def _together(diagnosis: Diagnosis) -> tuple[str, ...]:
    now, together = diagnosis.steps.shown_ms, diagnosis.together
    if together is None or now is None or not together.rules or not words.gains(together):
        return ()
    after = now - together.ms_per_step
    if not 0 < after < now:
        return ()
    made = [entry for entry in diagnosis.entries if entry.in_sum]
    changes = counted(len(made) or len(together.rules), "change").capitalize()
    mixed = is_mixed(diagnosis.steps)  # a factor of typical steps is not one of the run
    it = "a step" if diagnosis.run else "it"
    if words.pace_ms(diagnosis) and not mixed:  # a time would be one of a traced step
        most = words.at_most(together.bound) or "about "
        said = f"{changes} would make {it} {most}{share(together.share)} shorter ({factor(now / after)})."
    else:
        step, times = ("typical steps", "") if mixed else (it, f" ({factor(now / after)})")
        time = f"{about_ms(after)} at best" if together.bound is Bound.AT_MOST else f"about {about_ms(after)}"
        said = f"{changes} would reduce {step} to {time}{times}."
    return (said, ONLY_TOGETHER) if together.more_than_alone else (said,)


def _best_alone(findings: Sequence[Result], step: str) -> str:
    faults = f"{counted(len(findings), 'problem').capitalize()} found"
    if savings := [r.saving for r in findings if r.saving and words.gains(r.saving)]:
        best = max(savings, key=lambda saving: saving.ms_per_step)
        return f"{faults}; the largest saving is {words.saves(best)} of {step}."
    if places := [r.takes for r in findings if r.takes and words.gains(r.takes)]:
        longest = max(places, key=lambda time: time.ms_per_step)
        return f"{faults}; the largest takes {words.takes(longest)} of {step}."
    return f"{faults}; the saving could not be computed."


NO_WAY = "Nothing to change"


def _nothing_found(diagnosis: Diagnosis) -> str:
    """Return what was checked of a run that no rule found a way to make faster."""
    kinds = Counter(type(result.outcome) for result in diagnosis.results)
    off = len(diagnosis.settings.off)
    healthy, unchecked = kinds[Healthy], kinds[NotApplicable] + kinds[Errored]
    amounts = ((healthy, "healthy"), (unchecked, "not checked"), (off, "switched off"))
    checked = ", ".join(f"{counted(number, 'rule')} {state}" for number, state in amounts if number)
    if not healthy:
        return f"The health of the run is unknown: {checked or 'no rule was applied'}."
    if not is_known(diagnosis.steps.median_ms) and not whole_run(diagnosis):
        return f"The speed of the run is unknown: {checked}."
    if unexplained(diagnosis):
        return f"No rule found a change to make: {checked}."
    if unchecked > healthy:
        return f"It is mostly unknown whether less is possible: {checked}."
    return f"{NO_WAY}: {checked}."


def _heaviest(diagnosis: Diagnosis) -> str:
    """Return the row of the profile that takes most, with its distance from the hardware's rates; "" of none."""
    row = next((row for row in diagnosis.profile.rows if not row.beside), None)
    if row is None:
        return ""
    what, where, time, part = profile_cells(row)
    at = f" at {where}" if row.at else ""
    far = reached_told(row) if row.attained is None else f"at {reached(row)} of what this hardware allows"
    return f"Most of a step takes {what}{at}: {time} ({part}), {far}."
