"""The file that a team commits: names of baselines, and the changes that it accepted, with who, when and why."""

import json
from dataclasses import asdict, replace
from pathlib import Path

from tfdoctor.diagnosis.history_report import Accepted, NamedBaseline
from tfdoctor.recording.typed import Misfit
from tfdoctor.recording.typed import read as read_typed
from tfdoctor.terms.errors import InputError, OutputError
from tfdoctor.terms.files import content
from tfdoctor.terms.record import Record
from tfdoctor.terms.replacement import replace_file, unwritten

SCHEMA = 1

NAME = "tfdoctor-history.json"  # Of the file, in the current folder


class KeptHistory(Record):
    """What the file holds."""

    schema: int = SCHEMA
    baselines: tuple[NamedBaseline, ...] = ()
    accepted: tuple[Accepted, ...] = ()

    def with_baseline(self, baseline: NamedBaseline) -> "KeptHistory":
        """Return it with a baseline, in place of one of the same name and program."""
        key = (baseline.name, baseline.program)
        others = [one for one in self.baselines if (one.name, one.program) != key]
        return replace(self, baselines=tuple(sorted((*others, baseline))))

    def with_accepted(self, accepted: Accepted) -> "KeptHistory":
        """Return it with an accepted change, in place of the same one."""
        key = (accepted.program, accepted.what, accepted.commit)
        others = [one for one in self.accepted if (one.program, one.what, one.commit) != key]
        return replace(self, accepted=tuple(sorted((*others, accepted))))


def read(path: Path) -> KeptHistory:
    """Return what a file holds; nothing where there is none.

    Raises:
        InputError: it cannot be read, is no such file, or is one of another schema.
    """
    try:
        data = json.loads(content(path))
    except FileNotFoundError:
        return KeptHistory()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: repair it, or name another file.") from error
    if not isinstance(data, dict) or not {"schema", "baselines", "accepted"} <= set(data):
        raise InputError(f"{path} is no file of `tfdoctor history`: name another one.")
    if data["schema"] != SCHEMA:
        raise InputError(
            f"{path} has a schema that this tfdoctor does not read (it reads {SCHEMA}): update tfdoctor."
        )
    faults: list[str] = []
    try:
        found = read_typed(KeptHistory, data, faults)
    except Misfit:
        faults = faults or [""]
        found = KeptHistory()
    if faults:
        where = f" ({faults[0].lstrip('.')})" if faults[0] else ""
        raise InputError(f"{path} is damaged{where}: repair it, or take it from an earlier commit.")
    return found


def write(kept: KeptHistory, path: Path) -> None:
    """Write the file.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        replace_file(path, json.dumps(asdict(kept), indent=2) + "\n", named=True)
    except OSError as error:
        raise OutputError(unwritten(path, error, "choose another file")) from error
