"""Assembles a recording from the files of a run's processes, in the layout that TensorBoard reads too.

If one process trained, its files become the recording. If several did, each gets a recording below `workers`,
and their traces lie in one run folder, as TensorBoard expects of several hosts.
"""

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tfdoctor.capture import manifest, sources
from tfdoctor.capture.folder import Folder
from tfdoctor.recording import PROGRAM, SAMPLES
from tfdoctor.recording.folders import RUN_FILES, WORKERS, Process, reported
from tfdoctor.recording.manifest import HostMachine, Manifest, MissingPart


def assemble(
    folder: Folder, ended: Manifest, processes: Sequence[Process], names: Mapping[str, str] | None = None
) -> Manifest:
    """Write the recording of an ended run; return its manifest.

    ``names`` are those of code that is in no file, by its recorded path: of a notebook's cells.
    Where processes go on in the background, all files stay where these write, and are read there.

    Raises:
        OSError: it cannot be written.
    """
    if ended.background:
        manifest.write(folder.out, ended)
        return ended
    trained = [process for process in processes if process.trained]
    shown = reported(processes, ended.times.pid if ended.times else None)
    for process in trained or filter(None, [shown]):
        sources.tell(process.folder, names)
    if len(trained) > 1:
        done = _several(folder.out, ended, trained)
        manifest.write(folder.out, done)
    else:
        done = manifest.of_process(ended, shown)
        manifest.write(folder.out, done)  # first: a full disk then loses no file
        if shown is not None and folder.shared and folder.worker:
            _move(shown, folder.out, folder.shared, folder.worker.name)
        elif shown is not None:
            _move(shown, folder.out)
    shutil.rmtree(folder.processes, ignore_errors=True)
    return done


def _move(process: Process, out: Path, job: Path | None = None, name: str = "") -> None:
    """Move a process's files into the recording; a worker's trace goes to the run folder of its job."""
    for file in (PROGRAM, *RUN_FILES):
        if (process.folder / file).is_file():
            (process.folder / file).replace(out / file)
    traces = process.traces
    if traces and job:
        traces[0].replace(run_folder(job) / f"{name}.xplane.pb")
    elif traces:
        (process.folder / "plugins").replace(out / "plugins")


def _several(job: Path, ended: Manifest, trained: Sequence[Process]) -> Manifest:
    """Write a recording for each process that trained; return the manifest of the whole run."""
    names: list[str] = []
    for place, process in enumerate(trained):
        name, suffix = process.worker.name, process.folder.name.replace(".", "-")
        name = f"{name}-{suffix}" if name in names else name
        names.append(name)
        out = job / WORKERS / name
        out.mkdir(parents=True)
        worker = replace(process.worker, name=name, place=place)
        done = manifest.of_process(replace(ended, processes=(), worker=worker), process)
        done = replace(done, command=process.state.argv or ended.command)
        manifest.write(out, _with_samples(job, out, process, done))
        _move(process, out, job, name)
    return replace(ended, workers=tuple(names))


def _with_samples(job: Path, out: Path, process: Process, done: Manifest) -> Manifest:
    """Copy the samples to a worker that ran on this machine; to another, note that they are missing."""
    samples = job / SAMPLES
    if not samples.is_file():
        return done
    if process.state.host == os.uname().nodename:
        shutil.copyfile(samples, out / SAMPLES)
        return done
    done = replace(done, host=HostMachine(process.state.host))
    why = "this worker ran on another machine: start tfdoctor there as well"
    return done.lacks(MissingPart.SAMPLES, why)


def run_folder(job: Path) -> Path:
    """Return the run folder for the traces of all workers of a job; the first worker creates it.

    A temporary folder is renamed, which fails if another worker was faster, so that workers that end at the
    same moment use the same folder.
    """
    final = job / "plugins"
    if not final.exists():
        temporary = job / f"plugins.{os.uname().nodename}.{os.getpid()}"
        (temporary / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")).mkdir(parents=True)
        try:
            temporary.rename(final)
        except OSError:  # another worker was first
            shutil.rmtree(temporary)
    return min((final / "profile").iterdir())
