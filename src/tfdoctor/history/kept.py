"""The file that a team commits: names of baselines, and the changes that it accepted, with who, when and why."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from tfdoctor.diagnosis.history_report import Accepted, NamedBaseline, Series
from tfdoctor.history.runs import ReadRun
from tfdoctor.recording.typed import Misfit
from tfdoctor.recording.typed import read as read_typed
from tfdoctor.rulebook.values import hint
from tfdoctor.terms.errors import InputError, OutputError
from tfdoctor.terms.files import content
from tfdoctor.terms.record import Record
from tfdoctor.terms.replacement import replace_file, unwritten

SCHEMA = 1
NAME = "tfdoctor-history.json"  # Of the file, in the current folder
UNTRACED, SHOWN = "median step outside of the traced ones", "step of the report"  # What the step of a run is
T = TypeVar("T")


class KeptHistory(Record):
    """What the file holds."""

    schema: int = SCHEMA
    baselines: tuple[NamedBaseline, ...] = ()
    accepted: tuple[Accepted, ...] = ()

    def with_baseline(self, baseline: NamedBaseline) -> "KeptHistory":
        """Return it with a baseline, in place of one of the same name and program."""
        return replace(self, baselines=_with(self.baselines, baseline, attrgetter("name", "program")))

    def with_accepted(self, accepted: Accepted) -> "KeptHistory":
        """Return it with an accepted change, in place of the same one."""
        return replace(self, accepted=_with(self.accepted, accepted, attrgetter("program", "what", "commit")))


def _with(entries: tuple[T, ...], new: T, key: Callable[[T], tuple[str, ...]]) -> tuple[T, ...]:
    """Return entries in the order of their keys, with a new one in place of that with the same key."""
    return tuple(sorted((*(one for one in entries if key(one) != key(new)), new), key=key))


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
        found, faults = KeptHistory(), faults or [""]
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


def of_program(read: Sequence[ReadRun], program: str) -> list[ReadRun]:
    """Return the runs of a program.

    Raises:
        InputError: there is none.
    """
    chosen = [one for one in read if one.program == program]
    if not chosen:
        raise InputError(f"no run of {program!r}: {hint(program, sorted({one.program for one in read}))}")
    return chosen


def named(name: str, run: ReadRun) -> NamedBaseline:
    """Return a run as a baseline of this name."""
    found = run.with_step(run.untraced_ms or run.shown_ms)
    return NamedBaseline(
        name=name,
        program=run.program,
        commit=found.commit,
        recorded=found.recorded,
        step=UNTRACED if run.untraced_ms else SHOWN,
        values={metric.value: value for metric, value in found.values.items()},
    )


def accepted(what: str, commit: str, shown: Sequence[Series], *, by: str, why: str) -> Accepted:
    """Return an accepted change, by the whole hash of its commit, which is that of a run.

    Raises:
        InputError: no run or several commits begin so, or no run of the commit has the metric or the finding.
    """
    if not any(run.commit for one in shown for run in one.runs):
        raise InputError(
            "no run has a commit, at which a change could be accepted: record the program in its git repository."
        )
    runs = [(one.program, run) for one in shown for run in one.runs if run.commit.startswith(commit)]
    commits = sorted({run.commit for _, run in runs if commit})
    if not commits:
        raise InputError(f"no run is of commit {commit!r}: `tfdoctor history` lists the commits.")
    if len(commits) > 1:
        raise InputError(f"{len(commits)} commits begin with {commit!r}: write more of it.")
    programs = sorted({program for program, _ in runs})
    if len(programs) > 1:
        raise InputError(f"commit {commit!r} has runs of {' and '.join(programs)}: choose one with --program.")
    known = {name for _, run in runs for name in (*(metric.value for metric in run.values), *run.findings)}
    if what not in known:
        raise InputError(f"no run of commit {commit!r} has {what!r}: {hint(what, sorted(known))}")
    return Accepted(programs[0], what, commits[0], by, datetime.now(UTC).date().isoformat(), why)
