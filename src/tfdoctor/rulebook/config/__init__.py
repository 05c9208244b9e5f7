"""Settings: `[tool.tfdoctor]` in pyproject.toml, or a tfdoctor.toml.

The file of the nearest folder is used, from the current one upward, as in ruff and pytest.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tfdoctor.recording.files import AGENT, MANIFEST, RUNS, TRACE, traces
from tfdoctor.recording.folders import PROCESSES, WORKERS
from tfdoctor.rulebook.config.budget import Budget, BudgetLimit
from tfdoctor.rulebook.values import LONGEST, Key, hint, key_name, number, shown
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.files import is_below
from tfdoctor.terms.options import SETTINGS
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Severity

__all__ = ["ALL", "KEYS", "Budget", "BudgetLimit", "Config", "FailOn", "RuleNames", "find", "load"]

OWN_FILE, PROJECT_FILE = "tfdoctor.toml", "pyproject.toml"

TABLE = "[tool.tfdoctor]"
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
        own: dict[str, Any] = {key: path.parent / values[key] for key in ("baseline", "history") if key in table}
        own |= {key: RuleNames(values[key], path.name, key) for key in ("select", "ignore") if key in table}
        return cls(
            by=path.name,
            **own,
            fail_on=values.get("fail-on"),
            rules=tuple(path.parent / folder for folder in values.get("rules", ())),
            limits=values.get("limits", {}),
            budget=replace(values.get("budget", Budget()), file=path),
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
    "select": Key(_names, '["ALL"]', SETTINGS["select"]),
    "ignore": Key(_names, "[]", SETTINGS["ignore"]),
    "fail-on": Key(
        _fail_on, '"never"', f"{SETTINGS['fail-on']} One of {', '.join(f'`{severity}`' for severity in FailOn)}."
    ),
    "baseline": Key(_file, "none", SETTINGS["baseline"]),
    "history": Key(_file, '"tfdoctor-history.json"', SETTINGS["history"]),
    "rules": Key(_folders, "[]", SETTINGS["rules"]),
    "budget": Key(
        Budget.parse,
        "none",
        "What a step may take and must reach, see [budgets](#budgets): exit with 3 if one is exceeded or cannot be "
        "measured.",
    ),
    "limits": Key(_limits, "{}", "Limits of rules: a table for each rule, with a number for each limit."),
}


def find(start: Path, note: Callable[[str], object] = lambda _: None, reads: Iterable[str | Path] = ()) -> Config:
    """Return the settings of the nearest folder that has any, from ``start`` upward; defaults without.

    tfdoctor.toml wins over pyproject.toml in the same folder; a pyproject.toml without our table is skipped. What
    lies in a recording came with it and is nobody's setting; of a file below one of the paths that the command
    ``reads`` the rules are left out, which are code. ``note`` is told of it.

    Raises:
        ConfigError: the file cannot be read, or a setting is invalid.
    """
    here = start.resolve()
    folders = (here, *here.parents)
    # Of a recording, or of a TensorBoard log directory.
    marks = (MANIFEST, f"{WORKERS}/*/{MANIFEST}", f"{PROCESSES}/*/{AGENT}", f"{RUNS}/*{TRACE}")
    recorded = [folder for folder in folders if any(any(folder.glob(mark)) for mark in marks)]
    for folder in folders:
        own, project = folder / OWN_FILE, folder / PROJECT_FILE
        if any(map(folder.is_relative_to, recorded)) or traces(folder):
            for file in filter(Path.is_file, (own, project)):
                note(f"{file} came with a recording and sets nothing: name it by --config if it is yours")
            continue
        file = own if own.is_file() else project
        config = _read(file, file.relative_to(here) if folder == here else file) if file.is_file() else None
        if config is None:
            continue
        read = [path if path.is_dir() else path.parent for path in map(Path, reads)]
        if config.rules and any(is_below(file, place) for place in read):
            note(f"the rules of {file}, which lies in what is read, are not loaded: name it by --config")
            return replace(config, rules=())
        return config
    return Config()


def load(path: Path) -> Config:
    """Return the settings of a file: all of it, or its table where it is a pyproject.toml.

    Raises:
        ConfigError: the file cannot be read, or a setting is invalid.
    """
    config = _read(path)
    if config is None:
        raise ConfigError(f"{path} has no table {TABLE}: add it, or name another file.")
    return config


def _read(path: Path, called: Path | None = None) -> Config | None:
    """Return the settings of a file, with the line of each budget, to which reports point; None without any."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: its encoding is not UTF-8.") from error
    table = _table(text, path)
    if table is None:
        return None
    config = Config.parse(table, path, called)
    tables = ("tool", "tfdoctor") if path.name == PROJECT_FILE else ()
    lines = {}
    for limit in config.budget.limits:
        device = [str(limit.device).lower()] if limit.device else []
        lines[limit] = _line((*tables, "budget", *device, limit.key), text.splitlines())
    return replace(config, budget=replace(config.budget, lines=lines))


def _line(keys: Sequence[str], lines: Sequence[str]) -> int:
    """Return the line of a key: the first one with which the text above it has the key; 1 if none is found."""
    for count, line in enumerate(lines, start=1):
        if keys[-1] not in line:
            continue
        try:
            value: Any = tomllib.loads("\n".join(lines[:count]))
        except tomllib.TOMLDecodeError:  # the text ends within a value
            continue
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return count
    return 1


def _table(text: str, path: Path) -> Mapping[str, Any] | None:
    """Return the settings: our table of a pyproject.toml, None without; of another file its top level."""
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error
    tool = table.get("tool")
    ours: Any = tool.get("tfdoctor") if isinstance(tool, dict) else None
    if ours is not None and not isinstance(ours, dict):
        raise ConfigError(f"{path}: {TABLE} must be a table, not {ours!r}.")
    if path.name == PROJECT_FILE:
        return ours
    if ours is not None:
        raise ConfigError(
            f"{path}: only {PROJECT_FILE} has the table {TABLE}; write its settings at the top level."
        )
    return table
