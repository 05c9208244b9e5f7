"""Settings: `[tool.tfdoctor]` in pyproject.toml, or a tfdoctor.toml.

The file of the nearest folder is used, from the current one upward, as in ruff and pytest.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfdoctor.recording.files import AGENT, MANIFEST, RUNS, traces
from tfdoctor.recording.folders import PROCESSES, WORKERS
from tfdoctor.rulebook.config.budget import Budget, BudgetLimit
from tfdoctor.rulebook.config.settings import ALL, Config, FailOn, RuleNames
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.files import is_below

__all__ = ["ALL", "Budget", "BudgetLimit", "Config", "FailOn", "RuleNames", "find", "load"]

OWN_FILE, PROJECT_FILE = "tfdoctor.toml", "pyproject.toml"

TABLE = "[tool.tfdoctor]"


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
    recorded = [folder for folder in folders if _is_recorded(folder)]
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
        if config.rules and any(is_below(file, _folder(Path(path))) for path in reads):
            note(f"the rules of {file}, which lies in what is read, are not loaded: name it by --config")
            return replace(config, rules=())
        return config
    return Config()


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _is_recorded(folder: Path) -> bool:
    """Say whether a folder is a recording or a TensorBoard log directory."""
    marks = (MANIFEST, f"{WORKERS}/*/{MANIFEST}", f"{PROCESSES}/*/{AGENT}")
    return any(any(folder.glob(mark)) for mark in marks) or any(map(traces, folder.glob(RUNS)))


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
    text = _text(path)
    table = _table(text, path)
    if table is None:
        return None
    config = Config.parse(table, path, called)
    tables = ("tool", "tfdoctor") if path.name == PROJECT_FILE else ()
    lines = {limit: _line((*tables, *limit.keys), text.splitlines()) for limit in config.budget.limits}
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


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: its encoding is not UTF-8.") from error


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
