"""Examines recordings in processes of their own, with a limit of memory and time, so that a bad one costs one row.

A worker keeps one such server, ``python -m tfdoctor.fleet.examine``: it has loaded tfdoctor and forks for each
recording, which saves half a second of imports each time. Jobs and answers are pickles on its standard input and
output.
"""

import hashlib
import multiprocessing
import os
import pickle
import posixpath
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis, Result, RunSaving, RunTogether, Saving, Together
from tfdoctor.diagnosis.fleet_report import Failure, FleetFinding, FleetRun
from tfdoctor.fleet.places import ExaminedRecording, RecordingJob, title
from tfdoctor.recording import Manifest, Recording
from tfdoctor.recording.folders import RUN
from tfdoctor.recording.manifest import SCRIPT, program_of
from tfdoctor.remote.fetching import fetched_files
from tfdoctor.remote.filesystem import is_url
from tfdoctor.report.formats import html, render
from tfdoctor.report.template import plotly
from tfdoctor.report.words import pace_ms
from tfdoctor.rulebook.book import rulebook
from tfdoctor.rules import all_rules
from tfdoctor.scrub import Secrets, scrub, users_in, users_of_path
from tfdoctor.stored.files import is_report, open_report
from tfdoctor.terms.errors import ConfigError, InputError
from tfdoctor.terms.files import opened
from tfdoctor.terms.humanize import milliseconds, place, quantity
from tfdoctor.terms.json_form import number
from tfdoctor.terms.kinds import TrustLevel
from tfdoctor.terms.units import nbytes
from tfdoctor.terms.verdict import Bound, Finding

# Memory that reading a trace takes at most, per byte of it, and what Python and its libraries take.
BYTES_PER_BYTE, BASE_BYTES = 6, 200_000_000
FORK = multiprocessing.get_context("fork")  # Safe here: the server has one thread
NS_PER_S = 1e9
MS_PER_HOUR = 3_600_000.0


def main() -> None:
    """Answer jobs until the worker closes the pipe."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    # What every recording needs is loaded here, so that no process does it again.
    all_rules()
    html.prepare()
    plotly()
    with suppress(EOFError):
        while True:
            job: RecordingJob = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the worker that started this process
            pickle.dump(examined(job, sys.stdin.buffer), answers)
            answers.flush()


def examined(job: RecordingJob, jobs: BinaryIO) -> ExaminedRecording:
    """Examine a recording in a process of its own; whatever ends this process is an error in the row.

    Raises:
        EOFError: the worker has closed ``jobs``, so nobody waits for the answer.
    """
    with tempfile.TemporaryDirectory(prefix="tfdoctor-") as folder:
        scratch, answer = Path(folder, "copies"), Path(folder, "answer")
        scratch.mkdir()
        process = FORK.Process(target=_in_limits, args=(job, scratch, answer))
        process.start()
        try:
            ready = wait([process.sentinel, jobs.fileno()], job.plan.timeout_s)
        finally:
            process.kill()
            process.join()
        if not ready:
            limit = milliseconds(1000 * job.plan.timeout_s)
            return job.failed(Failure.TIMEOUT, f"It was not read within {limit}: raise --timeout.")
        if process.sentinel not in ready:  # no job comes before the answer: the worker has ended
            raise EOFError
        code = process.exitcode or 0
        if not code and answer.is_file():
            made: ExaminedRecording = pickle.loads(answer.read_bytes())  # noqa: S301 - from our own process
            return made
        end = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return job.failed(Failure.CRASH, f"The process that read it {end}.")


def _in_limits(job: RecordingJob, scratch: Path, to: Path) -> NoReturn:
    memory = job.plan.memory_bytes
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    most = quantity(nbytes(memory or 0))
    # Where memory may have run out, the parser says no more than that it failed.
    tight = memory is not None and memory < BASE_BYTES + BYTES_PER_BYTE * job.found.nbytes
    try:
        answer = examine(job, scratch)
        if answer.run.failure == Failure.UNREADABLE and tight:
            answer = job.failed(
                Failure.MEMORY,
                f"It could not be read within {most} of memory: raise --memory; if that does not help, the trace "
                "is damaged.",
            )
    except MemoryError:
        answer = job.failed(Failure.MEMORY, f"It needs more than {most} of memory: raise --memory.")
    except ConfigError as error:  # a rule of the user's own that this machine lacks
        answer = job.failed(Failure.CRASH, str(error))
    except Exception as error:  # noqa: BLE001 - a defect in one row must not end the others
        answer = job.failed(Failure.CRASH, f"Reading it failed ({type(error).__name__}: {error}).")
    to.write_bytes(pickle.dumps(answer))
    os._exit(0)  # whatever a library has begun need not end


def examine(job: RecordingJob, scratch: Path) -> ExaminedRecording:
    """Return the row of a recording; a file that cannot be read is an error in the row. Copies go to ``scratch``.

    Raises:
        MemoryError: the recording needs more memory than this process may have.
    """
    where, whole = job.found.place, hashlib.sha256()  # of the names and the contents of the files
    try:
        at = fetched_files(where, job.found.files, scratch) if is_url(where) else Path(where)
        for name in sorted(job.found.files):
            with opened(at / name if name else at.resolve()) as file:
                whole.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    except (InputError, OSError) as error:
        return job.failed(Failure.UNREACHABLE, str(error))
    digest = whole.hexdigest()
    if digest in job.known:
        return ExaminedRecording(job.row(digest), known=True)
    try:
        return _diagnosed(job, at, digest)
    except InputError as error:
        return job.failed(Failure.UNREADABLE, str(error).replace(str(at), where), digest)


def _diagnosed(job: RecordingJob, at: Path, digest: str) -> ExaminedRecording:
    """Return the row and the page of a recording, or of a stored report as it was written."""
    book, known = rulebook(job.plan.config), job.row(digest)
    if is_report(at):
        manifest, diagnosis = None, open_report(at, book.known)
        if job.plan.scrubbed:  # only the recording tells names from other words
            raise InputError(f"{job.found.shown} is a report, and --scrub needs its recording.")
        known = replace(known, script=script(diagnosis.subject.command))
    else:
        recording = Recording.open(at)
        manifest, name = recording.manifest, recording.invocation or title(job.found.place)
        diagnosis = diagnose(recording, book.rules, name, ask_xprof=False, settings=book.settings)
        # Where only the run folder says when it was recorded, that is in the machine's own time.
        folders = filter(None, (RUN.fullmatch(trace.parent.name) for trace in recording.traces))
        known = replace(known, recorded=next(("{}-{}-{}T{}:{}:{}".format(*run.groups()) for run in folders), ""))
        if manifest is not None:
            module = manifest.plan.script if manifest.plan else ""
            known = replace(known, script=script(manifest.command, module, manifest.cwd))
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
    leads = (entry.result for entry in diagnosis.entries)
    of_all: dict[str, Any] = {}
    # One that was ended after its traced steps, as asked, mostly starts: what it wastes is that of its steps.
    if run is not None and run.whole and not (run.ended_early and steps.shown_ms):
        of_all = {
            "run_hours": number(run.total_ms / MS_PER_HOUR),
            "run_saving_share": number(_share(diagnosis, of_run=True)),
            "run_saving_bound": _bound(diagnosis.run_together),
        }
    # As many on each host as on the one that the report shows. Without a trace they are unknown: then the machine
    # is one, as it is of a run on CPUs.
    devices = subject.devices_used or (1 if run and run.whole else None)
    return replace(
        known,
        recorded=subject.recorded or known.recorded,
        user=next(iter(users_of_path(manifest.cwd)), "") if manifest else "",  # of the home folder
        host=(manifest.host.name if manifest else "") or next(iter(subject.hosts), ""),
        device=subject.device.value if subject.device else "",
        device_name=subject.device_name,
        devices=devices * (len(diagnosis.hosts.rows) if diagnosis.hosts else 1) if devices else None,
        steps=max(steps.count, len(steps.rows)),
        hours=number(hours(manifest, step_ms)),
        step_ms=number(step_ms),
        parts_ms={part: number(time) or 0.0 for part, time in steps.shown_breakdown_ms.items()} or None,
        trust=diagnosis.trust.level.value,
        missing=steps.missing,
        saving_share=number(_share(diagnosis, of_run=False)),
        saving_bound=_bound(together),
        findings=tuple(_finding(one, one.finding) for one in leads if one.finding),
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
        finding = result.finding
        if not finding or result.rule.general or result.saving or (of_run and result.run):
            continue
        if finding.effects or (of_run and finding.run_effects):
            return None
    doubtful = diagnosis.trust.level is TrustLevel.LOW or diagnosis.steps.shown_ms is None
    return None if doubtful and not of_run else 0.0


def _finding(result: Result, finding: Finding) -> FleetFinding:
    saving, severity = result.saving, result.severity or finding.severity
    return FleetFinding(
        rule=result.rule.name,
        severity=severity.word if severity else None,
        share=number(saving.share) if saving else None,
        bound=_bound(result.run or saving),
        summary=finding.summary,
        at=place(result.place),
        run_share=number(result.run.share) if result.run else None,
    )


def _bound(saving: Saving | RunSaving | Together | RunTogether | None) -> str:
    return (saving.bound if saving else Bound.EXPECTED).value


def script(command: Sequence[str], module: str = "", cwd: str = "") -> str:
    """Return the folder and the name of the script of a command, or of its module; "" where none is known."""
    path = next((word for word in (module, program_of(command)[0]) if word.endswith(SCRIPT)), "")
    if not path:
        return f"{posixpath.basename(cwd)}/{module}".lstrip("/") if module else ""
    return "/".join(filter(None, posixpath.normpath(posixpath.join(cwd, path)).split("/")[-2:]))


def hours(manifest: Manifest | None, step_ms: float | None) -> float | None:
    """Return the hours of training of a run: all its steps, or from the first traced one to its end.

    None where the recording does not say, as those of other tools do not.
    """
    if manifest is None or step_ms is None or manifest.window is None:
        return None
    if manifest.steps.seen and manifest.steps.seen_all:
        return manifest.steps.seen * step_ms / MS_PER_HOUR
    began, ended = manifest.window.started_unix_ns, manifest.clock[-1].unix_ns if len(manifest.clock) > 1 else 0
    return (ended - began) / NS_PER_S / 3600 if 0 < began < ended else None


if __name__ == "__main__":
    main()
