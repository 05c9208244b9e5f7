"""Traces running jobs that have started TensorFlow's profiler server.

tfdoctor runs no code in such a job: its profiler server records the trace and sends it. One client process
per worker asks, all at the same moment, so that an unreachable worker does not affect the others.
"""

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import psutil
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

from tfdoctor import __version__
from tfdoctor.capture import machine, manifest
from tfdoctor.capture.attach.client import Address, Answer, ask
from tfdoctor.capture.folder import RUN, must_be_empty, new_run
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import Missing, WorkerRank
from tfdoctor.recording.folders import WORKERS
from tfdoctor.recording.manifest import CapturePlan, HostMachine, Manifest, MissingPart
from tfdoctor.terms.errors import CaptureError
from tfdoctor.terms.progress_line import line
from tfdoctor.terms.replacement import writing

__all__ = ["LONGEST_S", "Address", "attach", "host"]

LONGEST_S = 300.0  # A job keeps every event in its memory until the trace ends; minutes of them are gigabytes
SHORTEST_S = 0.001  # The profiler counts in milliseconds
HOSTNAMES = 4  # The field of an XSpace that names the traced hosts
OTHER = "choose another folder with --out"

# Data that a trace does not contain.
NEVER_RECORDED = (
    Missing(
        MissingPart.PROGRAM,
        "shapes, layers and source lines of an attached job are unknown: `tfdoctor profile` records them",
    ),
    Missing(MissingPart.SAMPLES, "the machines of attached jobs are not sampled: `tfdoctor profile` samples them"),
)


def attach(text: str, seconds: float, out: Path | None = None, *, stderr: TextIO | None = None) -> Recording:
    """Trace running jobs for so many seconds: `text` is `host:port`, several with commas.

    Workers that gave no trace are named in the recording, with the reason; a recording is never overwritten.

    Raises:
        CaptureError: an address or the time is invalid, or no worker answered; nothing was written.
        OutputError: the recording cannot be written where it should be.
    """
    stderr = stderr or sys.stderr
    addresses = Address.parse_all(text)
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise CaptureError(
            f"--for must be 1ms to {LONGEST_S / 60:.0f}m, since the job keeps the whole trace in memory."
        )
    made = out is None or not out.exists()  # for this trace
    if out is None:
        with writing("runs", OTHER):
            out = new_run("attach")
    must_be_empty(out, f"{OTHER}, or remove it first")
    try:
        with writing(out, OTHER):
            out.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".attach-", dir=out) as private:
                with line(f"tracing {', '.join(map(str, addresses))} for {seconds:g} s …", stderr):
                    answers = ask(addresses, Path(private), seconds)
                if not any(answer.reached for answer in answers):
                    reasons = "; ".join(f"{answer.address}: {answer.why}" for answer in answers)
                    raise CaptureError(f"No job could be traced: {reasons}.")
                _assemble(out, answers, seconds)
    finally:
        if made and out.is_dir() and not any(out.iterdir()):  # the recording never began
            out.rmdir()
    lost = [answer for answer in answers if answer.trace is None]
    subject = f"{len(answers) - len(lost)} of {len(answers)} workers"
    if len(lost) == len(answers) or not answers[1:]:
        subject = "nothing" if lost else str(addresses[0])
    summary = f"traced {subject} for {seconds:g} s, recorded in {out}"
    for sentence in (summary, *(f"{answer.address} was not traced: {answer.why}" for answer in lost)):
        print(f"tfdoctor: {sentence}", file=stderr)
    return Recording.open(out)


def _assemble(out: Path, answers: Sequence[Answer], seconds: float) -> None:
    """Move the received traces to where TensorBoard finds them, and write the manifests.

    Raises:
        OSError: it cannot be written.
    """
    job = _manifest(answers, seconds)
    traced = [answer for answer in answers if answer.trace is not None]
    manifests = {answer.address.name: _worker_manifest(answer, job, seconds) for answer in traced}
    run = out / "plugins" / "profile" / time.strftime(RUN)
    for answer in traced:
        run.mkdir(parents=True, exist_ok=True)
        shutil.move(str(answer.trace), run / f"{answer.address.name}.xplane.pb")
    if len(manifests) < 2:  # noqa: PLR2004 - one worker, or none
        manifest.write(out, next(iter(manifests.values()), job))
        return
    for place, (name, worker) in enumerate(manifests.items()):
        rank = WorkerRank(name, size=len(answers), place=place)
        folder = out / WORKERS / name
        folder.mkdir(parents=True)
        manifest.write(folder, replace(worker, worker=rank))
    manifest.write(out, replace(job, workers=tuple(manifests)))


def _manifest(answers: Sequence[Answer], seconds: float) -> Manifest:
    """Return the manifest that all workers share; the command that started them is unknown.

    It lacks the trace of each worker that has none, or "trace" if no worker has one.
    """
    lost = [answer for answer in answers if answer.trace is None]
    missing = [Missing(f"trace of {answer.address}", answer.why) for answer in lost]
    if len(lost) == len(answers):
        why = "; ".join(f"{answer.address}: {answer.why}" for answer in lost)
        missing = [Missing(MissingPart.TRACE, why)]
    addresses = tuple(str(answer.address) for answer in answers)
    return Manifest(
        tfdoctor=__version__,
        finished=True,
        plan=CapturePlan("attach", addresses=addresses, seconds=seconds),
        clock=(manifest.clock(),),
        missing=(*missing, *NEVER_RECORDED),
    )


def _worker_manifest(answer: Answer, job: Manifest, seconds: float) -> Manifest:
    """Return the manifest of one worker.

    It has no window, which is for steps that the agent counted; Keras 2's markers are read by its count.
    """
    start = answer.started_unix_ns
    stop = start + round(seconds * 1e9)
    plan = replace(job.plan or CapturePlan(), started_unix_ns=start, stopped_unix_ns=stop)
    fields = UnknownFieldSet(Empty.FromString(answer.trace.read_bytes() if answer.trace else b""))
    entries = (fields[index] for index in range(len(fields)))
    names = [entry.data for entry in entries if entry.field_number == HOSTNAMES]
    name = names[0].decode(errors="replace") if names else ""
    return replace(job, plan=plan, host=host(name, answer.address.port))


def host(name: str, port: int) -> HostMachine:
    """Describe the machine that a trace names; `port` identifies the job if it runs on this one.

    The address does not decide that: `localhost` may be the end of a tunnel.
    """
    if name != platform.node():
        return HostMachine(name=name)
    this_machine = machine.host()
    return this_machine if _shares_limits(port) else replace(this_machine, cores_usable=0.0)


def _shares_limits(port: int) -> bool:
    """Return whether the process that listens on a port of this machine may use the same cores as we.

    It may if it has our CPU affinity and cgroup; False if we may not see it.
    """
    try:
        connections = psutil.net_connections("tcp")
        listening = (item for item in connections if item.status == psutil.CONN_LISTEN)
        pid = next((item.pid for item in listening if item.laddr[1:] == (port,)), None)
        if pid is None:
            return False
        same = Path(f"/proc/{pid}/cgroup").read_bytes() == Path("/proc/self/cgroup").read_bytes()
        return same and os.sched_getaffinity(pid) == os.sched_getaffinity(0)
    except (OSError, psutil.Error):  # it has ended, or is another user's
        return False
