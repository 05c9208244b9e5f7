"""A recording on disk: the command, its traces, the program that it built, and samples of the machine.

Capture, which runs TensorFlow, writes recordings; all other packages only read them. A TensorBoard log
directory, one of its run folders and a single `*.xplane.pb` are recordings too, with less data.
"""

import shlex
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Self

from tfdoctor.recording import files
from tfdoctor.recording.files import AGENT, MANIFEST, PROGRAM, SAMPLES, Notes
from tfdoctor.recording.locate import RecordingFiles, newest, workers
from tfdoctor.recording.manifest import HostMachine, Manifest, fold
from tfdoctor.recording.processes import WORKERS
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.recording.run_log import RunLog
from tfdoctor.recording.samples import MachineSample
from tfdoctor.terms.errors import InputError
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

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a recording, a folder above several, a log directory, a run folder or a trace file.

        Of several, the newest is opened. Nothing is ever written there.

        Raises:
            InputError: nothing there can be read as a recording.
        """
        notes = Notes()
        try:
            path = newest(Path(path), notes)
            folders = workers(path)
            opened = cls._of_workers(path, folders) if folders else cls._open(path)
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
    def _of_workers(cls, path: Path, folders: tuple[Path, ...]) -> Self:
        """Open the chief's recording for all workers; if it cannot be read, the next worker's."""
        for folder in folders:
            try:
                chief = cls.open(folder)
                break
            except InputError:  # the report on all workers says what is wrong with this one
                if folder == folders[-1]:
                    raise
        several, names = [], [worker.name for worker in folders]
        if len(folders) > 1:
            example, rest = shlex.quote(str(path / WORKERS / names[1])), ", …" if len(names) > NAMED else ""
            note = f"{len(folders)} workers were recorded and are compared; to report on one worker: "
            several.append(f"{note}`tfdoctor report {example}` ({', '.join(names[:NAMED])}{rest})")
        return replace(chief, root=path, notes=(*chief.notes, *several), workers=folders)

    @classmethod
    def _open(cls, path: Path) -> Self:
        notes = Notes()
        located = RecordingFiles.find(path, notes)
        manifest = files.manifest_of(located.run, notes) if located.root else None
        if manifest and located.agent is not None:  # tfdoctor was killed before it could do so
            manifest = fold(manifest, located.agent)
        opened = cls(
            root=located.root,
            manifest=manifest,
            traces=located.traces,
            program=files.program(located.program, notes),
            samples=files.samples(located.run / SAMPLES, notes),
            run=files.run_log(located.process, notes, manifest),
            notes=tuple(notes.texts),
            damage=tuple(notes.damage),
        )
        try:
            files.refuse_foreign(located.traces)
        except InputError as fault:
            return opened.without_traces(fault)
        return opened

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
        names = [trace.name.removesuffix(files.TRACES.removeprefix("*")) for trace in self.traces]
        # The manifest, the program and the samples are of one host: the one of the manifest's name, else the first.
        name = self.manifest.host.name if self.manifest else ""
        described = names.index(name) if name in names else 0
        alone = [Recording(None, None, (trace,), None, (), ()) for trace in self.traces]
        alone[described] = replace(self, traces=(self.traces[described],))
        return tuple(zip(names, alone, strict=True))


def _opened(folder: Path) -> Recording | InputError:
    try:
        return Recording.open(folder)
    except InputError as fault:
        return fault
