"""Which rules a command applies: the user's settings, and the command line over them."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdoctor.cli.options import FailOn

if TYPE_CHECKING:
    from tfdoctor.rulebook.book import Rulebook
    from tfdoctor.rulebook.config import Config

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Read the settings from this file [default: the nearest tfdoctor.toml, or pyproject.toml with "
        "a table [tool.tfdoctor], from the current folder upward].",
    ),
]
Select = Annotated[
    str | None,
    typer.Option(
        "--select",
        metavar="LIST",
        help="Apply these rules only: names and topics separated by commas, or ALL.",
    ),
]
Ignore = Annotated[
    str | None,
    typer.Option("--ignore", metavar="LIST", help="Do not apply these rules: names and topics."),
]
OwnRules = Annotated[
    list[Path] | None,
    typer.Option(
        "--rules",
        metavar="DIR",
        help="Apply the rules in this folder of your own as well; may be given again.",
    ),
]


def settings(
    file: Path | None,
    select: str | None = None,
    ignore: str | None = None,
    rules: list[Path] | None = None,
) -> "Config":
    """Return the settings that hold: the file's, where the command line says nothing else.

    Raises:
        ConfigError: the file cannot be read, or what it says cannot be meant.
    """
    from tfdoctor.rulebook.config import RuleNames, find, load  # noqa: PLC0415 - keeps --help fast

    found = load(file) if file else find(Path())
    if select is not None:
        found = replace(found, select=RuleNames(_list(select), "--select"))
    if ignore is not None:
        found = replace(found, ignore=RuleNames(_list(ignore), "--ignore"))
    return replace(found, rules=(*found.rules, *(rules or ())))


def book(config: "Config") -> "Rulebook":
    """Return the rules by these settings.

    Raises:
        ConfigError: they name what does not exist, or a rule of the user's own is none.
    """
    from tfdoctor.rulebook.book import rulebook  # noqa: PLC0415 - keeps --help fast

    return rulebook(config)


def untouched(config: "Config") -> bool:
    """Return whether the rules apply as they come, so that none need be loaded to verify it."""
    from tfdoctor.rulebook.config import Config  # noqa: PLC0415 - keeps --help fast

    return config == Config()


def failing(fail_on: FailOn | None, config: "Config") -> FailOn | None:
    """Return from which severity on the command fails: the command line's word, else the settings'."""
    return fail_on or (FailOn(config.fail_on) if config.fail_on else None)


def _list(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())
