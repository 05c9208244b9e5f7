"""A recording on disk: the command, its traces, the program that it built, and samples of the machine.

Capture, which runs TensorFlow, writes recordings; all other packages only read them. A TensorBoard log
directory, one of its run folders and a single `*.xplane.pb` are recordings too, with less data.
"""

import shlex
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Self

from tfdoctor.recording import files, folders
from tfdoctor.recording.agent import AgentState
from tfdoctor.recording.files import AGENT, MANIFEST, PROGRAM, RUNS, SAMPLES, Notes, manifest_in
from tfdoctor.recording.folders import PROCESSES, WORKERS, Process, whole
from tfdoctor.recording.manifest import HostMachine, Manifest
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.recording.run_log import RUN_LOG, RunLog
from tfdoctor.recording.samples import MachineSample
from tfdoctor.recording.worker_log import Worker
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import is_below
from tfdoctor.terms.record import Record

__all__ = ["AGENT", "MANIFEST", "PROGRAM", "SAMPLES", "HostMachine", "Manifest", "Recording"]

NAMED = 8  # How many workers a note names; the report lists all


class Recording(Record):
    """The data of a recording; `notes` says what was skipped or damaged."""

    root: Path | None
    manifest: Manifest | None
    traces: tuple[Path, ...]
    program: ProgramRecord | None
    samples: tuple[MachineSample, ...]
    notes: tuple[str, ...]
    # The recordings of all workers, chief first, if there are several; this recording is then the chief's.
    workers: tuple[Path, ...] = ()
    damage: tuple[str, ...] = ()  # The notes that say what could not be read
    # What the process that is shown did in its whole life; None where that was not recorded.
    run: RunLog | None = None
    parts: tuple[Worker, ...] = ()  # what processes did that do a part of its work

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a recording, a folder above several, a log directory, a run folder or a trace file.

        Of several, the newest is opened. Nothing is ever written there.

        Raises:
            InputError: nothing there can be read as a recording.
        """
        notes = Notes()
        try:
            path = folders.newest(Path(path), notes)
            several = folders.workers(path)
            opened = cls._of_workers(path, several) if several else cls._open(path)
            return replace(opened, notes=(*notes.texts, *opened.notes))
        except OSError as error:
            raise InputError(
                f"{error.filename or path} cannot be read ({error.strerror}): check it and its permissions."
            ) from error

    @property
    def invocation(self) -> str:
        """The script with its arguments, or the module, by which a report is called; "" where neither is known."""
        plan, command = (self.manifest.plan, self.manifest.command) if self.manifest else (None, ())
        if plan is None or plan.kind not in {"script", "module"}:
            return ""
        at = command.index(plan.script) + 1 if plan.script in command else len(command)
        return shlex.join((PurePath(plan.script).name, *command[at:]))

    def title(self, path: Path) -> str:
        """Return what a report on the recording opened at a path is called: its program, else its folder."""
        return self.invocation or (self.root or path).resolve().name

    @classmethod
    def _of_workers(cls, path: Path, workers: tuple[Path, ...]) -> Self:
        """Open the chief's recording for all workers; if it cannot be read, the next worker's."""
        for folder in workers:
            try:
                chief = cls.open(folder)
                break
            except InputError:  # the report on all workers says what is wrong with this one
                if folder == workers[-1]:
                    raise
        several, names = [], [worker.name for worker in workers]
        if len(workers) > 1:
            example, rest = shlex.quote(str(path / WORKERS / names[1])), ", …" if len(names) > NAMED else ""
            note = f"{len(workers)} workers were recorded and are compared; to report on one worker: "
            several.append(f"{note}`tfdoctor report {example}` ({', '.join(names[:NAMED])}{rest})")
        return replace(chief, root=path, notes=(*chief.notes, *several), workers=workers)

    @classmethod
    def _open(cls, path: Path) -> Self:
        """Open what is at a path itself: a trace, a recording, or a process of one that is not assembled."""
        notes, run = Notes(), whole(path, (PROCESSES,))
        if not path.exists():
            raise InputError(f"There is nothing at {path}: check the path.")
        if path.is_file():
            return cls._read(notes, (path.resolve(),), path)  # the user may name a link
        if run != path.absolute() and (path / AGENT).is_file() and (run / MANIFEST).is_file():
            agent = files.agent_state(path / AGENT, notes)
            return cls._of_process(path, run, Process(path, agent or AgentState()), agent, notes)
        recorded = folders.processes(path)
        manifest = manifest_in(path) if recorded else Manifest()
        # What is in the background went on for the process that tfdoctor started.
        started = manifest.times.pid if manifest.times and not manifest.background else None
        process = folders.reported(recorded, started)
        trained = [one.folder for one in recorded if one.trained]
        if len(trained) > 1:
            notes.add(
                f"{len(trained)} processes trained and {trained[0].name} is shown; to report on another: "
                f"`tfdoctor report {shlex.quote(str(trained[1]))}`"
            )
        if process and (process.trained or process.account_bytes):
            return cls._of_process(path, path, process, process.state, notes)
        return cls._of_folder(path, process.state if process else None, notes)

    @classmethod
    def _of_process(cls, path: Path, run: Path, process: Process, agent: AgentState | None, notes: Notes) -> Self:
        manifest = manifest_in(run)
        if path == run and manifest.finished and not manifest.background:
            agent = None  # it is in the manifest, and the files are where the disk had room for them
        traces = _within(path, process.traces or files.own_traces(path), notes)
        return cls._read(notes, traces, run, path, agent, process.folder)

    @classmethod
    def _of_folder(cls, path: Path, agent: AgentState | None, notes: Notes) -> Self:
        traces, has_manifest, job = files.traces(path), (path / MANIFEST).is_file(), whole(path, (WORKERS,))
        if not traces and (ordered := folders.runs(path)):
            traces = files.traces(ordered[-1])
            if len(ordered) > 1:
                notes.add(f"{len(ordered)} runs found: the newest, {ordered[-1].name}, is shown")
        if has_manifest and not traces and job != path.absolute():
            # A worker's trace lies in the newest run folder with those of the other workers.
            shared = (run / f"{path.absolute().name}{files.TRACE}" for run in sorted(job.glob(RUNS)))
            traces = tuple(trace for trace in shared if trace.is_file())[-1:]
        if not traces and not has_manifest:
            raise InputError(
                f"No trace under {path}: expected plugins/profile/<run>/<host>.xplane.pb; "
                "record one with `tfdoctor profile`."
            )
        if not has_manifest and (path / PROGRAM).is_file():
            notes.damaged(
                f"{MANIFEST} is missing: the command, the machine and the steps are read from the trace alone"
            )
        if has_manifest and agent is None and (path / AGENT).is_file():
            agent = files.agent_state(path / AGENT, notes)
        traces = _within(path, traces, notes)
        if not has_manifest:
            return cls._read(notes, traces, path)
        return cls._read(notes, traces, path, path, agent, path)

    @classmethod
    def _read(
        cls, notes: Notes, traces: tuple[Path, ...], run: Path, root: Path | None = None,
        agent: AgentState | None = None, process: Path | None = None,
    ) -> Self:  # fmt: skip
        """Read the files of a run, and those of a process where they are not assembled in the root.

        Without a root, tfdoctor did not make the recording: there are samples at most, as a sampler may run beside
        the profiler of any framework. The agent's state is none where the manifest has it.
        """
        manifest = files.manifest_of(run, notes) if root else None
        if manifest and agent:  # tfdoctor was killed before it could do so
            manifest = files.fold(manifest, agent)

        def folder_of(file: str) -> Path | None:
            return next((one for one in (process, root) if one and (one / file).is_file()), None)

        program, account = folder_of(PROGRAM), folder_of(RUN_LOG)
        opened = cls(
            root=root,
            manifest=manifest,
            traces=traces,
            program=files.program(program / PROGRAM, notes) if program else None,
            samples=files.samples(run / SAMPLES, notes),
            parts=_parts(root, run, notes) if root else (),
            run=files.run_log(account, notes, manifest) if account else None,
            notes=tuple(notes.texts),
            damage=tuple(notes.damage),
        )
        fault = files.foreign(traces)
        return opened.without_traces(fault) if fault else opened

    def without_traces(self, fault: InputError) -> Self:
        """Return the account of the run alone, where a full disk has left no whole trace.

        Raises:
            InputError: there is no account either; it is the fault of the trace.
        """
        if self.run is None or not self.traces:
            raise fault
        note = f"{self.traces[0].name} is damaged, so the report has no traced steps"
        return replace(self, traces=(), notes=(*self.notes, note), damage=(*self.damage, note))

    def hosts(self) -> tuple[tuple[str, "Recording | InputError"], ...]:
        """Return the hosts of the job (or workers: several may share a machine), the chief first; at least one.

        Each has its name, and its own recording: trace, manifest and samples; or the error from reading that.
        """
        if len(self.workers) > 1:
            return tuple((folder.name, _opened(folder)) for folder in self.workers)
        if len(self.traces) <= 1:
            return (("", self),)
        names = [trace.name.removesuffix(files.TRACE) for trace in self.traces]
        # The manifest, the program and the samples are of one host: the one of the manifest's name, else the first.
        name = self.manifest.host.name if self.manifest else ""
        described = names.index(name) if name in names else 0
        alone = [Recording(None, None, (trace,), None, (), ()) for trace in self.traces]
        alone[described] = replace(self, traces=(self.traces[described],))
        return tuple(zip(names, alone, strict=True))


def _parts(root: Path, run: Path, notes: Notes) -> tuple[Worker, ...]:
    """Return what workers did, where their files were not assembled: as they lie."""
    assembled = files.workers(root, notes)
    return folders.parts(folders.processes(run), notes) if assembled is None else assembled


def _opened(folder: Path) -> Recording | InputError:
    try:
        return Recording.open(folder)
    except InputError as fault:
        return fault


def _within(path: Path, traces: tuple[Path, ...], notes: Notes) -> tuple[Path, ...]:
    """Return the traces of a recording without links that leave it, which a note names."""
    inside = tuple(trace for trace in traces if is_below(trace, whole(path)))
    for trace in traces:
        if trace not in inside:
            notes.damaged(
                f"{trace} was left out: a link leads from there out of the recording; copy the trace there"
            )
    return inside
