"""Which files an installer put beside the user's own, as ``pip install --target`` does."""

from __future__ import annotations

import sys
from functools import cache

from .kept import io, os


def is_installed(path: str) -> bool:
    """Return whether an absolute path is of a package that was installed into a folder of the import path."""
    folders = [os.path.join(os.path.normpath(folder), "") for folder in sys.path if os.path.isabs(folder)]
    return any(
        path[len(folder) :].split(os.sep, 1)[0] in _installed(folder)
        for folder in folders
        if path.startswith(folder)
    )


@cache
def _installed(folder: str) -> frozenset[str]:
    """Return the folders and files at the top of a folder that installers list as theirs.

    Each installed distribution has a file RECORD of its files
    (https://packaging.python.org/en/latest/specifications/recording-installed-packages/).
    """
    names: set[str] = set()
    try:
        records = [name for name in os.listdir(folder) if name.endswith(".dist-info")]
    except OSError:  # an entry that is no folder, or not there
        return frozenset()
    for record in records:
        try:
            with io.open(os.path.join(folder, record, "RECORD"), encoding="utf-8") as lines:
                names.update(line.split(",", 1)[0].strip('"').split("/", 1)[0] for line in lines)
        except (OSError, ValueError):  # installed in another way: its files are the user's
            continue
    return frozenset(names - {"", "..", "."})
