"""Examines one recording: fetches it, diagnoses it, and makes its row and its page."""

import hashlib
from dataclasses import replace
from pathlib import Path, PurePosixPath

from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.fleet_report import Failure, FleetRun
from tfdoctor.fleet import names
from tfdoctor.fleet.job import ExaminedRecording, RecordingJob
from tfdoctor.fleet.row import row
from tfdoctor.recording import Recording
from tfdoctor.remote.fetching import fetched_files
from tfdoctor.remote.filesystem import is_url
from tfdoctor.report.formats import render
from tfdoctor.rulebook.book import rulebook
from tfdoctor.scrub import Secrets, paths, scrub
from tfdoctor.stored.files import is_report, open_report
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import opened


def examine(job: RecordingJob, scratch: Path) -> ExaminedRecording:
    """Return the row of a recording; a file that cannot be read is an error in the row. Copies go to ``scratch``.

    Raises:
        MemoryError: the recording needs more memory than this process may have.
    """
    place = job.found.place
    try:
        at = fetched_files(place, job.found.files, scratch) if is_url(place) else Path(place)
        digest = digest_of(at, job.found.files)
    except (InputError, OSError) as error:
        return job.failed(Failure.UNREACHABLE, str(error))
    if digest in job.known:
        return ExaminedRecording(replace(job.failed(Failure.UNREADABLE, "").run, digest=digest), known=True)
    try:
        return _diagnosed(job, at, digest)
    except InputError as error:
        message = str(error).replace(str(at), place)
        return job.failed(Failure.UNREADABLE, message, digest)


def digest_of(root: Path, files: tuple[str, ...]) -> str:
    """Return the SHA-256 of the names and the contents of a recording's files.

    Raises:
        OSError: one cannot be read.
    """
    whole = hashlib.sha256()
    for name in sorted(files):
        with opened(root / name if name else root.resolve()) as file:
            whole.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()


def _diagnosed(job: RecordingJob, at: Path, digest: str) -> ExaminedRecording:
    book = rulebook(job.config)
    if is_report(at):
        return _stored(job, open_report(at, book.known), digest)
    recording = Recording.open(at)
    title = recording.invocation or names.title(job.found.place)
    diagnosis = diagnose(recording, book.rules, title, ask_xprof=False, settings=book.settings)
    known = replace(
        _known(job, digest),
        script=names.script(recording.manifest),
        recorded=names.recorded(recording.manifest, tuple(map(PurePosixPath, recording.traces))),
    )
    if job.scrubbed:  # also without the names in its place
        secrets = Secrets.of(recording)
        users = (*secrets.users, *paths.of_text(job.found.place))
        diagnosis = scrub(diagnosis, replace(secrets, users=users).identifying())
    page = render("html", diagnosis) if job.page else ""
    return ExaminedRecording(row(known, recording.manifest, diagnosis), page)


def _stored(job: RecordingJob, diagnosis: Diagnosis, digest: str) -> ExaminedRecording:
    """Return the row and the page of a stored report, as it was written.

    Raises:
        InputError: its names are to be removed, which only the recording tells from other words.
    """
    if job.scrubbed:
        raise InputError(f"{job.found.shown} is a report, and --scrub needs its recording.")
    known = replace(_known(job, digest), script=names.of_command(diagnosis.subject.command))
    page = render("html", diagnosis) if job.page else ""
    return ExaminedRecording(row(known, None, diagnosis), page)


def _known(job: RecordingJob, digest: str) -> FleetRun:
    """Return the row of a recording that can be read, without what it shows."""
    return replace(job.failed(Failure.UNREADABLE, "").run, failure="", digest=digest)
