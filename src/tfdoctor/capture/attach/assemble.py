"""Assembles the recording of attached jobs: of one worker, or one for each below `workers`."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

from tfdoctor import __version__
from tfdoctor.capture import manifest
from tfdoctor.capture.attach.client import Answer
from tfdoctor.capture.attach.host import host
from tfdoctor.recording.agent import Missing, WorkerRank
from tfdoctor.recording.folders import WORKERS
from tfdoctor.recording.manifest import CapturePlan, HostMachine, Manifest, MissingPart

RUN = "%Y_%m_%d_%H_%M_%S"  # The name of a run folder in TensorBoard
HOSTNAMES = 4  # The field of an XSpace that names the traced hosts

# Data that a trace does not contain.
NEVER_RECORDED = (
    Missing(
        MissingPart.PROGRAM,
        "shapes, layers and source lines of an attached job are unknown: `tfdoctor profile` records them",
    ),
    Missing(MissingPart.SAMPLES, "the machines of attached jobs are not sampled: `tfdoctor profile` samples them"),
)


def assemble(out: Path, answers: Sequence[Answer], seconds: float) -> None:
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
    return replace(job, plan=plan, host=_host(answer))


def _host(answer: Answer) -> HostMachine:
    """Describe the worker's machine, which its trace names."""
    trace = answer.trace.read_bytes() if answer.trace else b""
    fields = UnknownFieldSet(Empty.FromString(trace))
    entries = (fields[index] for index in range(len(fields)))
    names = [entry.data for entry in entries if entry.field_number == HOSTNAMES]
    return host(names[0].decode(errors="replace") if names else "", answer.address.port)
