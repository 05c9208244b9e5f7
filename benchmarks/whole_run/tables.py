"""The results on whole programs as Markdown: the figures with their aims, and a row for each pair."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.pages import table

RESULTS = Path(__file__).with_name("results.json")
FIRST = Path(__file__).with_name("first.json")
"""The scores of the rules as they were before anybody had seen the programs."""

COLUMNS = (
    "program",
    "what is wrong",
    "cause in the report",
    "found by",
    "true saving",
    "promised",
    "false in the healthy twin",
)


def markdown(results: Path = RESULTS, first: Path = FIRST) -> Iterator[str]:
    """Yield the figures, now and at first, and the table of the pairs as they are now."""
    now, before = (json.loads(file.read_text("utf-8")) for file in (results, first))
    yield from table(("figure", "at first", "now", "aim"), _figures(now, before))
    yield ""
    yield from table(COLUMNS, (_program(*program) for program in sorted(now["programs"].items())))


def _figures(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    first = {figure["name"]: figure["value"] for figure in before["figures"]}
    for figure in now["figures"]:
        missed = ", not reached" if figure["reached"] is False else ""
        aim = f"{figure['aim']}{missed}"
        yield figure["name"], first.get(figure["name"], "-"), figure["value"], aim


def _program(name: str, one: Mapping[str, Any]) -> tuple[str, ...]:
    cause = "first" if one["first"] else "named" if one["named_by"] else "no"
    saving, said = _percent(one["saving"]), _percent(one["predicted"])
    false = ", ".join(one["false"]) or "-"
    return name, one["title"], cause, one["named_by"] or "-", saving, said, false


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
