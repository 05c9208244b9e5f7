"""What every rendering of a report begins with: the headline, the remarks, and the findings in their order."""

from collections import Counter
from collections.abc import Sequence

from tfdoctor.diagnosis import Diagnosis, Result, RunAccount, RunTogether
from tfdoctor.diagnosis.entries import Entry
from tfdoctor.diagnosis.rank import with_measured_bounds
from tfdoctor.report import hosts, sections, sentences, trials, words
from tfdoctor.report.run import RunSection, section
from tfdoctor.report.sentences import ALIKE, is_mixed, is_of_steps, steps_matter, unexplained, whole_run
from tfdoctor.terms import text
from tfdoctor.terms.humanize import about_duration, about_ms, counted, duration, factor, share
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound, Concern, Errored, Healthy, NotApplicable, Severity

# Share of the run: rounded to two digits, as the sentence has it, a time can be 5 % longer than it is.
LITTLE = 0.05
FEW_TRACED = "because fewer than five steps, or fewer than three calls of several steps, were traced"
FEW_STEPS = f"No saving of a step is computed, {FEW_TRACED}."
TOO_FEW = f"No saving is computed and every finding is a note, {FEW_TRACED}: train for 20 calls or more."


def prospects(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return what would change it, or that nothing was found, the most important sentence first."""
    findings = [one for one in diagnosis.results if one.finding and not words.is_about_money(one)]
    if not findings:
        return tuple(filter(None, [_nothing_found(diagnosis), _largest(diagnosis) or _heaviest(diagnosis)]))
    run, few = whole_run(diagnosis), diagnosis.steps.too_few
    # Where the whole run is known, findings about it are judged, however few the steps.
    why_none = TOO_FEW if run is None else FEW_STEPS if diagnosis.steps.rows else ""
    of_step = (why_none,) if few else _together(diagnosis)
    of_run = _of_run(run, diagnosis, findings) if run else ""
    # A saving of typical steps says nothing of long ones.
    long = [
        text.sentence(found.summary)
        for one in findings
        if (found := one.finding) and found.concern is Concern.LONG_STEPS and (one.severity or 0) > Severity.NOTE
    ]
    if run and not steps_matter(run):
        unknown = _found(findings, "what the changes save of the run could not be computed")
        told = (of_run or unknown, *long)
    elif of_run:
        told = (*of_step, of_run, *long) if is_of_steps(diagnosis) else (of_run, *of_step, *long)
    else:
        told = of_step if few else (*long, *(of_step or (_best_alone(findings, words.each(diagnosis)),)))
    return tuple(filter(None, (_largest(diagnosis), *told)))


def _largest(diagnosis: Diagnosis) -> str:
    """Return the largest place without a known change, where it takes more than all changes save; else ""."""
    if not diagnosis.large:
        return ""
    first, results = diagnosis.large[0], diagnosis.results
    if first.of_run:
        savings = [one.ms for one in (diagnosis.run_together, *(one.run for one in results)) if one]
    else:
        savings = [one.ms_per_step for one in (diagnosis.together, *(one.saving for one in results)) if one]
    most = max(savings, default=0.0)
    if first.ms <= most:
        return ""
    where, time, what = sections.large_cells(first)
    than = ", more than the known changes save" if most > 0 else ""
    return f"The largest place without a known change is {where} ({what}): {time}{than}."


def _found(findings: Sequence[Result], told: str, alone: str = "") -> str:
    one = alone and len(findings) == 1
    return f"{counted(len(findings), 'problem').capitalize()} found; {alone if one else told}."


def _of_run(run: RunAccount, diagnosis: Diagnosis, findings: Sequence[Result]) -> str:
    """Return what all changes save of the run, or the largest saving; "" where no saving of the run is known."""
    together = diagnosis.run_together
    if together is None or not 0 < together.ms < run.total_ms:
        savings = [r.run for r in findings if r.run and r.run.ms > 0]
        best = max(savings, key=lambda saving: saving.ms, default=None)
        said = words.run_saving(best, None, run) if best else None
        return _found(findings, f"the largest saving is {said[0]}", f"its change saves {said[0]}") if said else ""
    saved, after = together.ms, run.total_ms - together.ms
    made = sum(entry.in_run_sum for entry in diagnosis.entries)
    named = counted(made or len(together.rules), "change").capitalize()
    known = words.is_known(together.extrapolated_share) and run.for_epochs
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


def _counted(run: RunAccount, together: RunTogether, findings: Sequence[Result]) -> str:
    """Return which steps a bound counts, as a clause, where the traced ones do not stand for most; else "".

    What a change of the typical step saves of the others is not known: without the clause, the bound is none.
    """
    saved = [one.saving for one in findings if one.rule.name in together.rules and one.saving]
    known, at_most = run.window_share, together.bound is Bound.AT_MOST
    if not at_most or known is None or not known < ALIKE or not any(map(words.gains, saved)):
        return ""
    which = "" if len(saved) == len(together.rules) else " for changes of the typical step"
    return f", counting{which} only the {share(known)} of the steps' time that is like the traced steps"


ONLY_TOGETHER = "Part of this gain needs the changes combined."


def _together(diagnosis: Diagnosis) -> tuple[str, ...]:
    now, together = diagnosis.steps.shown_ms, diagnosis.together
    if together is None or now is None or not together.rules:
        return ()
    after = now - together.ms_per_step
    if not 0 < after < now:
        return ()
    made = sum(entry.in_sum for entry in diagnosis.entries)
    changes = counted(made or len(together.rules), "change").capitalize()
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
    if savings := [r.saving for r in findings if r.saving and words.gains(r.saving)]:
        best = max(savings, key=lambda saving: saving.ms_per_step)
        saves = f"{words.saves(best)} of {step}"
        return _found(findings, f"the largest saving is {saves}", f"its change saves {saves}")
    if places := [r.takes for r in findings if r.takes and words.gains(r.takes)]:
        longest = max(places, key=lambda time: time.ms_per_step)
        takes = f"takes {words.takes(longest)} of {step}"
        return _found(findings, f"the largest {takes}", f"it {takes}")
    return _found(findings, "the saving could not be computed")


def _nothing_found(diagnosis: Diagnosis) -> str:
    kinds = Counter(type(result.outcome) for result in diagnosis.results)
    healthy, unchecked, run = kinds[Healthy], kinds[NotApplicable] + kinds[Errored], whole_run(diagnosis)
    said = [one.outcome.reason for one in diagnosis.results if isinstance(one.outcome, NotApplicable)]
    steps = said.count(diagnosis.steps.missing) if run and diagnosis.steps.missing else 0
    amounts = (
        (healthy, "healthy"),
        (steps, "not checked for lack of traced steps"),
        (unchecked - steps, f"not checked{' for other reasons' if steps else ''}"),
        (len(diagnosis.settings.off), "switched off"),
    )
    checked = ", ".join(f"{counted(number, 'rule')} {state}" for number, state in amounts if number)
    if not healthy:
        return f"The health of the run is unknown: {checked or 'no rule was applied'}."
    if not words.is_known(diagnosis.steps.median_ms) and not run:
        return f"The speed of the run is unknown: {checked}."
    # Rules about steps say nothing of a run that has few of them.
    if unchecked > healthy and not unexplained(diagnosis) and not (run and not steps_matter(run)):
        return f"It is mostly unknown whether less is possible: {checked}."
    return f"No rule found a change to make: {checked}."  # no claim that there is none: rules know some faults


def _heaviest(diagnosis: Diagnosis) -> str:
    """Return the row of the profile that takes most, with its distance from the hardware's rates; "" of none."""
    row = next((row for row in diagnosis.profile.rows if not row.beside), None)
    if row is None:
        return ""
    what, where, time, part = sections.profile_cells(row)
    at = f" at {where}" if row.at else ""
    hardware = f"at {sections.reached(row)} of what this hardware allows"
    far = sections.reached_told(row) if row.attained is None else hardware
    return f"Most of a step takes {what}{at}: {time} ({part}), {far}."


class Page(Record, kw_only=True):
    """A diagnosis with what several parts of its report need."""

    diagnosis: Diagnosis  # without upper bounds that a trial exceeded
    title: str
    verdict: tuple[str, ...]  # at most two sentences: what it takes, and what would change it
    remarks: tuple[str, ...]  # what else is to be known of the figures
    entries: tuple[Entry, ...]  # what the run costs comes last
    fixes: tuple[Entry, ...]  # those before it, which are changes to make
    order: tuple[str, ...]  # in which order to make them, where that matters
    run: RunSection | None  # the account of the run, where one is known


def page(diagnosis: Diagnosis) -> Page:
    """Return the page of a diagnosis.

    What a trial tells stands in place of what was predicted, and that it tells nothing beside it.
    """
    trial, diagnosis = trials.verdict(diagnosis), with_measured_bounds(diagnosis)
    (first, *more), changes = sentences.account(diagnosis), prospects(diagnosis)
    if diagnosis.trials and trials.tells(diagnosis.trials):
        second, *remarks = trial[0], *more, *trial[1:], *changes
    else:
        second, *remarks = text.clauses(*changes[:1], *trial[:1]), *more, *changes[1:], *trial[1:]
    compared = hosts.verdict(diagnosis.hosts) if diagnosis.hosts else ""
    budgets = sections.budget_verdict(diagnosis.budgets)
    entries = sorted(diagnosis.entries, key=lambda entry: words.is_about_money(entry.result))
    return Page(
        diagnosis=diagnosis,
        title=text.name(diagnosis.subject.title),
        verdict=tuple(filter(None, (first, second))),
        remarks=(*remarks, *filter(None, (compared, budgets))),
        entries=tuple(entries),
        fixes=tuple(entry for entry in entries if not words.is_about_money(entry.result)),
        order=words.order(diagnosis.order, {one.rule.name for entry in entries for one in entry.symptoms}),
        run=section(diagnosis.run),
    )
