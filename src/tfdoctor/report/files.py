"""Writes reports to files, each completely or not at all."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report import formats
from tfdoctor.terms.errors import OutputError
from tfdoctor.terms.text import uncommanding, uncommanding_json

UNCOMMANDING = {
    ".md": uncommanding,
    ".json": uncommanding_json,
    ".sarif": uncommanding_json,
}
"""What jobs print, by the ends of the names of files: no line of it is to command a CI runner."""

READABLE = 0o644
"""Mode of a new file: a report is to be read."""


def write(
    diagnosis: Diagnosis, folder: Path, names: Iterable[str], prefix: str = ""
) -> tuple[Path, ...]:
    """Write ``<prefix>report.<suffix>`` for each format that is a file and return the paths.

    Where the code of a format fails, the other files are written before its error is raised.

    Raises:
        OutputError: the folder cannot be made or written to.
    """
    texts: dict[Path, str] = {}
    failed: list[Exception] = []
    for name in names:
        try:
            if not formats.is_streamed(name):
                path = folder / f"{prefix}report.{formats.suffix(name)}"
                texts[path] = formats.render(name, diagnosis)
        except Exception as error:  # noqa: BLE001 - it is raised below
            error.add_note(f"The report could not be written as {name}.")
            failed.append(error)
    write_texts(folder, texts)
    if failed:
        raise failed[0]
    return tuple(texts)


def write_texts(folder: Path, texts: Mapping[Path, str]) -> None:
    """Write files of a folder; none of them where one cannot be a file.

    Raises:
        OutputError: the folder cannot be made or written to, or something else has the name of a file.
    """
    for path in texts:
        if path.exists() and not path.is_file():
            raise OutputError(f"{path} is not a file: remove it, or choose another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            replace_file(path, UNCOMMANDING.get(path.suffix, str)(text))
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written ({error.strerror}): choose another folder."
        ) from error


def replace_file(path: Path, text: str) -> None:
    """Write to a temporary file and rename it, so that an interrupted write leaves the old file.

    A link stays one, and a file keeps its mode.

    Raises:
        OSError: it cannot be written, or is no file.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a file", str(path))
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else READABLE
    with tempfile.NamedTemporaryFile(
        "w",
        encoding="utf-8",
        errors="backslashreplace",  # a name of a file is any bytes
        newline="\n",
        dir=path.parent,
        prefix=f".{path.name}",
        delete=False,
    ) as file:
        file.write(text)
    os.chmod(file.name, mode)  # noqa: PTH101 - NamedTemporaryFile made it private
    Path(file.name).replace(path)


def why_unwritable(path: Path) -> str:
    """Return why a folder takes no new file, or a file no new text; "" where it does. Nothing changes there."""
    try:
        if path.is_dir():
            with tempfile.TemporaryFile(dir=path):
                return ""
        with path.open("ab"):
            return ""
    except OSError as error:
        return error.strerror or type(error).__name__
