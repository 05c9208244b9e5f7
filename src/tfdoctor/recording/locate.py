"""Locates a recording below a folder, and its files: in its folder, or in those of the processes that wrote them.

Of a folder above recordings the newest one is opened, and a note says which, and how to open another. Each of
several workers has a recording below `workers`; their traces lie in one run folder.
"""

import re
import shlex
from collections.abc import Iterable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Self

from tfdoctor.recording import files
from tfdoctor.recording.agent import AgentState, WorkerRank
from tfdoctor.recording.files import AGENT, MANIFEST, PROGRAM, RUNS, Notes, manifest_in
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.processes import PROCESSES, WORKERS, Process, read, reported
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import is_below
from tfdoctor.terms.record import Record

# Folders between a log directory and its runs: logs/fit/<time>/plugins/profile/<run>. Recordings lie as deep.
DEPTH = 2
# How profilers name a run folder, by the machine's own time.
RUN = re.compile(r"(\d{4})_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d\d)")
# The manifest of a recording, and those of its workers where it has no other.
MARKS = (MANIFEST, f"{WORKERS}/*/{MANIFEST}")


def newest(path: Path, notes: Notes) -> Path:
    """Return the newest recording below a folder; the path itself if it is a recording, or has none below it.

    A recording precedes runs of TensorBoard, which hold only a part of what it holds.
    """
    found = [] if any(next(path.glob(mark), None) for mark in MARKS) else _recordings(path)
    if not found:
        return path
    alone = [run for run in runs(path) if not set(found) & set(run.parents)]
    if len(found) + len(alone) > 1:
        kinds = f"{len(found)} recording{'' if len(found) == 1 else 's'}"
        kinds += f" and {len(alone)} TensorBoard run{'' if len(alone) == 1 else 's'}" if alone else ""
        shown, later = _last_date(found[-1].glob(RUNS)), _last_date(alone)
        newer = f"; {_within(path, alone[-1])} is newer and is only a trace" if shown and later > shown else ""
        other = (found[:-1] or alone)[-1]
        notes.add(
            f"{kinds} found: the newest recording, {_within(path, found[-1])}, is shown{newer}; "
            f"to see another, name it: {shlex.quote(str(other))}"
        )
    return found[-1]


def _recordings(path: Path) -> list[Path]:
    """Return the recordings below a folder, the newest last; what lies in a recording is a part of it."""

    def made(folder: Path) -> tuple[int, str, str]:  # by the manifest: the times of files do not survive copying
        manifests = [manifest_in(file.parent) for mark in MARKS for file in folder.glob(mark)]
        return max(manifest.recorded_unix_ns for manifest in manifests), folder.name, str(folder)

    patterns = [f"{'*/' * depth}{mark}" for depth in range(1, DEPTH + 1) for mark in MARKS]
    # A damaged manifest hides no good run beside it.
    marked = {
        file.parent for pattern in patterns for file in path.glob(pattern) if files.json_object(file, Notes())
    }
    outer = sorted({one.parent.parent if one.parent.name == WORKERS else one for one in marked}, reverse=True)
    folders = set({folder.resolve(): folder for folder in outer}.values())  # a link is no other
    return sorted((one for one in folders if not folders & set(one.parents)), key=made)


def runs(path: Path) -> list[Path]:
    """Return the run folders of TensorBoard below a folder, the newest last."""
    patterns = [f"{'*/' * depth}{RUNS}" for depth in range(DEPTH + 1)]
    # The path may lie inside a log directory.
    patterns += {"plugins": ["profile/*"], "profile": ["*"]}.get(path.name, [])
    found = {run for pattern in patterns for run in path.glob(pattern) if files.traces(run)}
    # Runs are named by date; unlike the times of files, names survive copying.
    return sorted(found, key=lambda run: (run.name, str(run)))


def _within(path: Path, folder: Path) -> str:
    return folder.relative_to(path).as_posix() if folder.is_relative_to(path) else str(folder)


def _last_date(folders: Iterable[Path]) -> str:
    """Return the name of the newest run, of those that are named by date; "" without."""
    return max((folder.name for folder in folders if RUN.fullmatch(folder.name)), default="")


def workers(path: Path) -> tuple[Path, ...]:
    """Return the recordings of all workers of a run, the chief first; none if it had one process."""

    def order(folder: Path) -> tuple[float, int, str]:
        worker = manifest_in(folder).worker or WorkerRank()
        return inf if worker.rank is None else worker.rank, worker.place or 0, folder.name

    manifests = path.glob(f"{WORKERS}/*/{MANIFEST}")
    return tuple(sorted((one.parent for one in manifests if is_below(one, path)), key=order))


def whole(path: Path, parts: tuple[str, ...] = (PROCESSES, WORKERS)) -> Path:
    """Return the folder that everything of a recording lies in: of a process or a worker, that of the run."""
    path = path.absolute()
    return path.parent.parent if path.parent.name in parts else path


class RecordingFiles(Record):
    """The files to read; a recording that tfdoctor did not make has only traces, and perhaps samples."""

    traces: tuple[Path, ...]
    run: Path  # The folder with the manifest and the samples
    root: Path | None = None  # None: tfdoctor did not make it
    program: Path | None = None
    agent: AgentState | None = None  # The agent's state that is not in the manifest because tfdoctor was killed
    process: Path | None = None  # The folder with what the process did in its whole life

    @classmethod
    def find(cls, path: Path, notes: Notes) -> Self:
        """Find the files at a path.

        Links to traces that leave the recording are left out, and a note names them.

        Raises:
            InputError: the path does not exist, or has no trace.
        """
        if not path.exists():
            raise InputError(f"There is nothing at {path}: check the path.")
        if path.is_file():
            return cls((path.resolve(),), path)  # the user may name a link
        found, inside = cls._in_folder(path, notes), list[Path]()
        for trace in found.traces:
            if is_below(trace, whole(path)):
                inside.append(trace)
            else:
                notes.damaged(
                    f"{trace} was left out: a link leads from there out of the recording; copy the trace there"
                )
        return replace(found, traces=tuple(inside))

    @classmethod
    def _in_folder(cls, path: Path, notes: Notes) -> Self:
        """Find the files of a process, where the recording of its run is unfinished, else those of the folder."""
        run = whole(path, (PROCESSES,))
        if run != path.absolute() and (path / AGENT).is_file() and (run / MANIFEST).is_file():
            agent = files.agent_state(path / AGENT, notes)
            return cls._of_process(path, run, Process(path, agent or AgentState()), agent)
        recorded = read(path)
        manifest = manifest_in(path) if recorded else Manifest()
        # What is in the background went on for the process that tfdoctor started.
        started = manifest.times.pid if manifest.times and not manifest.background else None
        unfinished = reported(recorded, started)
        trained = [process.folder for process in recorded if process.trained]
        if len(trained) > 1:
            notes.add(
                f"{len(trained)} processes trained and {trained[0].name} is shown; to report on another: "
                f"`tfdoctor report {shlex.quote(str(trained[1]))}`"
            )
        if unfinished and (unfinished.trained or unfinished.account_bytes):
            return cls._of_process(path, path, unfinished, unfinished.state)
        return cls._of_folder(path, notes, unfinished.state if unfinished else None)

    @classmethod
    def _of_process(cls, path: Path, run: Path, process: Process, agent: AgentState | None) -> Self:
        manifest, program = manifest_in(run), process.folder / PROGRAM
        assembled = path == run and manifest.finished and not manifest.background
        return cls(
            traces=process.traces or files.own_traces(path),
            run=run,
            root=path,
            program=program if program.is_file() else path / PROGRAM,
            agent=None if assembled else agent,  # it may be as far as the disk had room for it
            process=process.folder if process.account_bytes else path,
        )

    @classmethod
    def _of_folder(cls, path: Path, notes: Notes, agent: AgentState | None) -> Self:
        located, has_manifest, job = files.traces(path), (path / MANIFEST).is_file(), whole(path, (WORKERS,))
        if not located and (ordered := runs(path)):
            located = files.traces(ordered[-1])
            if len(ordered) > 1:
                notes.add(f"{len(ordered)} runs found: the newest, {ordered[-1].name}, is shown")
        if has_manifest and not located and job != path.absolute():
            # A worker's trace lies in the newest run folder with those of the other workers.
            shared = (run / f"{path.absolute().name}.xplane.pb" for run in sorted(job.glob(RUNS)))
            located = tuple(trace for trace in shared if trace.is_file())[-1:]
        if not located and not has_manifest:
            raise InputError(
                f"No trace under {path}: expected plugins/profile/<run>/<host>.xplane.pb; "
                "record one with `tfdoctor profile`."
            )
        if not has_manifest:  # a sampler may run beside the profiler of any framework
            if (path / PROGRAM).is_file():
                notes.damaged(
                    f"{MANIFEST} is missing: the command, the machine and the steps are read from the trace alone"
                )
            return cls(located, path)
        if agent is None and (path / AGENT).is_file():
            agent = files.agent_state(path / AGENT, notes)
        return cls(located, path, path, path / PROGRAM, agent, path)
