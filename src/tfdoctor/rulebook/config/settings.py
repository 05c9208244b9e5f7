"""The settings with checked types; whether the names in them exist is checked later."""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tfdoctor.rulebook.config.budget import Budget
from tfdoctor.rulebook.values import LONGEST, Key, hint, key_name, number, shown
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Severity

ALL = "ALL"  # Selects or ignores every rule, as in ruff


class FailOn(StrEnum):
    """The lowest severity of a finding that makes a command fail."""

    NOTE = "note"
    WARNING = "warning"
    CRITICAL = "critical"
    NEVER = "never"

    @property
    def severity(self) -> Severity | None:
        """The severity; None where nothing fails."""
        return None if self is FailOn.NEVER else Severity[self.name]


class RuleNames(Record):
    """Names of rules and topics, and where they were set."""

    names: tuple[str, ...]
    by: str = ""  # the name of the file or of the option
    key: str = ""  # of the file; "" for an option

    @property
    def place(self) -> str:
        """Where they were set, for a message."""
        return f"{self.by}: {self.key}" if self.key else self.by


class Config(Record, kw_only=True):
    """The user's settings; without any, all rules with their defaults."""

    by: str = ""  # the file's name; "" without one
    select: RuleNames = field(default_factory=lambda: RuleNames((ALL,)))
    ignore: RuleNames = field(default_factory=lambda: RuleNames(()))
    fail_on: FailOn | None = None
    rules: tuple[Path, ...] = ()  # folders of the user's own rules
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    baseline: Path | None = None  # the file of known findings
    history: Path | None = None  # the file of named baselines and accepted changes

    @classmethod
    def parse(cls, table: Mapping[str, Any], path: Path, called: Path | None = None) -> "Config":
        """Read the settings of a table; ``path`` is the file that it stands in, ``called`` its name in messages.

        Raises:
            ConfigError: a key is unknown, or a value has the wrong type.
        """
        where = called or path
        for key in table:
            if key not in KEYS:
                raise ConfigError(f"{where}: unknown key {key[:LONGEST]!r}: {hint(key, KEYS)}")
        values = {key: KEYS[key].read(table[key], f"{where}: {key}") for key in table}
        chosen = {key: RuleNames(values[key], path.name, key) for key in ("select", "ignore") if key in table}
        return cls(
            by=path.name,
            **chosen,
            fail_on=values.get("fail-on"),
            rules=tuple(path.parent / folder for folder in values.get("rules", ())),
            limits=values.get("limits", {}),
            budget=replace(values.get("budget", Budget()), file=path),
            baseline=path.parent / values["baseline"] if "baseline" in values else None,
            history=path.parent / values["history"] if "history" in values else None,
        )


def _names(value: object, where: str, what: str = 'names, such as ["input-bound"]') -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{where} must be a list of {what}, not {shown(value)}.")
    return tuple(value)


def _folders(value: object, where: str) -> tuple[str, ...]:
    folders = _names(value, where, 'folders, such as ["lint"]')
    if any("\0" in folder for folder in folders):
        raise ConfigError(f"{where} contains an invalid folder name.")
    return folders


def _file(value: object, where: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigError(
            f'{where} must be the name of a file, such as "tfdoctor-baseline.json", not {shown(value)}.'
        )
    return value


def _fail_on(value: object, where: str) -> FailOn:
    if not isinstance(value, str) or value not in set(FailOn):
        known = ", ".join(f'"{severity}"' for severity in FailOn)
        raise ConfigError(f"{where} must be one of {known}, not {shown(value)}.")
    return FailOn(value)


def _limits(value: object, where: str) -> Mapping[str, Mapping[str, float]]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a table of rules, not {shown(value)}.")
    limits: dict[str, dict[str, float]] = {}
    for rule, table in value.items():
        at = f"{where}.{key_name(rule)}"
        if not isinstance(table, dict):
            raise ConfigError(f"{at} must be a table of limits, such as {{ share = 0.1 }}, not {shown(table)}.")
        limits[rule] = {name: number(limit, f"{at}.{key_name(name)}") for name, limit in table.items()}
    return limits


# Every key.
KEYS: Mapping[str, Key] = {
    "select": Key(_names, '["ALL"]', "names of rules and topics to apply, or `ALL`"),
    "ignore": Key(
        _names,
        "[]",
        "names of rules and topics not to apply; the report lists them as ignored. The more specific choice "
        "wins (rule name over topic over `ALL`); between equals, `ignore` wins",
    ),
    "fail-on": Key(
        _fail_on,
        '"never"',
        "exit with 3 on a finding of this severity or above: `note`, `warning`, `critical` or `never`",
    ),
    "baseline": Key(
        _file,
        "none",
        "file of known findings, relative to this file, written by `--write-baseline`: findings in it do not count "
        "for `fail-on`",
    ),
    "history": Key(
        _file,
        '"tfdoctor-history.json"',
        "file of named baselines and accepted changes, relative to this file, written by `tfdoctor history`; "
        "without this key it is in the current folder",
    ),
    "rules": Key(_folders, "[]", "folders with your own rules, relative to this file"),
    "budget": Key(
        Budget.parse,
        "none",
        "what a step may take and must reach, see [budgets](#budgets): exit with 3 if one is exceeded or cannot be "
        "measured",
    ),
    "limits": Key(_limits, "{}", "limits of rules: a table for each rule, with a number for each limit"),
}
