"""The diagnosis as the page that every rendering shows: words and order, as clean text."""

import shlex
from collections.abc import Mapping

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.gates import Settings
from tfdoctor.diagnosis.step import Timeline
from tfdoctor.diagnosis.tried import with_measured_bounds
from tfdoctor.report import (
    accounts,
    energy,
    findings,
    gates,
    hosts,
    money,
    order,
    profile,
    sentences,
    tables,
    trials,
)
from tfdoctor.report.accounts import AccountLine
from tfdoctor.report.energy import EnergySection
from tfdoctor.report.findings import Fault, ResultGroups
from tfdoctor.report.gates import BudgetSection
from tfdoctor.report.profile import ProfileSection
from tfdoctor.report.run import section as run_section
from tfdoctor.report.run.section import RunSection
from tfdoctor.report.sentences import PART_LABELS
from tfdoctor.report.step_bars import StepBar, step_bars
from tfdoctor.report.trials import TrialSection
from tfdoctor.terms import text
from tfdoctor.terms.humanize import milliseconds, share
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.record import Record


class BarSegment(Record):
    """One part of the bar that shows where a step's time goes."""

    part: str
    label: str
    time: str
    share: str
    fraction: float

    @property
    def is_short(self) -> bool:
        """Whether a narrow page leaves it out of its legend."""
        return self.fraction < LITTLE


LITTLE = 0.01  # Share of the step


class RuleOff(Record):
    """A rule that was not applied, and why."""

    rule: str
    title: str
    why: str  # "ignored by pyproject.toml"


class UserSettings(Record, kw_only=True):
    """What the user chose and set of the rules."""

    off: tuple[RuleOff, ...]
    limits: tuple[str, ...]  # "input-bound.share = 0.1 (default 0.05, set in pyproject.toml)"
    own: tuple[str, ...]  # names of the user's own rules


class DeviceTime(Record, kw_only=True):
    """What the accelerators do; ``missing`` says why that is unknown."""

    title: str
    note: str  # how the figures are counted
    lines: tuple[tables.MeasureRow, ...]
    missing: str


class AboutRun(Record, kw_only=True):
    """What was recorded, on what, and what else the numbers rest on."""

    opinion: tuple[str, ...]  # xprof's
    subject: tuple[tuple[str, str], ...]  # command, device, versions, machine
    device_time: DeviceTime | None  # of a run on accelerators
    samples: tuple[tables.MeasureRow, ...]
    unrecorded: tuple[str, ...]
    model: tuple[tables.MeasureRow, ...]


class Page(Record, kw_only=True):
    """Everything a report says, in order."""

    title: str
    version: str
    link: str  # where the whole report can be read, or ""
    verdict: tuple[str, ...]  # at most two sentences: what it takes, and what would change it
    remarks: tuple[str, ...]  # what else is to be known of the figures
    run: RunSection | None  # the account of the run, where one is known
    segments: tuple[BarSegment, ...]
    bars: tuple[StepBar, ...]  # of the step now, with all changes, and as measured
    timeline: Timeline | None  # of a typical step
    profile: ProfileSection | None  # of the step
    accounts: tuple[AccountLine, ...]  # of the large parts that findings do not name
    budgets: BudgetSection | None  # of the user
    baseline: tuple[str, ...]  # how many findings it knows, and which are gone
    trials: TrialSection | None  # what was measured by running the changes
    results: ResultGroups
    order: tuple[str, ...]  # in which to fix them, where that matters
    energy: EnergySection | None  # where a counter measured it
    money: str  # what the run costs, where a price was given
    trust_level: str
    trust: tuple[str, ...]
    hosts: hosts.Section | None  # of a job of several
    settings: UserSettings
    about: AboutRun

    @property
    def fixes(self) -> tuple[Fault, ...]:
        """The faults that are changes to make: those before what the run costs."""
        return tuple(fault for fault in self.results.faults if not fault.money)

    @property
    def marked(self) -> tuple[tuple[int, Fault], ...]:
        """The faults, with their numbers, that are about work of the step in the timeline."""
        lanes = self.timeline.lanes if self.timeline else ()
        rules = {rule for lane in lanes for bar in lane.bars for rule in bar.rules}
        numbered = enumerate(self.results.faults, 1)
        return tuple((at, fault) for at, fault in numbered if rules & set(fault.names))


def page(diagnosis: Diagnosis) -> Page:
    """Return the page of a diagnosis."""
    compared, tried = hosts.section(diagnosis.hosts), trials.section(diagnosis)
    diagnosis = with_measured_bounds(diagnosis)
    results, budgets = findings.grouped(diagnosis, tried), gates.budget_section(diagnosis.budgets)
    headline, remarks = _said(diagnosis, tried)
    remarks += [part.verdict for part in (compared, budgets) if part and part.verdict]
    merged = {related.rule for fault in results.faults for related in fault.symptoms}
    return Page(
        title=text.name(diagnosis.subject.title),
        version=text.name(diagnosis.version),
        link=diagnosis.link,
        verdict=headline,
        remarks=tuple(remarks),
        run=run_section.section(diagnosis.run),
        segments=_segments(diagnosis),
        bars=step_bars(diagnosis),
        timeline=diagnosis.timeline if diagnosis.timeline and diagnosis.timeline.total_ms > 0 else None,
        profile=profile.section(diagnosis),
        accounts=accounts.lines(diagnosis),
        budgets=budgets,
        baseline=gates.baseline_sentences(diagnosis),
        trials=tried,
        results=results,
        order=order.sentences(diagnosis.order, merged),
        energy=energy.section(diagnosis.energy, diagnosis.subject.device),
        money=money.cost(diagnosis.results),
        trust_level=text.name(diagnosis.trust.level),
        trust=sentences.trust(diagnosis),
        hosts=compared,
        settings=_settings(diagnosis.settings),
        about=_about(diagnosis),
    )


def _said(diagnosis: Diagnosis, tried: TrialSection | None) -> tuple[tuple[str, ...], list[str]]:
    """Return the headline and the remarks.

    What a trial tells stands in place of what was predicted, and that it tells nothing beside it.
    """
    (first, *more), changes = sentences.account(diagnosis), sentences.changes(diagnosis)
    if tried and tried.tells:
        measured, *others = tried.verdict
        return (first, measured), [*more, *others, *changes]
    trial = tried.verdict if tried else ()
    beside = text.clauses(*changes[:1], *trial[:1])
    return (first, *filter(None, [beside])), [*more, *changes[1:], *trial[1:]]


def _settings(settings: Settings) -> UserSettings:
    return UserSettings(
        off=tuple(RuleOff(text.name(off.rule), text.name(off.title), text.prose(off.why)) for off in settings.off),
        limits=tuple(map(sentences.limit_set, settings.limits)),
        own=tuple(map(text.name, settings.own)),
    )


def _about(diagnosis: Diagnosis) -> AboutRun:
    opinion: list[str] = []
    if xprof := diagnosis.xprof:
        agreement = {
            True: "This agrees with tfdoctor.",
            False: "This differs from tfdoctor.",
            None: "It gives no figure to compare.",
        }
        why = text.sentence(xprof.why)
        opinion = [text.sentence(xprof.conclusion), agreement[xprof.agrees], why]
    return AboutRun(
        opinion=tuple(filter(None, opinion)),
        subject=_subject(diagnosis),
        device_time=_device_time(diagnosis),
        samples=tables.lines(diagnosis.samples),
        unrecorded=tuple(map(text.sentence, diagnosis.unrecorded)),
        model=tables.lines(diagnosis.model),
    )


_COUNTING = {
    DeviceKind.GPU: "Union over the streams of each GPU; copies do not count as kernels",
    DeviceKind.TPU: "Busiest core; waiting for asynchronous copies does not count as compute",
}
# What the figures cover where the trace has no steps.
_WITHOUT_STEPS = {DeviceKind.GPU: "in the whole trace", DeviceKind.TPU: "per program run"}


def _device_time(diagnosis: Diagnosis) -> DeviceTime | None:
    """Return what the accelerators do; None for a run that used none."""
    kind = diagnosis.subject.device
    if kind not in _COUNTING:
        return None
    stepwise = diagnosis.steps.rows or not diagnosis.device_time
    return DeviceTime(
        title=f"{kind} time {'per step' if stepwise else _WITHOUT_STEPS[kind]}",
        note=_COUNTING[kind],
        lines=tables.lines(diagnosis.device_time),
        missing=text.sentence(diagnosis.device_time_missing),
    )


def _segments(diagnosis: Diagnosis) -> tuple[BarSegment, ...]:
    parts = sentences.parts_of(diagnosis.steps)
    whole = sum(time for _, time in parts)
    return tuple(
        BarSegment(part, PART_LABELS[part], milliseconds(time), share(time / whole), time / whole)
        for part, time in parts
    )


def _subject(diagnosis: Diagnosis) -> tuple[tuple[str, str], ...]:
    """Return what was examined and on what: command, device, versions, machine."""
    subject = diagnosis.subject
    used, visible = subject.devices_used, subject.devices_visible
    entries = [
        ("command", text.prose(shlex.join(subject.command))),
        ("device", text.name(" ".join(filter(None, (subject.device, subject.device_name))))),
        ("devices used", f"{used} of {visible}" if None not in (used, visible) else ""),
        ("hosts", text.prose(", ".join(subject.hosts))),
        *_versions(subject.framework),
        ("tfdoctor", text.name(diagnosis.version)),
        *((text.name(label), text.name(value)) for label, value in diagnosis.machine),
        ("exit code", "" if subject.exit_code is None else str(subject.exit_code)),
    ]
    first = {entry[0].casefold(): entry for entry in reversed(entries) if entry[1]}
    return tuple(entry for entry in entries if first.get(entry[0].casefold()) is entry)


FIRST = ("tensorflow", "keras")  # The versions that stand before the others, which are in the order of their names


def _versions(framework: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the versions in an order that is not that of the mapping: a stored report has none."""
    rank = {name: at for at, name in enumerate(FIRST)}
    names = sorted(framework, key=lambda one: (rank.get(one, len(FIRST)), one))
    return [(text.name(one), text.name(framework[one])) for one in names]
