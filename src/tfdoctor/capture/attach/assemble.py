"""Writes the recording of jobs that were attached to: of one worker, or one for each below `workers`."""

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
from tfdoctor.recording.manifest import CapturePlan, HostMachine, Manifest, Missing, WorkerRank
from tfdoctor.recording.workers import WORKERS

RUN = "%Y_%m_%d_%H_%M_%S"
"""What TensorBoard calls a run."""

HOSTNAMES = 4
"""The field of an XSpace that names the traced hosts."""

UNSEEN = (
    Missing(
        "program",
        "shapes, layers and source lines of an attached job are unknown: `tfdoctor profile` records them",
    ),
    Missing(
        "samples", "the machines of attached jobs are not sampled: `tfdoctor profile` samples them"
    ),
)
"""Data that a trace alone does not hold."""


def assemble(out: Path, answers: Sequence[Answer], seconds: float) -> None:
    """Move the traces that came into the recording, where TensorBoard looks for them, and describe them.

    Raises:
        OSError: it cannot be written.
    """
    job = _manifest(answers, seconds)
    traced = [answer for answer in answers if answer.trace is not None]
    told = {answer.address.name: _of(answer, job, seconds) for answer in traced}
    _move(traced, out / "plugins" / "profile" / time.strftime(RUN))
    if len(told) < 2:  # noqa: PLR2004 - one worker, or none
        manifest.write(out, next(iter(told.values()), job))
        return
    for place, (name, worker) in enumerate(told.items()):
        among = WorkerRank(name, size=len(answers), place=place)
        folder = out / WORKERS / name
        folder.mkdir(parents=True)
        manifest.write(folder, replace(worker, worker=among))
    manifest.write(out, replace(job, workers=tuple(told)))


def _move(traced: Sequence[Answer], run: Path) -> None:
    for answer in traced:
        run.mkdir(parents=True, exist_ok=True)
        shutil.move(str(answer.trace), run / f"{answer.address.name}.xplane.pb")


def _manifest(answers: Sequence[Answer], seconds: float) -> Manifest:
    """Return what is true of all workers; nothing is known of the command that started them."""
    return Manifest(
        tfdoctor=__version__,
        finished=True,
        plan=CapturePlan(
            "attach",
            addresses=tuple(str(answer.address) for answer in answers),
            seconds=seconds,
        ),
        clock=(manifest.clock(),),
        missing=(*_missing(answers), *UNSEEN),
    )


def _missing(answers: Sequence[Answer]) -> list[Missing]:
    """Name each worker that gave no trace; "trace" alone says that there is none at all."""
    lost = [answer for answer in answers if answer.trace is None]
    if len(lost) == len(answers):
        why = "; ".join(f"{answer.address}: {answer.why}" for answer in lost)
        return [Missing("trace", why)]
    return [Missing(f"trace of {answer.address}", answer.why) for answer in lost]


def _of(answer: Answer, job: Manifest, seconds: float) -> Manifest:
    """Return the manifest of one worker.

    It has no window: that is of steps which the hook counted, and Keras 2's markers are read by its count.
    """
    start = answer.started_unix_ns
    stop = start + round(seconds * 1e9)
    plan = replace(job.plan or CapturePlan(), started_unix_ns=start, stopped_unix_ns=stop)
    return replace(job, plan=plan, host=_host(answer))


def _host(answer: Answer) -> HostMachine:
    """Describe the worker's machine, as far as its trace tells which one that is."""
    trace = answer.trace.read_bytes() if answer.trace else b""
    fields = UnknownFieldSet(Empty.FromString(trace))
    numbered = (fields[place] for place in range(len(fields)))
    names = [each.data for each in numbered if each.field_number == HOSTNAMES]
    return host(names[0].decode(errors="replace") if names else "", answer.address.port)
