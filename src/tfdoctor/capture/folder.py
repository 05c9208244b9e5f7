"""The folder of a recording: created before the run, its own or a worker's of a job, and arranged after it.

If one process trained, its files become the recording, in the layout that TensorBoard reads too. If several did,
each gets a recording below `workers`, and their traces lie in one run folder, as TensorBoard expects of several
hosts.
"""

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec.json import encode

from tfdoctor.capture import manifest, sources
from tfdoctor.capture.agent.process.rank import rank
from tfdoctor.capture.plan import Plan
from tfdoctor.recording import MANIFEST, PROGRAM, SAMPLES, folders
from tfdoctor.recording.agent import WorkerRank
from tfdoctor.recording.files import Notes
from tfdoctor.recording.folders import PROCESSES, RUN_FILES, WORKERS, Process, reported
from tfdoctor.recording.manifest import HostMachine, Manifest, MissingPart
from tfdoctor.recording.worker_log import WORKER_LOG, Worker
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.terms.errors import NotEmptyError, OutputError
from tfdoctor.terms.record import Record

MOST_LETTERS = 50  # Of a script's name in that of a folder, which has at most 255 bytes
RUN = "%Y_%m_%d_%H_%M_%S"  # The name of a run folder in TensorBoard


class Folder(Record):
    """The recording's folder; `shared` is that of the whole job when this is one worker's."""

    out: Path
    shared: Path | None = None
    worker: WorkerRank | None = None

    @property
    def processes(self) -> Path:
        """Where each Python process of the run writes its files."""
        return self.out / PROCESSES

    def drop(self) -> None:
        """Remove what there is of a recording that never began."""
        (self.out / MANIFEST).unlink(missing_ok=True)
        for path in (self.processes, self.out):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()


def claim(plan: Plan) -> Folder:
    """Create the recording's folder; a recording is never overwritten.

    Raises:
        OutputError: it cannot be written, or something is there already.
        InputError: it belongs at a URL that cannot be read.
    """
    ranks = rank(os.environ) if plan.out else None
    worker = WorkerRank(**ranks) if ranks else None
    out = plan.out or Path("runs")
    own = out / WORKERS / worker.name if worker else out
    UPLOADS.must_lack(own / MANIFEST)
    try:
        if plan.out is None:
            out = own = new_run(plan.name)
        elif worker:  # the others create theirs at the same moment
            if out.exists() and not out.is_dir():
                raise OutputError(f"{out} is a file: choose another folder.")
            must_be_empty(own)
            if (out / MANIFEST).exists():
                must_be_empty(out)
        else:
            must_be_empty(out)
        own.mkdir(parents=True, exist_ok=True)
        folder = Folder(own.resolve(), out.resolve() if worker else None, worker)
        folder.processes.mkdir()
        probe = folder.processes / "probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        # The parent folders were created, so nothing is missing: the file system refuses new folders.
        refused = isinstance(error, FileNotFoundError)
        why = "a folder cannot be created there" if refused else error.strerror
        raise OutputError(f"{out} cannot be written ({why}): choose another folder.") from error
    return folder


def must_be_empty(out: Path, cure: str = "choose another folder, or remove it first") -> None:
    """Check that nothing is where a recording is to be written.

    Raises:
        NotEmptyError: something is.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise NotEmptyError(f"{out} is not empty: {cure}.")


def new_run(name: str) -> Path:
    """Create a folder for a run below ``runs``, named after the time; of several in one second, each has its own.

    Raises:
        OSError: it cannot be created.
    """
    runs, number = Path("runs"), 1
    runs.mkdir(exist_ok=True)
    named = f"{name[:MOST_LETTERS]}-{time.strftime('%Y%m%d-%H%M%S')}"
    while True:
        folder = runs / (f"{named}-{number}" if number > 1 else named)
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


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
        workers = tuple(_of_worker(folder.out, ended, place, trained, processes) for place in range(len(trained)))
        done = replace(ended, workers=workers)
        manifest.write(folder.out, done)
    else:
        done = manifest.of_process(ended, shown)
        manifest.write(folder.out, done)  # first: a full disk then loses no file
        _tell_parts(folder.out, folders.parts(processes, Notes()))
        if shown is not None:
            _move(shown, folder.out, folder.shared if folder.worker else None, folder.worker)
    shutil.rmtree(folder.processes, ignore_errors=True)
    return done


def _move(process: Process, out: Path, job: Path | None, worker: WorkerRank | None) -> None:
    """Move a process's files into the recording; a worker's trace goes to the run folder of its job."""
    for file in (PROGRAM, *RUN_FILES):
        if (process.folder / file).is_file():
            (process.folder / file).replace(out / file)
    traces = process.traces
    if traces and job and worker:
        traces[0].replace(run_folder(job) / f"{worker.name}.xplane.pb")
    elif traces:
        (process.folder / "plugins").replace(out / "plugins")


def _of_worker(
    job: Path, ended: Manifest, place: int, trained: Sequence[Process], processes: Sequence[Process]
) -> str:
    """Write the recording of one of several processes that trained; return its name, which no other has."""
    process, before = trained[place], {other.worker.name for other in trained[:place]}
    name = process.worker.name
    if name in before:
        name = f"{name}-{process.folder.name.replace('.', '-')}"
    out = job / WORKERS / name
    out.mkdir(parents=True)
    worker = replace(process.worker, name=name, place=place)
    done = manifest.of_process(replace(ended, processes=(), worker=worker), process)
    done = replace(done, command=process.state.argv or ended.command)
    if (job / SAMPLES).is_file():
        if process.state.host == os.uname().nodename:
            shutil.copyfile(job / SAMPLES, out / SAMPLES)
        else:
            why = "this worker ran on another machine: start tfdoctor there as well"
            done = replace(done, host=HostMachine(process.state.host)).lacks(MissingPart.SAMPLES, why)
    manifest.write(out, done)
    _tell_parts(out, folders.parts(processes, Notes(), process))
    _move(process, out, job, worker)
    return name


def _tell_parts(out: Path, parts: Sequence[Worker]) -> None:
    """Write what processes did that do a part of the work, if any."""
    if parts:
        (out / WORKER_LOG).write_bytes(b"".join(encode(one) + b"\n" for one in parts))


def run_folder(job: Path) -> Path:
    """Return the run folder for the traces of all workers of a job; the first worker creates it.

    A temporary folder is renamed, which fails if another worker was faster, so that workers that end at the
    same moment use the same folder.
    """
    final = job / "plugins"
    if not final.exists():
        temporary = job / f"plugins.{os.uname().nodename}.{os.getpid()}"
        (temporary / "profile" / time.strftime(RUN)).mkdir(parents=True)
        try:
            temporary.rename(final)
        except OSError:  # another worker was first
            shutil.rmtree(temporary)
    return min((final / "profile").iterdir())
