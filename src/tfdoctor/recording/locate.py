"""Locates the files of a recording: in its folder, or in those of the processes that wrote them."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Self

from tfdoctor.recording import processes, workers
from tfdoctor.recording.agent import AgentState
from tfdoctor.recording.collection import runs
from tfdoctor.recording.files import AGENT, MANIFEST, PROGRAM, RUNS, SAMPLES, agent_state, json_object, traces
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.notes import Notes
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import is_below
from tfdoctor.terms.record import Record


class RecordingFiles(Record):
    """The files to read; a recording that tfdoctor did not make has only traces."""

    traces: tuple[Path, ...]
    root: Path | None = None
    manifest: Path | None = None
    program: Path | None = None
    samples: Path | None = None
    agent: AgentState | None = None  # The agent's state that is not in the manifest because tfdoctor was killed
    process: Path | None = None  # The folder with what the process did in its whole life

    @classmethod
    def find(cls, path: Path, notes: Notes) -> Self:
        """Find the files at a path.

        Raises:
            InputError: the path does not exist, or has no trace.
        """
        if not path.exists():
            raise InputError(f"There is nothing at {path}: check the path.")
        if path.is_file():
            return cls((path.resolve(),))  # the user may name a link
        run = _run_of(path)
        if run is not None:
            return cls._of_process(path, run, notes)
        recorded = processes.read(path)
        unfinished = processes.reported(recorded, _started(path)) if recorded else None
        if unfinished and (unfinished.trained or unfinished.account_bytes):
            _note_others(recorded, notes)
            return cls._of_process(path, path, notes, unfinished)
        return cls._of_folder(path, notes, unfinished.state if unfinished else None)

    def below(self, path: Path, notes: Notes) -> Self:
        """Return the files without traces to which links lead that leave the recording; a note names them."""
        if path.is_file():  # the trace that the user has named
            return self
        folder = whole(path)
        inside = tuple(trace for trace in self.traces if is_below(trace, folder))
        for trace in self.traces:
            if trace not in inside:
                notes.damaged(
                    f"{trace} was left out: a link leads from there out of the recording; copy the trace there"
                )
        return replace(self, traces=inside)

    @classmethod
    def _of_folder(cls, path: Path, notes: Notes, agent: AgentState | None) -> Self:
        located = traces(path) or _newest_run(path, notes)
        has_manifest = (path / MANIFEST).is_file()
        if has_manifest and not located and workers.is_one(path):
            located = workers.traces(path)
        if not located and not has_manifest:
            raise InputError(
                f"No trace under {path}: expected plugins/profile/<run>/<host>.xplane.pb; "
                "record one with `tfdoctor profile`."
            )
        if not has_manifest:
            if (path / PROGRAM).is_file():
                notes.damaged(
                    f"{MANIFEST} is missing: the command, the machine and the steps are read from the trace alone"
                )
            samples = path / SAMPLES  # a sampler may run beside the profiler of any framework
            return cls(located, samples=samples if samples.is_file() else None)
        if agent is None and (path / AGENT).is_file():
            agent = agent_state(path / AGENT, notes)
        return cls(located, path, path / MANIFEST, path / PROGRAM, path / SAMPLES, agent, path)

    @classmethod
    def _of_process(cls, path: Path, run: Path, notes: Notes, process: processes.Process | None = None) -> Self:
        """Find the files of a process in the unfinished recording of its run."""
        agent = process.state if process else agent_state(path / AGENT, notes)
        process = process or processes.Process(path, agent or AgentState())
        manifest = _manifest(run)
        assembled = path == run and manifest.finished and not manifest.background
        return cls(
            process.traces or _traces(path),
            path,
            run / MANIFEST,
            process.program if process.program.is_file() else path / PROGRAM,
            run / SAMPLES,
            None if assembled else agent,  # it may be as far as the disk had room for it
            process.folder if process.account_bytes else path,
        )


def whole(path: Path) -> Path:
    """Return the folder that everything of a recording lies in: of a process or a worker, that of the run."""
    path = path.absolute()
    inner = path.parent.name in (processes.PROCESSES, workers.WORKERS)
    return path.parent.parent if inner else path


def _run_of(path: Path) -> Path | None:
    """Return the recording that contains this process's folder; None if the path is another."""
    path = path.absolute()
    run = path.parent.parent
    is_process = path.parent.name == processes.PROCESSES and (path / AGENT).is_file()
    return run if is_process and (run / MANIFEST).is_file() else None


def _started(path: Path) -> int | None:
    """Return the number of the process that tfdoctor started; None is unknown, or another one went on for it."""
    manifest = _manifest(path)
    return manifest.times.pid if manifest.times and not manifest.background else None


def _manifest(path: Path) -> Manifest:
    """Return the manifest of a recording, without what could not be read of it."""
    file = path / MANIFEST
    return Manifest.from_json(json_object(file, Notes()) if file.is_file() else {})


def _traces(path: Path) -> tuple[Path, ...]:
    """Return the traces that lie in a recording's own folder."""
    return tuple(trace for run in sorted(path.glob(RUNS)) for trace in traces(run))


def _note_others(recorded: tuple[processes.Process, ...], notes: Notes) -> None:
    trained = [process.folder for process in recorded if process.trained]
    if len(trained) > 1:
        notes.add(
            f"{len(trained)} processes trained and {trained[0].name} is shown; to report on another: "
            f"`tfdoctor report {shlex.quote(str(trained[1]))}`"
        )


def _newest_run(path: Path, notes: Notes) -> tuple[Path, ...]:
    ordered = runs(path)
    if not ordered:
        return ()
    if len(ordered) > 1:
        notes.add(f"{len(ordered)} runs found: the newest, {ordered[-1].name}, is shown")
    return traces(ordered[-1])
