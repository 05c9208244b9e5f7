"""Runs the jobs on Dask: on workers of this machine, or on a cluster that exists."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from dask.system import CPU_COUNT
from distributed import Client, LocalCluster, as_completed

import tfdoctor
from tfdoctor.diagnosis.fleet_report import Failure
from tfdoctor.fleet.job import ExaminedRecording, RecordingJob
from tfdoctor.fleet.worker import FORK_SERVERS, task
from tfdoctor.terms.errors import InputError

CONNECT_S = 10  # A scheduler that does not answer for so long is not there
Tell = Callable[[str], None]  # Shows a sentence to the user


def this_machine() -> int:
    """Return how many workers this machine bears: one for each CPU that this process may use."""
    return int(CPU_COUNT)


@contextmanager
def connected(address: str, workers: int, tell: Tell) -> Iterator[Client]:
    """Examine so many recordings at once on this machine, or connect to the scheduler at an address.

    ``tell`` shows the user what a cluster waits for.

    Raises:
        InputError: there is no scheduler, or its workers lack this version of tfdoctor.
    """
    for name in ("distributed", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # a lost worker is no error of ours
    with _existing(address, tell) if address else _own(workers) as client:
        yield client


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
            FORK_SERVERS.end()  # or closing would wait for the recordings that are being read


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
        others = sorted(set(versions.values()) - {tfdoctor.__version__})
        if others:
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


def examined(client: Client, jobs: Sequence[RecordingJob]) -> Iterator[ExaminedRecording]:
    """Yield the answer to each job once, as they come; the largest recordings begin.

    Raises:
        InputError: the scheduler is gone.
    """
    asked: dict[str, RecordingJob] = {}
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
