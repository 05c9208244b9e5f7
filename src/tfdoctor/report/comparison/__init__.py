"""Renderings of a comparison: files here, the terminal's in its own module, and the words of all in another."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tfdoctor.diagnosis.comparison import RunComparison
from tfdoctor.report.comparison import words
from tfdoctor.report.files import write_texts
from tfdoctor.report.formats.md import ROWS, escaped, marker, table
from tfdoctor.report.template import fill
from tfdoctor.terms.json_form import number

FORMATS = ("html", "json", "md")
SCHEMA = 1  # Of comparisons; fields are only ever added


def render(file_format: str, comparison: RunComparison) -> str:
    """Return the whole text of a file in one of ``FORMATS``."""
    return {"html": _html, "json": _json, "md": _md}[file_format](comparison)


def write(comparison: RunComparison, folder: Path, formats: list[str]) -> tuple[Path, ...]:
    """Write ``tfdoctor-diff.<format>`` for each format and return the paths.

    Raises:
        OutputError: the folder cannot be made or written to, or something else has the name of a file.
    """
    texts = {folder / f"tfdoctor-diff.{one}": render(one, comparison) for one in formats}
    write_texts(folder, texts)
    return tuple(texts)


def _html(comparison: RunComparison) -> str:
    contract = _json(comparison).strip()
    return fill("comparison.html.jinja", comparison=comparison, words=words, contract=contract)


def _json(comparison: RunComparison) -> str:
    """Return one object in ASCII with sorted keys: docs/reference/json-comparison.md describes it."""
    content = {"schema": SCHEMA, "kind": "comparison", **plain(asdict(comparison))}
    content["tfdoctor"] = content.pop("version")
    if step := comparison.step:  # as `tfdoctor try` states it: positive is faster
        content["step"]["saved"] = plain({"share": -step.change, "low": -step.high, "high": -step.low})
    return json.dumps(content, sort_keys=True, indent=2, allow_nan=False) + "\n"


def plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value without numbers that JSON does not have, and with no more digits than mean something."""
    match value:
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case float():
            return number(value)
        case _:
            return value


def _md(comparison: RunComparison) -> str:
    """Return a comment on a pull request, or a CI job's summary: at most some kilobytes."""
    parts = [
        f"## tfdoctor: {escaped(words.headline(comparison))} {marker(f'diff {comparison.after.title}')}",
        escaped(" ".join(words.sides(comparison))),
        "\n".join(f"- {escaped(note)}" for note in words.notes(comparison)),
    ]
    for title, grid in words.tables(comparison):
        parts += [f"### {title}", table(grid.first(2 * ROWS))]
    return "\n\n".join(filter(None, parts)) + "\n"
