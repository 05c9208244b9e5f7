"""Examines recordings in processes of their own, with a limit of memory and time, so that a bad one costs one row.

A worker keeps one such server: it has loaded tfdoctor and forks for each recording, which saves half a second of
imports each time. Jobs and answers are pickles on its standard input and output.
"""

import multiprocessing
import os
import pickle
import resource
import signal
import sys
import tempfile
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import BinaryIO

from tfdoctor.diagnosis.fleet_report import Failure
from tfdoctor.fleet.examine import examine
from tfdoctor.fleet.job import ExaminedRecording, RecordingJob
from tfdoctor.report import bundle
from tfdoctor.report.formats import html
from tfdoctor.rules import all_rules
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.humanize import milliseconds, quantity
from tfdoctor.terms.units import nbytes

# Memory that reading a trace takes at most, per byte of it, and what Python and its libraries take.
BYTES_PER_BYTE, BASE_BYTES = 6, 200_000_000
FORK = multiprocessing.get_context("fork")  # Safe here: the server has one thread


def main() -> None:
    """Answer jobs until the worker closes the pipe."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    # What every recording needs is loaded here, so that no process does it again.
    all_rules()
    html.prepare()
    bundle.plotly()
    serve(sys.stdin.buffer, answers)


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Answer each job with what was examined."""
    while True:
        try:
            job: RecordingJob = pickle.load(jobs)  # noqa: S301 - from the worker that started this process
            answer = examined(job, jobs)
        except EOFError:
            return
        pickle.dump(answer, answers)
        answers.flush()


def examined(job: RecordingJob, jobs: BinaryIO) -> ExaminedRecording:
    """Examine a recording in a process of its own; whatever ends this process is an error in the row.

    Raises:
        EOFError: the worker has closed ``jobs``, so nobody waits for the answer.
    """
    with tempfile.TemporaryDirectory(prefix="tfdoctor-") as scratch:
        ours, its = FORK.Pipe(duplex=False)
        process = FORK.Process(target=_examine, args=(job, Path(scratch), its))
        process.start()
        its.close()
        try:
            return _answer(job, jobs, ours, process)
        finally:
            process.kill()
            process.join()
            ours.close()


def _answer(
    job: RecordingJob, jobs: BinaryIO, pipe: Connection, process: "multiprocessing.context.ForkProcess"
) -> ExaminedRecording:
    ready = wait([pipe, jobs.fileno()], job.timeout_s)
    if ready and pipe not in ready:  # no job comes before the answer: the worker has ended
        raise EOFError
    if not ready:
        limit = milliseconds(1000 * job.timeout_s)
        return job.failed(Failure.TIMEOUT, f"It was not read within {limit}: raise --timeout.")
    try:
        answer: ExaminedRecording = pipe.recv()
    except EOFError:
        process.join()
        code = process.exitcode or 0
        end = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return job.failed(Failure.CRASH, f"The process that read it {end}.")
    return answer


def _examine(job: RecordingJob, scratch: Path, pipe: Connection) -> None:
    """Examine the recording, in the new process."""
    if job.memory_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (job.memory_bytes, job.memory_bytes))
    most = quantity(nbytes(job.memory_bytes or 0))
    try:
        answer = examine(job, scratch)
        if answer.run.failure == Failure.UNREADABLE and _is_tight(job):
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
    pipe.send(answer)
    pipe.close()


def _is_tight(job: RecordingJob) -> bool:
    """Say whether memory may have run out: the parser then says no more than that it failed."""
    needed = BASE_BYTES + BYTES_PER_BYTE * job.found.nbytes
    return job.memory_bytes is not None and job.memory_bytes < needed


if __name__ == "__main__":
    main()
