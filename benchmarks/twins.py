"""Programs that are stored as a change of another one: ``healthy.diff`` beside ``sick.py`` is ``healthy.py``.

``python -m benchmarks.twins healthy.diff`` prints the program. To change it, change what was printed, and write the
diff again: ``diff -u --label sick.py --label healthy.py sick.py healthy.py > healthy.diff``.
"""

import re
import sys
from io import StringIO
from pathlib import Path

HUNK = re.compile(r"@@ -(\d+)(,0)?")


def applied(before: str, diff: str) -> str:
    """Return a text as a unified diff changes it; each line must be where the diff says, and end with a line feed.

    Raises:
        ValueError: the diff is not one of this text.
    """
    lines, after, at = [*StringIO(before)], list[str](), 0
    for number, line in enumerate(StringIO(diff)):
        kind, content = line[0], line[1:]
        if number < 2:  # noqa: PLR2004 - the names of both
            continue
        if hunk := HUNK.match(line):
            first = int(hunk[1]) - (not hunk[2])  # a hunk that only adds lines names the one before
            after += lines[at:first]
            at = first
        elif kind == "+":
            after.append(content)
        elif kind in " -" and lines[at : at + 1] == [content]:
            after += [content] if kind == " " else []
            at += 1
        else:
            raise ValueError(f"line {number + 1} of the diff does not fit: {line.rstrip()}")
    return "".join([*after, *lines[at:]])


def exists(folder: Path, name: str) -> bool:
    """Say whether a folder has a program of this name: as it is, or as a diff."""
    return any((folder / f"{name}{suffix}").is_file() for suffix in (".py", ".diff"))


def text(folder: Path, name: str) -> str:
    """Return a program of a folder.

    Raises:
        OSError: there is none.
        ValueError: its diff does not fit.
    """
    if (folder / f"{name}.py").is_file():
        return (folder / f"{name}.py").read_text("utf-8")
    diff = (folder / f"{name}.diff").read_text("utf-8")
    _, original = diff.split("\n", maxsplit=1)[0].split()
    return applied((folder / original).read_text("utf-8"), diff)


def written(folder: Path, name: str, out: Path) -> Path:
    """Write a program of a folder into another one, where it can run, and return its path.

    Raises:
        OSError: there is none.
        ValueError: its diff does not fit.
    """
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.py"
    path.write_text(text(folder, name), encoding="utf-8")
    return path


if __name__ == "__main__":
    chosen = Path(sys.argv[1])
    sys.stdout.write(text(chosen.parent, chosen.stem))
