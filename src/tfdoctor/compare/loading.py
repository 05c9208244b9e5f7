"""Opens what is to be compared: recordings and traces, which are diagnosed, and JSON reports of such."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfdoctor.compare.report_data import ReportData
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.errors import InputError
from tfdoctor.recording import Recording
from tfdoctor.recording.typed import Misfit, read
from tfdoctor.report.formats.json import SCHEMA, contract

Examine = Callable[[Recording, str], Diagnosis]
"""Diagnoses a recording under a title."""


def load(path: Path, examine: Examine) -> ReportData:
    """Return the report of a recording, a trace or a file `report.json`.

    Raises:
        InputError: there is none of these, or it is damaged.
    """
    if path.is_file() and path.suffix.lower() in (".json", ".html", ".htm"):
        return of_json(_text(path), path)
    recording = Recording.open(path)
    diagnosis = examine(recording, recording.title(path))
    return of_json(json.dumps(contract(diagnosis)), path)


def applied(report: ReportData, rules: Collection[str]) -> ReportData:
    """Return a report with the results of these rules alone: a stored one may have others."""
    results = tuple(result for result in report.results if result.rule in rules)
    return replace(report, results=results)


def must_differ(paths: Sequence[Path]) -> None:
    """Check that no run is given twice: it would count as two.

    Raises:
        InputError: one is.
    """
    places = [path.resolve() for path in paths]
    twice = next((path for path in places if places.count(path) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is given twice: name different runs.")


def of_json(text: str, path: Path) -> ReportData:
    """Return the report that a text is.

    Raises:
        InputError: it is none, or one of another schema.
    """
    if text.lstrip()[:1] == "<":
        raise InputError(
            f"{path} is an HTML report: name the report.json of the same run (--format json)."
        )
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: name a recording, or its report.json.") from error
    return _typed(content, path)


def _typed(content: Any, path: Path) -> ReportData:  # noqa: ANN401 - JSON
    schema = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(schema, int) or "tfdoctor" not in content or "steps" not in content:
        raise InputError(
            f"{path} is not a report of tfdoctor: name a recording, or its report.json."
        )
    if schema != SCHEMA:
        raise InputError(
            f"{path} has schema {schema}, and this tfdoctor reads schema {SCHEMA}: write the report again from "
            "its recording."
        )
    faults: list[str] = []
    try:
        report = read(ReportData, content, faults)
    except Misfit:
        faults.append("")
    if faults:
        where = faults[0].lstrip(".") or "its fields"
        raise InputError(f"{path} is damaged ({where}): write the report again from its recording.")
    return report


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a report of tfdoctor: it is not UTF-8.") from error
