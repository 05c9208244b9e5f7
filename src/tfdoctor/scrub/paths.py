"""Whose home folders a text names, under Linux, macOS and Windows."""

import re
from collections.abc import Iterable

START = r"(?<![\w.~/-])(?:[A-Za-z]:[\\/]+|/(?!/))"
"""Where an absolute path starts; the slashes of an address (gs://) are none."""

ENDS = r"\\/\s'\"<>|:;,()\[\]{}"
"""What ends a part of a path within a sentence."""

HOMES = rf"{START}(?:[^{ENDS}]+[\\/]+)*?(?:home|homes|Users)[\\/]+"
"""What home folders lie in, at any mount."""

HOME = re.compile(rf"{HOMES}(?P<name>[^{ENDS}]+)")

ROOTS_HOME = re.compile(rf"(?<![\w.~/-])/root(?=[{ENDS}]|$)")

WHOLE = re.compile(r"(?:[A-Za-z]:|/mnt/[a-z])?[\\/](?:home|Users)[\\/]([^\\/:;'\"]+)(?:[\\/]|$)")
"""A home folder at the start of what is known to be a path: a name may have spaces there."""

ABSOLUTE = re.compile(r"(?<![\w.~/-])(?:[A-Za-z]:[\\/]|/(?!/)|~[\w-]*[\\/])[^\s'\"<>|]*")
"""A path from the root, or from a home."""

PACKAGES = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
"""From here on a path is of a package, which may be called like somebody."""

SCRIPTS = (".ipynb", ".py", ".sh")
"""In containers scripts lie in /home itself: those are no users."""


def of_path(path: str) -> list[str]:
    """Return whose home folder a path lies in."""
    home = WHOLE.match(path)
    return _users([home[1]] if home else [])


def of_text(text: str) -> list[str]:
    """Return whose home folders a text names, the first first."""
    return _users(home["name"] for home in HOME.finditer(text))


def _users(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.endswith(SCRIPTS)]
