"""What every rendering of a report begins with: the headline, the remarks, and the findings in their order."""

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.entries import Entry
from tfdoctor.diagnosis.rank import with_measured_bounds
from tfdoctor.report import hosts, sections, sentences, trials, words
from tfdoctor.report.prospects import prospects
from tfdoctor.report.run import RunSection, section
from tfdoctor.terms import text
from tfdoctor.terms.record import Record


class Page(Record, kw_only=True):
    """A diagnosis with what several parts of its report need."""

    diagnosis: Diagnosis  # without upper bounds that a trial exceeded
    title: str
    verdict: tuple[str, ...]  # at most two sentences: what it takes, and what would change it
    remarks: tuple[str, ...]  # what else is to be known of the figures
    entries: tuple[Entry, ...]  # what the run costs comes last
    run: RunSection | None  # the account of the run, where one is known

    @property
    def fixes(self) -> tuple[Entry, ...]:
        """The findings that are changes to make: those before what the run costs."""
        return tuple(entry for entry in self.entries if not words.is_about_money(entry.result))

    @property
    def order(self) -> tuple[str, ...]:
        """In which order to make them, where that matters."""
        merged = {one.rule.name for entry in self.entries for one in entry.symptoms}
        return words.order(self.diagnosis.order, merged)


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
    return Page(
        diagnosis=diagnosis,
        title=text.name(diagnosis.subject.title),
        verdict=tuple(filter(None, (first, second))),
        remarks=(*remarks, *filter(None, (compared, budgets))),
        entries=tuple(sorted(diagnosis.entries, key=lambda entry: words.is_about_money(entry.result))),
        run=section(diagnosis.run),
    )
