"""Examines one recording: fetches it, diagnoses it, and makes its row and its page."""

import hashlib
from dataclasses import replace
from pathlib import Path, PurePosixPath

from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis.fleet_report import Failure
from tfdoctor.fleet import names
from tfdoctor.fleet.job import ExaminedRecording, RecordingJob
from tfdoctor.fleet.row import row
from tfdoctor.recording import Recording
from tfdoctor.remote.fetching import fetched_files
from tfdoctor.remote.filesystem import is_url
from tfdoctor.report.formats import render
from tfdoctor.rulebook.book import rulebook
from tfdoctor.scrub import Secrets, paths, scrub
from tfdoctor.terms.errors import InputError


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
        return ExaminedRecording(
            replace(job.failed(Failure.UNREADABLE, "").run, digest=digest), known=True
        )
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
        with (root / name if name else root).open("rb") as file:
            whole.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()


def _diagnosed(job: RecordingJob, at: Path, digest: str) -> ExaminedRecording:
    recording, book = Recording.open(at), rulebook(job.config)
    title = names.title(job.found.place)
    diagnosis = diagnose(recording, book.rules, title, ask_xprof=False, settings=book.settings)
    known = replace(
        job.failed(Failure.UNREADABLE, "").run,
        failure="",
        digest=digest,
        script=names.script(recording.manifest),
        recorded=names.recorded(recording.manifest, tuple(map(PurePosixPath, recording.traces))),
    )
    if job.scrubbed:  # also without the names in its place
        secrets = Secrets.of(recording)
        users = (*secrets.users, *paths.of_text(job.found.place))
        diagnosis = scrub(diagnosis, replace(secrets, users=users).identifying())
    page = render("html", diagnosis) if job.page else ""
    return ExaminedRecording(row(known, recording, diagnosis), page)
