"""Opens reports that were stored: report.json, or the same compressed with gzip."""

import gzip
import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.recording.files import AGENT, MANIFEST, PROGRAM
from tfdoctor.stored.report import SCHEMA, NoReportError, read
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import content, is_below, unpacked

COMPRESSED = ".json.gz"

# Ends of the names of reports; a page is refused by a sentence that says what to name instead.
SUFFIXES = (".json", COMPRESSED, ".html", ".htm")


def is_report(path: Path) -> bool:
    """Say whether a path is that of a stored report, or of a page, instead of a recording."""
    return path.is_file() and path.name.lower().endswith(SUFFIXES)


NAMES = ("report.json", "report.json.gz")  # Names of the report in a folder of its own
# What is in a folder with a recording, or above several.
RECORDED = (MANIFEST, PROGRAM, AGENT, "*/" + MANIFEST, "*/*/" + MANIFEST, "**/*.xplane.pb")


def report_at(path: Path) -> Path | None:
    """Return the stored report that a path names: itself, or that of a folder without a recording; else None."""
    if is_report(path):
        return path
    files = (path / name for name in NAMES)
    own = [file for file in files if file.is_file() and is_below(file, path)]
    return None if not own or any(next(path.glob(pattern), None) for pattern in RECORDED) else own[0]


def open_report(path: Path, rules: Iterable[Rule]) -> Diagnosis:
    """Return the diagnosis of a stored report; a rule that is not among these can only be named.

    The path may be a link to it.

    Raises:
        InputError: it cannot be read, is no report, or is one of another schema.
    """
    try:
        real = path.resolve()
        data = unpacked(real) if path.name.lower().endswith(COMPRESSED) else content(real)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a report of tfdoctor: it is not UTF-8.") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is damaged: it is no whole gzip file.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    return of_text(text, path, rules)


def of_text(text: str, path: Path, rules: Iterable[Rule] = ()) -> Diagnosis:
    """Return the diagnosis of a report's text.

    Raises:
        InputError: it is none, or one of another schema.
    """
    if text.lstrip()[:1] == "<":
        raise InputError(f"{path} is an HTML report: name the report.json of the same run (--format json).")
    try:
        data: Any = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: name a recording, or its report.json.") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if type(schema) is not int or "tfdoctor" not in data or "steps" not in data:
        raise InputError(f"{path} is not a report of tfdoctor: name a recording, or its report.json.")
    if schema != SCHEMA:
        raise InputError(
            f"{path} has schema {schema}, and this tfdoctor reads schema {SCHEMA}: write the report again from "
            "its recording."
        )
    try:
        return read(data, rules)
    except NoReportError as error:
        raise InputError(f"{path} is damaged ({error}): write the report again from its recording.") from error


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
