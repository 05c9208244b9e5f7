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
from contextlib import suppress
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
    with tempfile.TemporaryDirectory(prefix="tfdoctor-") as scratch:
        ours, its = FORK.Pipe(duplex=False)
        process = FORK.Process(target=_examine, args=(job, Path(scratch), its))
        process.start()
        its.close()
        try:
            ready = wait([ours, jobs.fileno()], job.plan.timeout_s)
            if not ready:
                limit = milliseconds(1000 * job.plan.timeout_s)
                return job.failed(Failure.TIMEOUT, f"It was not read within {limit}: raise --timeout.")
            if ours not in ready:  # no job comes before the answer: the worker has ended
                raise EOFError
            answer: ExaminedRecording | None = None
            with suppress(EOFError):
                answer = ours.recv()
            if answer is None:
                process.join()
                code = process.exitcode or 0
                end = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
                answer = job.failed(Failure.CRASH, f"The process that read it {end}.")
            return answer
        finally:
            process.kill()
            process.join()
            ours.close()


def _examine(job: RecordingJob, scratch: Path, pipe: Connection) -> None:
    """Examine the recording, in the new process."""
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
    pipe.send(answer)
    pipe.close()


if __name__ == "__main__":
    main()
