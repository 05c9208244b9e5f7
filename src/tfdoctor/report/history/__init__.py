"""Renderings of a history: a page that works offline, JSON, and Markdown for a CI job's summary."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from tfdoctor.diagnosis.history_report import History
from tfdoctor.report import bundle
from tfdoctor.report.comparison import plain
from tfdoctor.report.files import write_texts
from tfdoctor.report.formats.md import ROWS, escaped, marker, table
from tfdoctor.report.history import words
from tfdoctor.report.history.charts import charts
from tfdoctor.report.template import fill

SCHEMA = 1  # Of histories; fields are only ever added
STEM = "tfdoctor-history-report"  # Of the files: tfdoctor-history.json is the file that users commit


def write(history: History, folder: Path, formats: list[str]) -> tuple[Path, ...]:
    """Write ``tfdoctor-history-report.<format>`` for each format and return the paths.

    Raises:
        OutputError: the folder cannot be made or written to, or something else has the name of a file.
    """
    texts = {folder / f"{STEM}.{one}": render(one, history) for one in formats}
    write_texts(folder, texts)
    return tuple(texts)


def render(file_format: str, history: History) -> str:
    """Return the whole text of a file in one of ``FORMATS``."""
    return FORMATS[file_format](history)


def page(history: History, *, drawn: bool = True) -> str:
    """Return the page; without the code that draws its pictures, it is 0.5 MB smaller to compare."""
    pictures = [charts(one, number) for number, one in enumerate(history.series)]
    return fill(
        "history.html.jinja",
        history=history,
        words=words,
        pictures=pictures,
        plotly=Markup(bundle.plotly() if drawn and any(pictures) else ""),  # noqa: S704 - of an alphabet without "<"
        plotly_hash=bundle.plotly_hash(),
        alphabet=bundle.ALPHABET,
        contract=_json(history).strip(),
    )


def _json(history: History) -> str:
    """Return one object in ASCII with sorted keys: docs/reference/json-history.md describes it."""
    content: dict[str, Any] = {"schema": SCHEMA, "kind": "history", **plain(asdict(history))}
    content["tfdoctor"] = content.pop("version")
    content["failed"] = history.failed
    for series in content["series"]:
        for run in series["runs"]:
            run["checked"] = sorted(run["checked"])
    return json.dumps(content, sort_keys=True, indent=2, allow_nan=False) + "\n"


def _markdown(history: History) -> str:
    """Return the history: of each table the first rows."""
    parts = [f"## tfdoctor: {escaped(words.headline(history))} {marker('history')}"]
    for series in history.series:
        parts += [f"### {escaped(words.title(series))}", escaped(words.about(series))]
        parts += ["\n".join(f"- {escaped(sentence)}" for sentence in words.sentences(series))]
        for title, grid in words.tables(series).items():
            parts += [f"#### {title}", table(grid.first(2 * ROWS))]
    parts += ["\n".join(f"- {escaped(note)}" for note in words.notes(history))]
    return "\n\n".join(filter(None, parts)) + "\n"


FORMATS: Mapping[str, Callable[[History], str]] = MappingProxyType({"html": page, "json": _json, "md": _markdown})
