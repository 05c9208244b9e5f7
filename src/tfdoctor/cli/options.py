"""Options that several commands share."""

from enum import StrEnum
from typing import Annotated

import typer

from tfdoctor.report import Format


class FailOn(StrEnum):
    """From which severity on a finding makes the command fail."""

    NOTE = "note"
    WARNING = "warning"
    CRITICAL = "critical"
    NEVER = "never"


Formats = Annotated[
    str,
    typer.Option(
        "--format", metavar="LIST", help="What to write: html, json, md, separated by commas."
    ),
]
Fail = Annotated[
    FailOn | None,
    typer.Option(
        help="Exit with 3 when a finding of this severity or above is there (doubts about the recording apart)."
    ),
]
Scrub = Annotated[
    bool,
    typer.Option(
        "--scrub",
        help="Leave host and user names, home folders and lines of source out of the report, to show it to anyone.",
    ),
]

CHEAPEST, DEAREST = 0.01, 10_000_000.0
"""US dollars an hour: no machine is cheaper, no job of the largest clusters dearer."""


def _price(value: float | None) -> float | None:
    if value is not None and not CHEAPEST <= value <= DEAREST:  # nan is neither
        raise typer.BadParameter(
            f"{value:g} is no price of an hour: give US dollars, at least {CHEAPEST}, such as 3.20"
        )
    return value


UsdPerHour = Annotated[
    float | None,
    typer.Option(
        callback=_price,
        metavar="PRICE",
        help="What all machines of the job cost an hour; the report then says what a step and its waste cost.",
    ),
]


def parse_formats(text: str) -> list[Format]:
    """Return the formats of a list with commas; another name is a usage error."""
    names = [name.strip() for name in text.split(",") if name.strip()] or [text]
    unknown = [name for name in names if name not in set(Format)]
    if unknown:
        known = ", ".join(Format)
        raise typer.BadParameter(f"{unknown[0]!r} is none of {known}", param_hint="--format")
    return [Format(name) for name in dict.fromkeys(names)]
