"""The table of a fleet on disk: JSON lines, to which each row is added as it comes, and Parquet in the end."""

import fcntl
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self, TextIO

import pyarrow as pa
from pyarrow import parquet

from tfdoctor.diagnosis import PARTS
from tfdoctor.diagnosis.fleet_report import FleetRun, PricedRun
from tfdoctor.recording.typed import Misfit, read
from tfdoctor.report.fleet import PAGE
from tfdoctor.terms.errors import OutputError
from tfdoctor.terms.files import is_below
from tfdoctor.terms.replacement import replace_file, replaced, unwritten

ROWS, PARQUET, PAGES = "runs.jsonl", "runs.parquet", "reports"

NAME = 16  # Hexadecimal digits of a digest in the name of a page: two of a million recordings share none

TEXT, WHOLE, REAL = pa.string(), pa.int64(), pa.float64()

FINDING = pa.struct(
    {
        **dict.fromkeys(("rule", "severity"), TEXT),
        "share": REAL,
        **dict.fromkeys(("bound", "summary", "at"), TEXT),
        "run_share": REAL,
    }
)

OWN_PAGE = re.compile(rf"[0-9a-f]{{{NAME}}}\.html")

# The columns of the Parquet file; docs/reference/fleet.md describes them.
SCHEMA = pa.schema(
    {
        **dict.fromkeys(("place", "key", "stamp"), TEXT),
        "nbytes": WHOLE,
        **dict.fromkeys(("digest", "settings", "failure", "error", "recorded", "job", "script"), TEXT),
        **dict.fromkeys(("user", "host", "device", "device_name"), TEXT),
        "devices": WHOLE,
        "steps": WHOLE,
        "hours": REAL,
        "step_ms": REAL,
        "parts_ms": pa.struct(dict.fromkeys(PARTS, REAL)),
        "trust": TEXT,
        "missing": TEXT,
        "saving_share": REAL,
        "saving_bound": TEXT,
        "findings": pa.list_(FINDING),
        "report": TEXT,
        "copies": pa.list_(pa.struct(dict.fromkeys(("place", "key", "stamp"), TEXT))),
        "run_hours": REAL,
        "run_saving_share": REAL,
        "run_saving_bound": TEXT,
        **dict.fromkeys(("wasted_devices", "device_hours", "wasted_device_hours"), REAL),
        **dict.fromkeys(("wasted_usd_per_hour", "wasted_usd"), REAL),
    }
)


class FleetTable:
    """The rows in a folder; use as a context, in which no other command can write there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / ROWS
        self.rows: dict[str, FleetRun] = {}
        self.reports: Collection[str] = ()  # of the rows, once they are finished
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        """Read the rows that are there, and lock the table.

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
        self._read(self._file)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def _read(self, file: TextIO) -> None:
        """Read the rows, and cut off a line that was not finished."""
        file.seek(0)
        text = file.read()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            os.truncate(self.path, len(whole.encode()))
        for run in filter(None, map(_run, whole.splitlines())):
            self.rows[run.key] = run
            for copy in run.copies:
                self.rows[copy.key] = replace(run, place=copy.place, key=copy.key, stamp=copy.stamp, copies=())

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

    def finish(self, runs: Sequence[PricedRun], failed: Sequence[FleetRun]) -> None:
        """Write these rows alone, in the order of their places, as JSON lines and as Parquet."""
        rows = [_columns(run) for run in runs]
        rows += [_columns(PricedRun(run=run, job="")) for run in failed]
        rows.sort(key=lambda row: str(row["place"]))
        with replaced(self.folder / PARQUET) as temporary:
            parquet.write_table(pa.Table.from_pylist(rows, SCHEMA), temporary)
        replace_file(self.path, "".join(map(_line, rows)))
        self.reports = {str(row["report"]) for row in rows}
        for page in (self.folder / PAGES).glob("*.html"):
            if self.is_old(page.name):
                page.unlink()

    def is_old(self, page: str) -> bool:
        """Say whether a page is of a row that is no longer in the table: it may name whom the table does not."""
        return bool(OWN_PAGE.fullmatch(page)) and f"{PAGES}/{page}" not in self.reports


def _must_fit(folder: Path) -> None:
    """Check before the work that nothing else has the names of what is written in the end.

    Raises:
        OutputError: something has.
    """
    for name in (ROWS, PARQUET, PAGE):
        if (folder / name).exists() and not (folder / name).is_file():
            raise OutputError(f"{folder / name} is not a file: remove it, or choose another folder.")
    for name in (ROWS, PAGES):
        if not is_below(folder / name, folder):
            raise OutputError(f"{folder / name} is a link to another folder: remove it, or choose another folder.")
    if (folder / PAGES).exists() and not (folder / PAGES).is_dir():
        raise OutputError(f"{folder / PAGES} is not a folder: remove it, or choose another folder.")


def _run(line: str) -> FleetRun | None:
    """Return the row of a line; None where it is damaged: the recording is examined again."""
    faults: list[str] = []
    try:
        content = json.loads(line)
        json.dumps(content, ensure_ascii=False).encode()  # Parquet has no halves of characters
        run = read(FleetRun, content, faults)
    except (ValueError, RecursionError, Misfit):
        return None
    return None if faults else run


def _columns(priced: PricedRun) -> Mapping[str, Any]:
    run = priced.run
    return {
        **asdict(run),
        "parts_ms": dict(run.parts_ms) or None,
        "job": priced.job,
        "wasted_devices": run.wasted_devices,
        "device_hours": run.device_hours,
        "wasted_device_hours": run.wasted_device_hours,
        "wasted_usd_per_hour": priced.usd_per_hour,
        "wasted_usd": priced.usd,
    }


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, allow_nan=False) + "\n"


def known_sizes(rows: Iterable[FleetRun]) -> Mapping[int, tuple[str, ...]]:
    """Return the digests of rows by the size of their files."""
    sizes: dict[int, list[str]] = {}
    for run in rows:
        sizes.setdefault(run.nbytes, []).append(run.digest)
    return {size: tuple(dict.fromkeys(digests)) for size, digests in sizes.items()}
