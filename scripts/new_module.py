"""Writes the files of a new module, for `make rule` and `make fact`, or says why not."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def check_name(name: str, example: str) -> None:
    """Exit with one sentence where a name is not made of small letters and hyphens."""
    if not NAME.fullmatch(name):
        sys.exit(f"{name} is not a valid name: use small letters and hyphens, as in {example}")


def write(files: Mapping[Path, str]) -> None:
    """Write new files; exit with one sentence, and write none, where one of them exists."""
    for path in files:
        if path.exists():
            sys.exit(f"{path.relative_to(ROOT)} exists: choose another name")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    print("Fill in each TODO, then run `make docs check test`.")
