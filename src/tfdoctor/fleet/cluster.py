"""Runs the jobs on Dask: on workers of this machine, or on a cluster that exists.

A worker hands each recording to the fork server of its thread, a process of `examine`.
"""

import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from dask.system import CPU_COUNT
from distributed import Client, LocalCluster, as_completed, get_worker
from distributed.system import MEMORY_LIMIT

import tfdoctor
from tfdoctor import own_python
from tfdoctor.diagnosis.fleet_report import Failure
from tfdoctor.fleet.places import ExaminedRecording, FleetPlan, RecordingJob
from tfdoctor.terms.errors import InputError

THIS_MACHINE = int(CPU_COUNT)  # How many workers it bears: one for each CPU that this process may use
CONNECT_S = 10  # A scheduler that does not answer for so long is not there
# For one recording, on machines with more workers than memory for them: enough for a trace of 150 MB.
LEAST_BYTES = 1_000_000_000
Tell = Callable[[str], None]  # Shows a sentence to the user
SERVERS: dict[int, "subprocess.Popen[bytes]"] = {}  # The fork servers of this process, by the thread that asks
ENDED = threading.Event()  # Set once they were ended, for good


@contextmanager
def _own(threads: int) -> Iterator[Client]:
    """Start a worker in this process: its threads only wait for the processes that examine recordings."""
    with (
        LocalCluster(
            processes=False,
            n_workers=1,
            threads_per_worker=threads,
            dashboard_address="127.0.0.1:0",  # any free port: another command may run
            worker_dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        try:
            yield client
        finally:
            ENDED.set()  # or closing would wait for the recordings that are being read
            for server in SERVERS.values():
                server.kill()


@contextmanager
def _existing(address: str, tell: Tell) -> Iterator[Client]:
    try:
        client = Client(address, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        raise InputError(f"No Dask scheduler answers at {address}: check the address and that it runs.") from error
    with client:
        try:
            versions = client.run(version)
        except Exception as error:
            raise InputError(
                f"The workers of {address} cannot import tfdoctor ({error}): install tfdoctor[fleet] there."
            ) from error
        if others := sorted(set(versions.values()) - {tfdoctor.__version__}):
            raise InputError(
                f"The workers of {address} have tfdoctor {others[0]}, and here is {tfdoctor.__version__}: install "
                "the same version."
            )
        if not versions:
            tell(f"the cluster at {address} has no worker yet: waiting for the first")
        yield client


def version() -> str:
    """Return the version of tfdoctor, on a worker."""
    return tfdoctor.__version__


def examined(jobs: Sequence[RecordingJob], plan: FleetPlan, tell: Tell) -> Iterator[ExaminedRecording]:
    """Yield the answer to each job once, as they come; the largest recordings begin.

    ``tell`` shows the user what a cluster waits for.

    Raises:
        InputError: there is no scheduler, its workers lack this version of tfdoctor, or it is gone.
    """
    for name in ("distributed", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # a lost worker is no error of ours
    asked: dict[str, RecordingJob] = {}
    with _existing(plan.scheduler, tell) if plan.scheduler else _own(plan.workers) as client:
        waiting = as_completed()
        for job in sorted(jobs, key=lambda job: -job.found.nbytes):
            future = client.submit(task, job, pure=False)
            asked[future.key] = job
            waiting.add(future)
        del future
        for done in waiting:
            if done.status == "finished":
                yield done.result()
            elif done.status == "error":
                why = f"Dask gave up on it: the workers that read it ended ({done.exception()})."
                yield asked[done.key].failed(Failure.CRASH, why)
            else:
                raise InputError(
                    "The Dask scheduler is gone: what was examined is in the table, and the same command continues."
                )


def started() -> "subprocess.Popen[bytes]":
    """Start a fork server; it ends when its pipes are closed, so also when this process is killed."""
    return subprocess.Popen(
        [sys.executable, "-m", "tfdoctor.fleet.examine"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**own_python.own(os.environ), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        start_new_session=True,  # Ctrl-C is the command's business
    )


def task(job: RecordingJob) -> ExaminedRecording:
    """Examine one recording by the fork server of this thread, on a worker of Dask."""
    if job.version != tfdoctor.__version__:
        here = f"A worker has tfdoctor {tfdoctor.__version__}"
        return job.failed(Failure.CRASH, f"{here}, and the command {job.version}: install the same version.")
    if job.plan.memory_bytes is None:
        share = MEMORY_LIMIT // get_worker().state.nthreads
        job = replace(job, plan=replace(job.plan, memory_bytes=max(share, LEAST_BYTES)))
    gone = job.failed(Failure.CRASH, "The process that was to read it ended: the machine may lack memory.")
    if ENDED.is_set():
        return gone
    try:
        server = SERVERS.get(threading.get_ident())
        if server is None or server.poll() is not None:
            server = SERVERS[threading.get_ident()] = started()
        assert server.stdin  # noqa: S101 - for mypy: both are pipes
        assert server.stdout  # noqa: S101 - same
        pickle.dump(job, server.stdin)
        server.stdin.flush()
        answer: ExaminedRecording = pickle.load(server.stdout)  # noqa: S301 - from our own process
    except (EOFError, OSError, pickle.UnpicklingError):  # the server ended, or all were
        return gone
    return answer
