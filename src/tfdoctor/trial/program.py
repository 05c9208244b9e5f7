"""The program that a trial runs, in its folder and environment; its files as they are; and variants of it."""

import hashlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, count
from pathlib import Path

from tfdoctor import own_python
from tfdoctor.capture.agent.process.masking import MASK, masked
from tfdoctor.capture.plan import Kind
from tfdoctor.diagnosis import Diagnosis, RunSaving, Saving
from tfdoctor.facts.run_work.run_parts import RunPart
from tfdoctor.recording import Recording
from tfdoctor.source_code.splice import Splice
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.record import Record, field

Texts = Mapping[Path, bytes]  # Of files, as they were when the trial began


def texts_of(paths: Iterable[Path]) -> Texts:
    """Read files.

    Raises:
        InputError: one cannot be read.
    """
    texts = {}
    for path in paths:
        try:
            texts[path] = path.read_bytes()
        except OSError as error:
            why = f"{path} cannot be read ({error.strerror})"
            raise InputError(f"{why}: run the trial where the source is.") from error
    return texts


def must_be_unchanged(texts: Texts) -> None:
    """Check that files are as they were: runs as it is would otherwise see another text than variants.

    Raises:
        InputError: one has changed, or is gone.
    """
    for path, text in texts.items():
        if not path.is_file() or path.read_bytes() != text:
            raise InputError(
                f"{path} changed while the trial ran, so nothing is claimed: "
                "try the program again, and leave its files unchanged meanwhile."
            )


class RecordedProgram(Record):
    """A command and how to start it again."""

    command: tuple[str, ...]
    folder: Path
    kind: Kind
    environment: Mapping[str, str] = field(default_factory=dict)  # of the recording


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
    if manifest.plan.kind not in set(Kind):
        raise InputError("The recording is of a running job or a notebook: try a recording of a script.")
    environment = {name: value for name, value in manifest.environment.items() if MASK not in value}
    return RecordedProgram(manifest.command, folder, Kind(manifest.plan.kind), environment)


def originals(recording: Recording, more: Iterable[Path] = ()) -> Texts:
    """Return the sources of the run, which are as they were recorded, and more files.

    Raises:
        InputError: one is gone, or a source has changed.
    """
    hashes = recording.program.sources if recording.program else {}
    found = texts_of((*map(Path, hashes), *more))
    for path, expected in hashes.items():
        if hashlib.sha256(found[Path(path)]).hexdigest() != expected:
            raise InputError(f"{path} has changed since the recording: record the run again.")
    return found


def variables(program: RecordedProgram, changes: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a run: ours, what was recorded, and what a variant sets."""
    return {"PYTHONHASHSEED": "0", **own_python.users(os.environ), **program.environment, **changes}


# Parts of a step on a CPU in which the program computes; in others it may wait.
COMPUTE = ("host", "device", "transfer")
# Share of the step from which a wait counts, and share of the cores from which it is for computation.
WAITS, BUSY = 0.05, 0.7


def bytes_beside_others(diagnosis: Diagnosis) -> float | None:
    """Return the memory of a run that may take turns with others, as far as it is known.

    None on an accelerator, as TensorFlow takes all of its memory; and where steps wait while cores are idle, as
    what a program waits for outside of it goes on while it is stopped.
    """
    steps, conditions = diagnosis.steps, diagnosis.conditions
    computes = sum(steps.shown_breakdown_ms.get(part, 0.0) for part in COMPUTE)
    cores, used = conditions.cores_usable, conditions.cores_run
    busy = cores and used and used >= BUSY * cores
    waits_outside = not busy and computes <= (1 - WAITS) * (steps.shown_ms or 0.0)
    return None if diagnosis.subject.device is not DeviceKind.CPU or waits_outside else conditions.host_bytes


AS_IS = "as it is"

FEWEST_HIDDEN = 4  # Characters of a credential that is looked for in what a program prints


class Variant(Record):
    """A change of the program: other texts of files, environment variables, or settings that the agent makes."""

    name: str
    files: Mapping[Path, bytes] = field(default_factory=dict)  # by absolute path with links resolved
    environment: Mapping[str, str] = field(default_factory=dict)
    runner: Mapping[str, int] = field(default_factory=dict)  # what the agent sets in the program
    action: str = ""  # what it changes, in the words of the report
    rules: tuple[str, ...] = ()  # whose findings it fixes
    promised: Saving | None = None
    promised_run: RunSaving | None = None
    patched: bool = False  # its texts are those of a patch of the user's
    exact: bool = False  # the weights must be the same as without it
    reorders: bool = False  # but for the order in which it draws random numbers
    model: str = ""  # how it changes what is trained, as a clause
    may_keep: bool = True  # it may be among the changes that are kept
    examples: Fraction = Fraction(1)  # of a step, for each one of the program as it is
    splices: tuple[tuple[str, tuple[Splice, ...]], ...] = ()  # by file: changes that no finding's edit makes
    parts: tuple[str, ...] = ()  # the names of the variants that it makes at once
    without: RunPart | None = None  # the part of the program that the agent takes out
    share: float | None = None  # of that part in what recurs in the run

    @property
    def edited(self) -> bool:
        """Whether its texts are made by the edits of findings, which can be made together."""
        return bool(self.rules) and not self.patched and not self.splices

    @property
    def expected(self) -> float | None:
        """The share of the run that the report expects it to save, or of the step; None where it has no figure."""
        promises = (self.promised_run, self.promised)
        return next((one.share for one in promises if one and math.isfinite(one.share)), None)

    @property
    def credentials(self) -> list[str]:
        """The values of its variables that are not to be shown; of the shortest, every text would have some."""
        pairs = [(f"{name}={value}", value) for name, value in self.environment.items()]
        return [value for pair, value in pairs if len(value) >= FEWEST_HIDDEN and masked([pair]) != [pair]]


ORIGINAL = Variant(AS_IS)


class NotTried(Record):
    """A change that is no variant, and why."""

    name: str
    why: str


def distinct(variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants without those that change the same as one before, each with a name of its own."""
    kept: list[Variant] = []
    changes = []
    for variant in variants:
        change = variant.files, variant.environment, variant.runner
        if change not in changes:
            changes.append(change)
            taken = {other.name for other in kept}  # results are kept by name
            numbered = (f"{variant.name} ({number})" for number in count(2))
            names = chain([variant.name], numbered)
            kept.append(replace(variant, name=next(name for name in names if name not in taken)))
    return kept
