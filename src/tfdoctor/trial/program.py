"""The program that a trial runs: the recorded command, in its folder and environment."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from tfdoctor import own_python
from tfdoctor.capture.agent.process.masking import MASK
from tfdoctor.capture.plan import Kind
from tfdoctor.recording import Recording
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.record import Record, field
from tfdoctor.trial.originals import Originals


class RecordedProgram(Record):
    """A command and how to start it again."""

    command: tuple[str, ...]
    folder: Path
    kind: Kind
    environment: Mapping[str, str] = field(default_factory=dict)  # of the recording

    @property
    def hidden(self) -> bool:
        """Whether the script must not see what loads the agent."""
        return self.kind is not Kind.COMMAND


def of(recording: Recording) -> RecordedProgram:
    """Return the program of a recording.

    Raises:
        InputError: the recording does not say how to run it again.
    """
    manifest = recording.manifest
    if manifest is None or not manifest.command or manifest.plan is None or not manifest.plan.kind:
        raise InputError(
            "The recording does not say which command to run: try a recording made by `tfdoctor profile`."
        )
    if recording.workers or manifest.worker is not None:
        raise InputError("A job of several workers cannot be tried: try the script of one worker.")
    if any(MASK in word for word in manifest.command):
        raise InputError(
            "The recorded command has hidden values: give the script and its arguments again, "
            "as in `tfdoctor try train.py`."
        )
    folder = Path(manifest.cwd)
    if not folder.is_dir():
        raise InputError(f"The folder of the run, {folder}, does not exist: run it where it is.")
    environment = {name: value for name, value in manifest.environment.items() if MASK not in value}
    return RecordedProgram(manifest.command, folder, _kind(manifest.plan.kind), environment)


def originals(recording: Recording, more: Iterable[Path] = ()) -> Originals:
    """Return the sources of the run, which are as they were recorded, and more files.

    Raises:
        InputError: one is gone, or a source has changed.
    """
    hashes = recording.program.sources if recording.program else {}
    found = Originals.of((*map(Path, hashes), *more))
    for path, expected in hashes.items():
        if hashlib.sha256(found.texts[Path(path)]).hexdigest() != expected:
            raise InputError(f"{path} has changed since the recording: record the run again.")
    return found


def _kind(kind: str) -> Kind:
    try:
        return Kind(kind)
    except ValueError as error:
        raise InputError("The recording is of a running job or a notebook: try a recording of a script.") from error


def variables(program: RecordedProgram, changes: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a run: ours, what was recorded, and what a variant sets."""
    return {"PYTHONHASHSEED": "0", **own_python.users(os.environ), **program.environment, **changes}
