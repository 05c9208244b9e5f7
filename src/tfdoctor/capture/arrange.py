"""Puts what the processes of a run have left where a reader, and TensorBoard, looks for it.

One process that trained is the recording. Several become a recording each below `workers`, with their
traces together in one run folder, as TensorBoard has those of several hosts.
"""

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tfdoctor.capture import manifest
from tfdoctor.capture.folder import Folder
from tfdoctor.recording import PROGRAM, SAMPLES
from tfdoctor.recording.manifest import HostMachine, Manifest
from tfdoctor.recording.processes import Process
from tfdoctor.recording.workers import WORKERS


def arrange(folder: Folder, ended: Manifest, left: Sequence[Process]) -> Manifest:
    """Write the recording of a run that has ended; return its manifest.

    Raises:
        OSError: it cannot be written.
    """
    trained = [process for process in left if process.trained]
    if len(trained) > 1:
        done = _several(folder.out, ended, trained)
        manifest.write(folder.out, done)
    else:
        shown = trained[0] if trained else next(iter(left), None)
        done = manifest.of_process(ended, shown)
        manifest.write(folder.out, done)  # first: on a full disk all stays where a reader finds it
        if shown is not None and folder.shared and folder.worker:
            _take(shown, folder.out, folder.shared, folder.worker.name)
        elif shown is not None:
            _take(shown, folder.out)
    shutil.rmtree(folder.processes, ignore_errors=True)
    return done


def _take(process: Process, out: Path, job: Path | None = None, name: str = "") -> None:
    """Make what a process left the recording's own; a worker's trace goes to those of its job."""
    if process.program.is_file():
        process.program.replace(out / PROGRAM)
    traces = process.traces
    if traces and job:
        traces[0].replace(run_folder(job) / f"{name}.xplane.pb")
    elif traces:
        (process.folder / "plugins").replace(out / "plugins")


def _several(job: Path, ended: Manifest, trained: Sequence[Process]) -> Manifest:
    """Write a recording for each process that trained; return the manifest of the whole run."""
    names = _names(trained)
    for place, (name, process) in enumerate(zip(names, trained, strict=True)):
        out = job / WORKERS / name
        out.mkdir(parents=True)
        worker = replace(process.worker, name=name, place=place)
        done = manifest.of_process(replace(ended, processes=(), worker=worker), process)
        done = replace(done, command=process.state.argv or ended.command)
        manifest.write(out, _with_samples(job, out, process, done))
        _take(process, out, job, name)
    return replace(ended, workers=tuple(names))


def _names(trained: Sequence[Process]) -> list[str]:
    """Return a name for each, unlike all others."""
    names: list[str] = []
    for process in trained:
        name, own = process.worker.name, process.folder.name.replace(".", "-")
        names.append(f"{name}-{own}" if name in names else name)
    return names


def _with_samples(job: Path, out: Path, process: Process, done: Manifest) -> Manifest:
    """Give a worker the samples of its machine, which is the one that tfdoctor ran on or none."""
    samples = job / SAMPLES
    if not samples.is_file():
        return done
    if process.state.host == os.uname().nodename:
        shutil.copyfile(samples, out / SAMPLES)
        return done
    done = replace(done, host=HostMachine(process.state.host))
    why = "this worker ran on another machine: start tfdoctor there as well"
    return done.lacks("samples", why)


def run_folder(job: Path) -> Path:
    """Return the run folder that the traces of all workers of a job share; the first of them makes it.

    It is made beside and renamed, which fails when there is one already, so that workers that end in the
    same moment agree.
    """
    final = job / "plugins"
    if not final.exists():
        beside = job / f"plugins.{os.uname().nodename}.{os.getpid()}"
        (beside / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")).mkdir(parents=True)
        try:
            beside.rename(final)
        except OSError:  # another worker was first
            shutil.rmtree(beside)
    return min((final / "profile").iterdir())
