"""The rules a command applies: settings of the command line, then of the configuration file."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdoctor.cli.completion import list_of, rules_and_topics
from tfdoctor.cli.messages import say
from tfdoctor.cli.options import FailOn, comma_separated, parse_file, parse_own

if TYPE_CHECKING:
    from tfdoctor.rulebook.book import Rulebook
    from tfdoctor.rulebook.config import Config

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        parser=parse_file,
        metavar="FILE",
        help="Configuration file [default: the nearest tfdoctor.toml, or pyproject.toml with a table "
        "[tool.tfdoctor], from the current folder upward].",
    ),
]
Select = Annotated[
    str | None,
    typer.Option(
        "--select",
        metavar="LIST",
        help="Apply only these rules: comma-separated names and topics, or ALL.",
        autocompletion=list_of(rules_and_topics),
    ),
]
Ignore = Annotated[
    str | None,
    typer.Option(
        "--ignore",
        metavar="LIST",
        help="Do not apply these rules: comma-separated names and topics.",
        autocompletion=list_of(rules_and_topics),
    ),
]
OwnRules = Annotated[
    list[Path] | None,
    typer.Option(
        "--rules",
        parser=parse_own,
        metavar="DIR",
        help="Also apply your own rules in this folder; can be repeated.",
    ),
]


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """Which rules a command applies."""

    config: ConfigFile = None
    select: Select = None
    ignore: Ignore = None
    rules: OwnRules = None

    def settings(self, *reads: str | Path) -> "Config":
        """Return the settings of the file, replaced by those of the command line, which reads these paths.

        Raises:
            ConfigError: the file cannot be read, or a setting is invalid.
        """
        from tfdoctor.rulebook.config import RuleNames, find, load  # noqa: PLC0415 - keeps --help fast

        config = load(self.config) if self.config else find(Path(), _note, reads)
        if self.select is not None:
            names = tuple(comma_separated(self.select))
            config = replace(config, select=RuleNames(names, "--select"))
        if self.ignore is not None:
            names = tuple(comma_separated(self.ignore))
            config = replace(config, ignore=RuleNames(names, "--ignore"))
        return replace(config, rules=(*config.rules, *(self.rules or ())))


def _note(text: str) -> None:
    say(f"note: {text}")


def book(config: "Config") -> "Rulebook":
    """Return the rules of these settings.

    Raises:
        ConfigError: a name does not exist, or one of the user's own rules is invalid.
    """
    from tfdoctor.rulebook.book import rulebook  # noqa: PLC0415 - keeps --help fast

    return rulebook(config)


def untouched(config: "Config") -> bool:
    """Return whether all settings are the defaults, so that no rule must be loaded to check them."""
    from tfdoctor.rulebook.config import Config  # noqa: PLC0415 - keeps --help fast

    return config == Config()


def failing(fail_on: FailOn | None, config: "Config") -> FailOn | None:
    """Return the severity from which the command fails, by the command line or the settings."""
    return fail_on or (FailOn(config.fail_on) if config.fail_on else None)
