"""Writes reports to files."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report import formats
from tfdoctor.terms.errors import OutputError
from tfdoctor.terms.json_form import Json, as_json, number
from tfdoctor.terms.record import Record, rebuilt
from tfdoctor.terms.replacement import replace_file, writing
from tfdoctor.terms.text import uncommanding, uncommanding_json

SCHEMA = 1  # Of comparisons and histories; fields are only ever added

# What jobs print, by the ends of the names of files: no line of it is to command a CI runner.
UNCOMMANDING = {".md": uncommanding, ".json": uncommanding_json, ".sarif": uncommanding_json}


def write(diagnosis: Diagnosis, folder: Path, names: Iterable[str], prefix: str = "") -> tuple[Path, ...]:
    """Write ``<prefix>report.<suffix>`` for each format that is a file and return the paths.

    Where the code of a format fails, the other files are written before its error is raised.

    Raises:
        OutputError: the folder cannot be made or written to.
    """
    texts: dict[str, str] = {}
    failed: list[Exception] = []
    for name in names:
        try:
            if name not in formats.PRINTED:
                texts[f"{prefix}report.{formats.suffix(name)}"] = formats.render(name, diagnosis)
        except Exception as error:  # noqa: BLE001 - it is raised below
            error.add_note(f"The report could not be written as {name}.")
            failed.append(error)
    written = write_texts(folder, texts)
    if failed:
        raise failed[0]
    return written


def plain(report: Record) -> Json:
    """Return a comparison or a history as JSON has it: numbers have nine digits, those that are none are null."""

    def written(value: Json) -> Json:
        if isinstance(value, float):
            return number(value)
        return sorted(value) if isinstance(value, frozenset) else value

    return as_json(rebuilt(report, written))


def contract(kind: str, content: Mapping[str, Json]) -> str:
    """Return a file of JSON in ASCII with sorted keys."""
    whole = {"schema": SCHEMA, "kind": kind, **content}
    return json.dumps(whole, sort_keys=True, indent=2, allow_nan=False) + "\n"


def write_texts(folder: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write files of a folder by their names, none of them where one cannot be a file, and return their paths.

    Raises:
        OutputError: the folder cannot be made or written to, or something else has the name of a file.
    """
    paths = tuple(folder / name for name in texts)
    for path in paths:
        if path.exists() and not path.is_file():
            raise OutputError(f"{path} is not a file: remove it, or choose another folder.")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, texts.values(), strict=True):
            replace_file(path, UNCOMMANDING.get(path.suffix, str)(text))
    return paths
