"""The diagnosis as the page that every rendering shows: words and order, as clean text."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import ndiff
from itertools import starmap, zip_longest

from tfdoctor import text
from tfdoctor.diagnosis import Diagnosis, Edit, Off, Result, Saving, SecondOpinion
from tfdoctor.humanize import location, milliseconds, share
from tfdoctor.kinds import DeviceKind
from tfdoctor.report import hosts, money, order, sentences, tables
from tfdoctor.report.sentences import PART_LABELS
from tfdoctor.verdict import Errored, Finding, Healthy, Location, NotApplicable, Remedy, Table


@dataclass(frozen=True, slots=True)
class BarSegment:
    """One part of the bar that shows where a step's time goes."""

    part: str
    label: str
    time: str
    share: str
    fraction: float


@dataclass(frozen=True, slots=True)
class ChangeEntry:
    """One change to make, with its code."""

    action: str
    code: str  # an example, or the user's own lines as they will be
    where: str
    before: str = ""  # the user's own lines as they are, when they are known

    @property
    def diff(self) -> str:
        """The lines that go and those that come, marked as in a diff; "" for an example."""
        if not self.before:
            return ""
        old, new = self.before.splitlines(), self.code.splitlines()
        return "\n".join(line.rstrip() for line in ndiff(old, new) if not line.startswith("? "))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A finding, in the words of the page."""

    rule: str
    title: str
    topic: str
    severity: str  # "critical", "warning", "note", or "" when nothing decides it
    summary: str
    what: str  # the first change to make
    where: str  # the first place it belongs to
    saves: str  # "" when no number is known
    after: tuple[str, ...]  # rules to follow first for that saving
    how: str
    lines: tuple[tables.MeasureRow, ...]
    grids: tuple[tables.Grid, ...]
    changes: tuple[ChangeEntry, ...]
    why: str  # Markdown of the rule's documentation
    sources: str  # likewise
    own: bool = False  # a rule of the user's own: tfdoctor has no page of it
    money: bool = False  # what the run costs: no change to make


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A rule that found no fault: what it says, and the numbers or the traceback behind it."""

    rule: str
    title: str
    text: str
    lines: tuple[tables.MeasureRow, ...] = ()
    grids: tuple[tables.Grid, ...] = ()
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything a report says, in order."""

    title: str
    version: str
    verdict: tuple[str, ...]
    segments: tuple[BarSegment, ...]
    faults: tuple[Fault, ...]
    trust_level: str
    trust: tuple[str, ...]
    unrecorded: tuple[str, ...]
    healthy: tuple[Note, ...]
    unchecked: tuple[Note, ...]
    errored: tuple[Note, ...]
    opinion: tuple[str, ...]
    subject: tuple[tuple[str, str], ...]
    samples: tuple[tables.MeasureRow, ...]
    device_time: tuple[tables.MeasureRow, ...]
    device_time_missing: str
    device_time_title: str
    device_time_note: str
    model: tuple[tables.MeasureRow, ...]
    hosts: hosts.Section | None  # of a job of several
    order: tuple[str, ...] = ()  # in which to follow the faults, where that matters
    off: tuple[Note, ...] = ()  # rules that the user switched off
    limits: tuple[str, ...] = ()  # limits that the user set
    own: tuple[str, ...] = ()  # rules of the user's own
    own_errored: tuple[Note, ...] = ()  # those of them that failed
    money: str = ""  # what the run costs, where a price was given

    @property
    def fixes(self) -> tuple[Fault, ...]:
        """The faults that are changes to make: those before what the run costs."""
        return tuple(fault for fault in self.faults if not fault.money)


def page(diagnosis: Diagnosis) -> Page:
    """Return the page of a diagnosis."""
    faults, healthy, unchecked, errored = _sorted(diagnosis.results)
    own = tuple(map(text.name, diagnosis.settings.own))
    compared = hosts.section(diagnosis.hosts)
    return Page(
        title=text.name(diagnosis.subject.title),
        version=text.name(diagnosis.version),
        verdict=(*sentences.verdict(diagnosis), *([compared.verdict] if compared else ())),
        segments=_segments(diagnosis),
        faults=faults,
        trust_level=text.name(diagnosis.trust.level),
        trust=sentences.trust(diagnosis),
        unrecorded=tuple(map(text.sentence, diagnosis.unrecorded)),
        healthy=healthy,
        unchecked=unchecked,
        errored=tuple(note for note in errored if note.rule not in own),
        own_errored=tuple(note for note in errored if note.rule in own),
        opinion=_opinion(diagnosis.xprof),
        subject=_subject(diagnosis),
        samples=tables.lines(diagnosis.samples),
        device_time=tables.lines(diagnosis.device_time),
        device_time_missing=text.sentence(diagnosis.device_time_missing),
        device_time_title=_device_time_title(diagnosis),
        device_time_note=_NOTES[_accelerators(diagnosis)],
        model=tables.lines(diagnosis.model),
        hosts=compared,
        order=order.said(diagnosis.order),
        off=tuple(map(_off, diagnosis.settings.off)),
        limits=tuple(map(sentences.limit_set, diagnosis.settings.limits)),
        own=own,
        money=money.cost(diagnosis.results),
    )


def _off(off: Off) -> Note:
    said = text.sentence(f"{off.title}: {off.why}")
    return Note(rule=text.name(off.rule), title=text.name(off.title), text=said)


_NOTES = {
    "GPUs": "Unions over each GPU's streams; copies are no kernels",
    "TPUs": "Of the busiest core; waits for asynchronous copies are no computing",
}


def _device_time_title(diagnosis: Diagnosis) -> str:
    """Say what the figures are of: without steps, of the whole trace or of the longest program's runs."""
    which = _accelerators(diagnosis)
    if diagnosis.steps.rows or not diagnosis.device_time:
        return f"What the {which} do in a step"
    return f"What the {which} do in " + ("the whole trace" if which == "GPUs" else "a run")


def _accelerators(diagnosis: Diagnosis) -> str:
    return "TPUs" if diagnosis.subject.device == DeviceKind.TPU else "GPUs"


Groups = tuple[tuple[Fault, ...], tuple[Note, ...], tuple[Note, ...], tuple[Note, ...]]


def _sorted(results: Iterable[Result]) -> Groups:
    faults: list[Fault] = []
    healthy: list[Note] = []
    unchecked: list[Note] = []
    errored: list[Note] = []
    for result in results:
        rule, title = text.name(result.rule.name), text.name(result.rule.doc.title)
        match result.outcome:
            case Finding() as finding:
                faults.append(_fault(result, finding))
            case Healthy(summary=summary, evidence=items):
                lines, grids = tables.evidence(items)
                said = text.sentence(summary)
                healthy.append(Note(rule=rule, title=title, text=said, lines=lines, grids=grids))
            case NotApplicable(reason=reason):
                unchecked.append(Note(rule=rule, title=title, text=text.sentence(reason)))
            case Errored(error=error, traceback=trace):
                trace, said = text.block(trace), text.prose(error)
                errored.append(Note(rule=rule, title=title, text=said, traceback=trace))
    faults.sort(key=lambda fault: fault.money)
    return tuple(faults), tuple(healthy), tuple(unchecked), tuple(errored)


def _fault(result: Result, finding: Finding) -> Fault:
    severity = result.severity or finding.severity
    saving, doc = result.saving, result.rule.doc
    lines, grids = tables.evidence(finding.evidence)
    summary = text.sentence(finding.summary)
    return Fault(
        rule=text.name(result.rule.name),
        title=text.name(doc.title),
        topic=result.rule.topic.value,
        severity=severity.name.lower() if severity else "",
        summary=summary,
        what=text.capitalized(finding.remedies[0].action) if finding.remedies else summary,
        where=location(_place(finding)),
        saves=sentences.saves(saving),
        after=tuple(map(text.name, saving.after)) if saving and saving.per_step.value > 0 else (),
        how=_how(saving),
        lines=lines,
        grids=grids,
        changes=tuple(starmap(_change, zip_longest(finding.remedies, result.edits))),
        why=doc.sections.get("Why it matters", ""),
        sources=doc.sections.get("Sources", ""),
        own=result.rule.own,
        money=money.is_about_money(result),
    )


def _place(finding: Finding) -> Location | None:
    """Return the first place that a remedy names, else the first that a table lists."""
    named = [remedy.at for remedy in finding.remedies if remedy.at]
    rows = [row for item in finding.evidence if isinstance(item, Table) for row in item.rows]
    listed = [value for row in rows for value in row if isinstance(value, Location)]
    return next(iter(named + listed), None)


def _change(remedy: Remedy, edit: Edit | None) -> ChangeEntry:
    action = text.capitalized(remedy.action)
    if edit is None or not edit.before:
        return ChangeEntry(action, text.block(remedy.code), location(remedy.at))
    return ChangeEntry(action, text.block(edit.after), location(edit.at), text.block(edit.before))


def _how(saving: Saving | None) -> str:
    if saving is None:
        return "No saving was computed: the step model knows no effect of this on the step's time."
    return text.sentence(saving.how)


def _segments(diagnosis: Diagnosis) -> tuple[BarSegment, ...]:
    parts = sentences.parts_of(diagnosis.steps)
    whole = sum(time for _, time in parts)
    return tuple(
        BarSegment(part, PART_LABELS[part], milliseconds(time), share(time / whole), time / whole)
        for part, time in parts
    )


def _opinion(opinion: SecondOpinion | None) -> tuple[str, ...]:
    if opinion is None:
        return ()
    agreement = {
        True: "That agrees with tfdoctor.",
        False: "That differs from tfdoctor.",
        None: "That says nothing which tfdoctor's figures could be compared with.",
    }[opinion.agrees]
    said = (text.sentence(opinion.conclusion), agreement, text.sentence(opinion.why))
    return tuple(filter(None, said))


def _subject(diagnosis: Diagnosis) -> tuple[tuple[str, str], ...]:
    """Return what was examined and on what: command, device, versions, machine."""
    subject = diagnosis.subject
    used, visible = subject.devices_used, subject.devices_visible
    entries = [
        ("command", text.prose(shlex.join(subject.command))),
        ("device", text.name(" ".join(filter(None, (subject.device, subject.device_name))))),
        ("devices used", f"{used} of {visible}" if None not in (used, visible) else ""),
        ("hosts", text.prose(", ".join(subject.hosts))),
        *((text.name(name), text.name(version)) for name, version in subject.framework.items()),
        ("tfdoctor", text.name(diagnosis.version)),
        *((text.name(label), text.name(value)) for label, value in diagnosis.machine),
        ("exit code", "" if subject.exit_code is None else str(subject.exit_code)),
    ]
    first = {entry[0].casefold(): entry for entry in reversed(entries) if entry[1]}
    return tuple(entry for entry in entries if first.get(entry[0].casefold()) is entry)
