"""Which files an installer put beside the user's own, as ``pip install --target`` does."""

from __future__ import annotations

import sys

from .kept import io, os

_names: dict[str, frozenset[str]] = {}  # The packages and modules that were installed into each folder met so far


def is_installed(path: str) -> bool:
    """Return whether an absolute path is of a package that was installed into a folder of the import path."""
    return any(
        path[len(folder) :].split(os.sep, 1)[0] in installed_names(folder)
        for folder in map(_with_separator, filter(os.path.isabs, sys.path))
        if path.startswith(folder)
    )


def _with_separator(folder: str) -> str:
    return os.path.join(os.path.normpath(folder), "")


def installed_names(folder: str) -> frozenset[str]:
    """Return the folders and files at the top of a folder that installers list as theirs.

    Each installed distribution has a file RECORD of its files
    (https://packaging.python.org/en/latest/specifications/recording-installed-packages/).
    """
    if folder not in _names:
        _names[folder] = frozenset(_listed(folder))
    return _names[folder]


def _listed(folder: str) -> set[str]:
    names: set[str] = set()
    try:
        records = [name for name in os.listdir(folder) if name.endswith(".dist-info")]
    except OSError:  # an entry that is no folder, or not there
        return names
    for record in records:
        try:
            with io.open(os.path.join(folder, record, "RECORD"), encoding="utf-8") as lines:
                names.update(line.split(",", 1)[0].strip('"').split("/", 1)[0] for line in lines)
        except (OSError, ValueError):  # installed in another way: its files are the user's
            continue
    return names - {"", "..", "."}
