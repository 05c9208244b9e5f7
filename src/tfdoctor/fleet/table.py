"""The table of a fleet on disk, and what is examined to fill it.

Each row is added to JSON lines as it comes; Parquet is written in the end.
"""

import fcntl
import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from types import UnionType
from typing import Any, Self, TextIO, get_args, get_origin

import msgspec
import pyarrow as pa
from pyarrow import parquet

from tfdoctor import __version__
from tfdoctor.diagnosis.fleet_report import Failure, FleetRun
from tfdoctor.diagnosis.step import PARTS
from tfdoctor.fleet import cluster
from tfdoctor.fleet.places import FleetPlan, FoundRecording, RecordingJob
from tfdoctor.recording.files import TRACE
from tfdoctor.report.fleet import PAGE
from tfdoctor.rulebook.book import Rulebook
from tfdoctor.rulebook.config import Config
from tfdoctor.scrub import Secrets, Words, users_in
from tfdoctor.terms.errors import OutputError
from tfdoctor.terms.files import is_below
from tfdoctor.terms.replacement import replace_file, replaced, unwritten

ROWS, PARQUET, PAGES = "runs.jsonl", "runs.parquet", "reports"
NAME = 16  # Hexadecimal digits of a digest in the name of a page: two of a million recordings share none
OWN_PAGE = re.compile(rf"[0-9a-f]{{{NAME}}}\.html")
# Failures that another attempt does not change, as long as the files do not change.
FINAL = ("", Failure.UNREADABLE.value)

COMPUTED = ("wasted_devices", "device_hours", "wasted_device_hours")  # Columns that are no fields of a row


def _column(kind: Any) -> pa.DataType:  # noqa: ANN401 - any annotation of a field
    origin, (first, *_) = get_origin(kind), get_args(kind) or (None,)
    if origin is UnionType:
        return _column(first)
    if origin is Mapping:
        return pa.struct(dict.fromkeys(PARTS, pa.float64()))
    if origin is tuple:
        return pa.list_(pa.struct({field.name: _column(field.type) for field in msgspec.structs.fields(first)}))
    return {str: pa.string(), int: pa.int64(), float: pa.float64()}[kind]


# The columns of the Parquet file, dollars last; docs/reference/fleet.md describes them.
COLUMNS = {field.name: _column(field.type) for field in msgspec.structs.fields(FleetRun)}
DOLLARS = {name: COLUMNS.pop(name) for name in ("wasted_usd_per_hour", "wasted_usd")}
SCHEMA = pa.schema({**COLUMNS, **dict.fromkeys(COMPUTED, pa.float64()), **DOLLARS})


class FleetTable:
    """The rows in a folder; use as a context, in which no other command can write there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / ROWS
        self.rows: dict[str, FleetRun] = {}
        self.reports: Collection[str] = ()  # of the rows, once they are finished
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        """Read the rows that are there, cut off a line that was not finished, and lock the table.

        Raises:
            OutputError: the folder cannot be written, or another command writes there.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _must_fit(self.folder)
            self._file = self.path.open("a+", encoding="utf-8", errors="replace")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.__exit__()
            raise OutputError(
                f"Another `tfdoctor fleet` writes to {self.folder}: wait for it, or choose another folder."
            ) from error
        except OSError as error:
            raise OutputError(unwritten(self.folder, error)) from error
        self._file.seek(0)
        text = self._file.read()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            os.truncate(self.path, len(whole.encode()))
        for line in whole.splitlines():
            try:
                run = msgspec.json.decode(line, type=FleetRun)
            except (msgspec.MsgspecError, RecursionError):  # a damaged row: the recording is examined again
                continue
            self.rows[run.key] = run
            for copy in run.copies:
                self.rows[copy.key] = replace(run, place=copy.place, key=copy.key, stamp=copy.stamp, copies=())
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def add(self, run: FleetRun) -> None:
        """Add a row; it is on disk when this returns."""
        self.rows[run.key] = run
        if self._file:
            self._file.write(_line(asdict(run)))
            self._file.flush()

    def add_page(self, run: FleetRun, page: str) -> str:
        """Write the page of a run, and return its path beside the table."""
        path = self.folder / PAGES / f"{run.digest[:NAME]}.html"
        path.parent.mkdir(exist_ok=True)
        replace_file(path, page)
        return f"{PAGES}/{path.name}"

    def finish(self, runs: Sequence[FleetRun]) -> None:
        """Write these rows alone, in the order of their places, as JSON lines and as Parquet."""
        ordered = sorted(runs, key=lambda run: run.place)
        rows = [asdict(run) | {name: getattr(run, name) for name in COMPUTED} for run in ordered]
        with replaced(self.folder / PARQUET) as temporary:
            parquet.write_table(pa.Table.from_pylist(rows, SCHEMA), temporary)
        replace_file(self.path, "".join(map(_line, rows)))
        self.reports = {run.report for run in runs}
        for page in (self.folder / PAGES).glob("*.html"):
            if self.is_old(page.name):
                page.unlink()

    def is_old(self, page: str) -> bool:
        """Say whether a page is of a row that is no longer in the table: it may name whom the table does not."""
        return bool(OWN_PAGE.fullmatch(page)) and f"{PAGES}/{page}" not in self.reports


def _must_fit(folder: Path) -> None:
    """Check before the work that nothing else has the names of what is written in the end."""
    for name in (ROWS, PARQUET, PAGE):
        if (folder / name).exists() and not (folder / name).is_file():
            raise OutputError(f"{folder / name} is not a file: remove it, or choose another folder.")
    for name in (ROWS, PAGES):
        if not is_below(folder / name, folder):
            raise OutputError(f"{folder / name} is a link to another folder: remove it, or choose another folder.")
    if (folder / PAGES).exists() and not (folder / PAGES).is_dir():
        raise OutputError(f"{folder / PAGES} is not a folder: remove it, or choose another folder.")


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, allow_nan=False) + "\n"


def settings_of(config: Config, book: Rulebook, *, scrubbed: bool) -> str:
    """Return the SHA-256 of what rows depend on besides their files: the version, the rules and their settings."""
    files = (file for folder in config.rules for file in sorted(folder.glob("*.py")))
    own = [(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files]
    whole = repr((__version__, [rule.name for rule in book.rules], book.settings, own, scrubbed))
    return hashlib.sha256(whole.encode()).hexdigest()


def _true_rows(table: FleetTable, plan: FleetPlan) -> list[FleetRun]:
    """Return the rows that need not be made again."""
    settled = [run for run in table.rows.values() if run.settings == plan.settings and run.failure in FINAL]

    def has_page(run: FleetRun) -> bool:
        return bool(run.report) and (not plan.local or (table.folder / run.report).is_file())

    return [run for run in settled if run.failure or not plan.pages or has_page(run)]


def to_examine(found: Sequence[FoundRecording], table: FleetTable, plan: FleetPlan) -> tuple[RecordingJob, ...]:
    """Return a job for each recording without a row that is still true."""
    current = _true_rows(table, plan)
    unchanged = {(run.key, run.stamp) for run in current if run.stamp}
    sizes: dict[int, dict[str, None]] = defaultdict(dict)
    for run in current:
        sizes[run.nbytes][run.digest] = None
    return tuple(
        RecordingJob(found=one, plan=plan, known=tuple(sizes.get(one.nbytes, ())))
        for one in found
        if (one.key, one.stamp) not in unchanged
    )


def examine(
    jobs: Sequence[RecordingJob], table: FleetTable, plan: FleetPlan, tell: cluster.Tell
) -> Iterator[FleetRun]:
    """Examine recordings; yield each row when it is in the table. ``tell`` shows what a cluster waits for.

    Raises:
        InputError: there is no scheduler, its workers lack tfdoctor, or it is gone.
    """
    if not jobs:
        return
    rows = {run.digest: run for run in _true_rows(table, plan)}
    places = {job.found.key: job.found for job in jobs}
    for one in cluster.examined(jobs, plan, tell):
        run = one.run
        if one.known:  # the row of the same files, at their new place
            same = rows[run.digest]
            error = same.error.replace(same.place, run.place)
            run = replace(same, place=run.place, key=run.key, stamp=run.stamp, error=error, copies=())
        elif one.page:
            run = replace(run, report=table.add_page(run, one.page))
        run = _scrubbed(run, places[run.key]) if plan.scrubbed else run
        table.add(run)
        yield run


def _scrubbed(run: FleetRun, found: FoundRecording) -> FleetRun:
    """Return a row whose place, error and script name nobody and no machine: a trace has the name of its host."""
    files = [PurePosixPath(found.place, file).name for file in found.files]
    hosts = [*(name.removesuffix(TRACE) for name in files if name.endswith(TRACE)), run.host]
    users = [*users_in(found.place), run.user]
    secrets = Secrets(users=tuple(filter(None, users)), hosts=tuple(filter(None, hosts)))
    words = Words(secrets.identifying(), frozenset())
    script = "/".join(map(words.as_name, run.script.split("/")))
    return replace(run, place=words(run.place), error=words(run.error), script=script, user="", host="")


def rows_of(found: Sequence[FoundRecording], table: FleetTable, plan: FleetPlan) -> tuple[list[FleetRun], int]:
    """Return the rows of the recordings that were found, and how many have none that is still true."""
    known = [(table.rows.get(one.key), one.stamp) for one in found]
    rows = [run for run, stamp in known if run and (run.stamp, run.settings) == (stamp, plan.settings)]
    return rows, len(found) - len(rows)
