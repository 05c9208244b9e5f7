"""A recording on disk: the command, its traces, the program that it built, and samples of the machine.

Left of this module is TensorFlow; right of it are only bytes. A TensorBoard log directory, one of
its run folders and a single `*.xplane.pb` are recordings too, which merely carry less.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from tfdoctor.errors import InputError
from tfdoctor.recording import files, workers
from tfdoctor.recording.files import AGENT, MANIFEST, PROGRAM, SAMPLES
from tfdoctor.recording.locate import RecordingFiles
from tfdoctor.recording.manifest import SCHEMA, HostMachine, Manifest, fold
from tfdoctor.recording.notes import Notes
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.recording.samples import MachineSample

__all__ = ["AGENT", "MANIFEST", "PROGRAM", "SAMPLES", "HostMachine", "Manifest", "Recording"]


@dataclass(frozen=True)
class Recording:
    """What there is to read; `notes` says what was passed over or damaged."""

    root: Path | None
    manifest: Manifest | None
    traces: tuple[Path, ...]
    program: ProgramRecord | None
    samples: tuple[MachineSample, ...]
    notes: tuple[str, ...]
    workers: tuple[Path, ...] = ()
    """The recordings of all workers, chief first, when this one is of several; it is the chief's."""
    damage: tuple[str, ...] = ()
    """Those of the notes that say what could not be read."""

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a recording, a log directory, a run folder or a trace file; never write there.

        Raises:
            InputError: nothing there can be read as a recording.
        """
        path = Path(path)
        try:
            found = workers.of(path)
            return cls._of_workers(path, found) if found else cls._open(path)
        except OSError as error:
            raise InputError(
                f"{error.filename or path} cannot be read ({error.strerror}): check it and its permissions."
            ) from error

    @classmethod
    def _of_workers(cls, path: Path, found: tuple[Path, ...]) -> Self:
        """Open the chief's recording in the name of all; if it cannot be read, the next one's."""
        chief = cls._first(found)
        notes = (*chief.notes, workers.note(path, found)) if len(found) > 1 else chief.notes
        return replace(chief, root=path, notes=notes, workers=found)

    @classmethod
    def _first(cls, found: tuple[Path, ...]) -> Self:
        for path in found[:-1]:
            try:
                return cls.open(path)
            except InputError:
                continue  # the report of all says what is wrong with this one
        return cls.open(found[-1])

    @classmethod
    def _open(cls, path: Path) -> Self:
        notes = Notes()
        place = RecordingFiles.find(path, notes)
        files.refuse_strangers(place.traces)
        manifest = _manifest(place, notes)
        program = files.program(place.program, notes) if place.program else None
        samples = files.samples(place.samples, notes) if place.samples else ()
        return cls(
            place.root,
            manifest,
            place.traces,
            program,
            samples,
            tuple(notes.texts),
            damage=tuple(notes.damage),
        )


def _manifest(place: RecordingFiles, notes: Notes) -> Manifest | None:
    data = files.json_object(place.manifest, notes) if place.manifest else None
    if data is None:
        return None
    faults: list[str] = []
    manifest = Manifest.from_json(data, faults)
    notes.left_out(MANIFEST, faults)
    if place.agent is not None:  # tfdoctor was killed: the agent's own word is all there is
        manifest = fold(manifest, place.agent)
    if manifest.schema > SCHEMA:
        notes.add(
            f"{MANIFEST} was written by a later tfdoctor (schema {manifest.schema}): update tfdoctor"
        )
    if not manifest.finished:
        notes.add("The recording is unfinished: tfdoctor was killed, or is still running")
    return manifest
