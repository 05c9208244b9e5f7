"""Examines one recording: fetches it, diagnoses it, and makes its row and its page."""

import hashlib
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.entries import entries
from tfdoctor.diagnosis.fleet_report import Failure, FleetFinding, FleetRun
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import RunSaving, RunTogether, Saving, Together
from tfdoctor.fleet import names
from tfdoctor.fleet.job import ExaminedRecording, RecordingJob
from tfdoctor.recording import Manifest, Recording
from tfdoctor.remote.fetching import fetched_files
from tfdoctor.remote.filesystem import is_url
from tfdoctor.report.formats import render
from tfdoctor.report.words import pace_ms
from tfdoctor.rulebook.book import rulebook
from tfdoctor.scrub import Secrets, scrub
from tfdoctor.scrub.words import users_in, users_of_path
from tfdoctor.stored.files import is_report, open_report
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import opened
from tfdoctor.terms.humanize import place as shown_place
from tfdoctor.terms.json_form import number
from tfdoctor.terms.kinds import TrustLevel
from tfdoctor.terms.verdict import Bound, Finding


def examine(job: RecordingJob, scratch: Path) -> ExaminedRecording:
    """Return the row of a recording; a file that cannot be read is an error in the row. Copies go to ``scratch``.

    Raises:
        MemoryError: the recording needs more memory than this process may have.
    """
    place = job.found.place
    try:
        at = fetched_files(place, job.found.files, scratch) if is_url(place) else Path(place)
        digest = _digest(at, job.found.files)
    except (InputError, OSError) as error:
        return job.failed(Failure.UNREACHABLE, str(error))
    if digest in job.known:
        return ExaminedRecording(job.row(digest), known=True)
    try:
        return _diagnosed(job, at, digest)
    except InputError as error:
        return job.failed(Failure.UNREADABLE, str(error).replace(str(at), place), digest)


def _digest(root: Path, files: tuple[str, ...]) -> str:
    """Return the SHA-256 of the names and the contents of a recording's files."""
    whole = hashlib.sha256()
    for name in sorted(files):
        with opened(root / name if name else root.resolve()) as file:
            whole.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()


def _diagnosed(job: RecordingJob, at: Path, digest: str) -> ExaminedRecording:
    """Return the row and the page of a recording, or of a stored report as it was written.

    Raises:
        InputError: a report's names are to be removed, which only the recording tells from other words.
    """
    book, known = rulebook(job.plan.config), job.row(digest)
    if is_report(at):
        manifest, diagnosis = None, open_report(at, book.known)
        if job.plan.scrubbed:
            raise InputError(f"{job.found.shown} is a report, and --scrub needs its recording.")
        known = replace(known, script=names.script(diagnosis.subject.command))
    else:
        recording = Recording.open(at)
        manifest, title = recording.manifest, recording.invocation or names.title(job.found.place)
        diagnosis = diagnose(recording, book.rules, title, ask_xprof=False, settings=book.settings)
        recorded = names.recorded(manifest, tuple(map(PurePosixPath, recording.traces)))
        known = replace(known, recorded=recorded)
        if manifest is not None:
            module = manifest.plan.script if manifest.plan else ""
            known = replace(known, script=names.script(manifest.command, module, manifest.cwd))
        if job.plan.scrubbed:  # also without the names in its place
            secrets = Secrets.of(recording)
            users = (*secrets.users, *users_in(job.found.place))
            diagnosis = scrub(diagnosis, replace(secrets, users=users).identifying())
    page = render("html", diagnosis) if job.plan.pages else ""
    return ExaminedRecording(_row(known, manifest, diagnosis), page)


def _row(known: FleetRun, manifest: Manifest | None, diagnosis: Diagnosis) -> FleetRun:
    """Return a row with what the diagnosis says; ``known`` has the place and the files."""
    subject, steps, run = diagnosis.subject, diagnosis.steps, diagnosis.run
    step_ms, together = pace_ms(diagnosis) or steps.shown_ms, diagnosis.together  # as its page says
    of_all: dict[str, Any] = {}
    # One that was ended after its traced steps, as asked, mostly starts: what it wastes is that of its steps.
    if run is not None and run.whole and not (run.ended_early and steps.shown_ms):
        of_all = {
            "run_hours": number(run.total_ms / names.MS_PER_HOUR),
            "run_saving_share": number(_share(diagnosis, of_run=True)),
            "run_saving_bound": _bound(diagnosis.run_together),
        }
    # As many on each host as on the one that the report shows. Without a trace they are unknown: then the machine
    # is one, as it is of a run on CPUs.
    devices = subject.devices_used or (1 if run and run.whole else None)
    return replace(
        known,
        user=next(iter(users_of_path(manifest.cwd)), "") if manifest else "",  # of the home folder
        host=(manifest.host.name if manifest else "") or next(iter(subject.hosts), ""),
        device=subject.device.value if subject.device else "",
        device_name=subject.device_name,
        devices=devices * (len(diagnosis.hosts.rows) if diagnosis.hosts else 1) if devices else None,
        steps=max(steps.count, len(steps.rows)),
        hours=number(names.hours(manifest, step_ms)),
        step_ms=number(step_ms),
        parts_ms={part: number(time) or 0.0 for part, time in steps.shown_breakdown_ms.items()} or None,
        trust=diagnosis.trust.level.value,
        missing=steps.missing,
        saving_share=number(_share(diagnosis, of_run=False)),
        saving_bound=_bound(together),
        findings=tuple(
            _finding(entry.result, entry.result.outcome)
            for entry in entries(diagnosis)
            if isinstance(entry.result.outcome, Finding)
        ),
        **of_all,
    )


def _share(diagnosis: Diagnosis, *, of_run: bool) -> float | None:
    """Return what all changes save of the run or of the step; 0 where none is known, None where that is open.

    It is open where a change is known, and not what it saves. Low trust without a finding says little of the step:
    most rules could not check the run.
    """
    together = diagnosis.run_together if of_run else diagnosis.together
    if together:
        return together.share
    for result in diagnosis.results:
        finding = result.outcome
        if not isinstance(finding, Finding) or result.rule.general or result.saving or (of_run and result.run):
            continue
        if finding.effects or (of_run and finding.run_effects):
            return None
    doubtful = diagnosis.trust.level is TrustLevel.LOW or diagnosis.steps.shown_ms is None
    return None if doubtful and not of_run else 0.0


def _finding(result: Result, finding: Finding) -> FleetFinding:
    saving, severity = result.saving, result.severity or finding.severity
    return FleetFinding(
        rule=result.rule.name,
        severity=severity.name.lower() if severity else None,
        share=number(saving.share) if saving else None,
        bound=_bound(result.run or saving),
        summary=finding.summary,
        at=shown_place(result.place),
        run_share=number(result.run.share) if result.run else None,
    )


def _bound(saving: Saving | RunSaving | Together | RunTogether | None) -> str:
    return (saving.bound if saving else Bound.EXPECTED).value
