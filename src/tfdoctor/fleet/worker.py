"""The task of a Dask worker: it hands a recording to the fork server of its thread."""

import os
import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from typing import IO, Self

from distributed import get_worker
from distributed.system import MEMORY_LIMIT

from tfdoctor import __version__, own_python
from tfdoctor.diagnosis.fleet_report import Failure
from tfdoctor.fleet.job import ExaminedRecording, RecordingJob
from tfdoctor.terms.record import Record

# For one recording, on machines with more workers than memory for them: enough for a trace of 150 MB.
LEAST_BYTES = 1_000_000_000


class ForkServer(Record):
    """A fork server and the pipes to it."""

    process: "subprocess.Popen[bytes]"
    jobs: IO[bytes]
    answers: IO[bytes]

    @classmethod
    def started(cls) -> Self:
        """Start one; it ends when its pipes are closed, so also when this process is killed."""
        process = subprocess.Popen(
            [sys.executable, "-m", "tfdoctor.fleet.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**own_python.own(os.environ), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is the command's business
        )
        assert process.stdin  # noqa: S101 - for mypy: both are pipes
        assert process.stdout  # noqa: S101 - same
        return cls(process, process.stdin, process.stdout)

    def answer(self, job: RecordingJob) -> ExaminedRecording:
        """Return what was examined."""
        pickle.dump(job, self.jobs)
        self.jobs.flush()
        answer: ExaminedRecording = pickle.load(self.answers)  # noqa: S301 - from our own process
        return answer


class ForkServers:
    """The fork servers of this process: one for each thread that asks."""

    def __init__(self) -> None:
        self._by_thread: dict[int, ForkServer] = {}
        self._ended = False

    def answer(self, job: RecordingJob) -> ExaminedRecording:
        """Return the answer of this thread's server, started if there is none.

        Raises:
            EOFError: it ended, or all were ended.
            OSError: it ended before it read the job.
            pickle.UnpicklingError: it ended while it answered.
        """
        if self._ended:
            raise EOFError
        thread = threading.get_ident()
        server = self._by_thread.get(thread)
        if server is None or server.process.poll() is not None:
            server = self._by_thread[thread] = ForkServer.started()
        return server.answer(job)

    def end(self) -> None:
        """End all of them, whatever they do, for good."""
        self._ended = True
        for server in self._by_thread.values():
            server.process.kill()


FORK_SERVERS = ForkServers()  # Those of this worker


def task(job: RecordingJob) -> ExaminedRecording:
    """Examine one recording, on a worker of Dask."""
    if job.version != __version__:
        return job.failed(
            Failure.CRASH,
            f"A worker has tfdoctor {__version__}, and the command {job.version}: install the same version.",
        )
    if job.memory_bytes is None:
        share = MEMORY_LIMIT // get_worker().state.nthreads
        job = replace(job, memory_bytes=max(share, LEAST_BYTES))
    try:
        return FORK_SERVERS.answer(job)
    except (EOFError, OSError, pickle.UnpicklingError):
        return job.failed(Failure.CRASH, "The process that was to read it ended: the machine may lack memory.")
