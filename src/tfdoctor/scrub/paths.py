"""Finds the users whose home folders a text mentions, on Linux, macOS and Windows."""

import re
from collections.abc import Iterable

# The start of an absolute path, but not the slashes of an address (gs://).
START = r"(?<![\w.~/-])(?:[A-Za-z]:[\\/]+|/(?!/))"
ENDS = r"\\/\s'\"<>|:;,()\[\]{}"  # Characters that end a part of a path within a sentence
# The parent of home folders, at any mount; where another path may start, the search ends, so that its time is
# proportional to the text's length.
HOMES = rf"{START}(?:[^{ENDS}]*(?:[\w.~-]/|[^{ENDS}]\\)[\\/]*)*?(?:home|homes|Users)[\\/]+"

HOME = re.compile(rf"{HOMES}(?P<name>[^{ENDS}]+)")

ROOTS_HOME = re.compile(rf"(?<![\w.~/-])/root(?=[{ENDS}]|$)")

# A home folder at the start of a path, in which the user's name may have spaces.
PATH_HOME = re.compile(r"(?:[A-Za-z]:|/mnt/[a-z])?[\\/](?:home|Users)[\\/]([^\\/:;'\"]+)(?:[\\/]|$)")
# A path from the root, or from a home.
ABSOLUTE = re.compile(r"(?<![\w.~/-])(?:[A-Za-z]:[\\/]|/(?!/)|~[\w-]*[\\/])[^\s'\"<>|]*")
# The rest of such a path names packages, which may have the name of a user.
PACKAGES = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
# Suffixes of scripts, which lie directly in /home in containers: they are not users.
SCRIPTS = (".ipynb", ".py", ".sh")


def of_path(path: str) -> list[str]:
    """Return the user whose home folder contains a path, if any."""
    home = PATH_HOME.match(path)
    return _users([home[1]] if home else [])


def of_text(text: str) -> list[str]:
    """Return the users whose home folders a text mentions, in order."""
    return _users(home["name"] for home in HOME.finditer(text))


def _users(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.endswith(SCRIPTS)]
