"""Figures in pages of the manual: when and where they were measured, their file, and the passages for them."""

import datetime as dt
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks import commands
from tfdoctor.capture.machine import host

EXPLANATIONS = Path(__file__).parents[1] / "docs" / "explanation"


def today() -> str:
    """Return the date."""
    return str(dt.datetime.now(tz=dt.UTC).date())


def machine() -> str:
    """Return what this machine computes with."""
    this = host()
    return f"{this.cores_logical} cores of {this.cpu_model}"


def shared_machine() -> str:
    """Return the same of a machine that other programs use too, or of a part of one."""
    this = host()
    return f"{this.cores_usable:g} shared cores ({this.cpu_model})"


def store(file: Path, results: object) -> None:
    """Write results that pages are made of."""
    file.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def row(cells: Iterable[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield from map(row, (columns, ["---"] * len(columns), *rows))


def fill(page: str, mark: str, lines: Iterable[str]) -> None:
    """Write lines into the passage of a page that has this mark before and after it."""
    path, part = EXPLANATIONS / page, "\n".join(lines)
    marked = re.compile(f"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)", re.DOTALL)
    text = marked.sub(lambda m: f"{m[1]}{part}\n{m[2]}", path.read_text("utf-8"))
    path.write_text(text, encoding="utf-8")


def publish(doc: str | None, page: str, mark: str, figures: Iterable[str]) -> None:
    """Run a command line that prints figures, each line as soon as it is known, and writes them if asked."""
    parser = commands.parser(doc)
    parser.add_argument("--table", action="store_true", help=f"write them into {page}")
    wanted, lines = parser.parse_args().table, list[str]()
    for line in figures:
        print(line, flush=True)
        lines.append(line)
    if wanted:
        fill(page, mark, lines)
