"""Writes reports to files, each completely or not at all."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.errors import OutputError
from tfdoctor.report import formats


def write(
    diagnosis: Diagnosis, folder: Path, names: Iterable[str], prefix: str = ""
) -> tuple[Path, ...]:
    """Write ``<prefix>report.<suffix>`` for each format that is a file and return the paths.

    Raises:
        OutputError: the folder cannot be made or written to.
    """
    texts = {
        folder / f"{prefix}report.{formats.suffix(name)}": formats.render(name, diagnosis)
        for name in names
        if not formats.is_streamed(name)
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            replace_file(path, text)
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written ({error.strerror}): choose another folder."
        ) from error
    return tuple(texts)


def replace_file(path: Path, text: str) -> None:
    """Write to a temporary file and rename it, so that an interrupted write leaves the old file."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}", delete=False
    ) as file:
        file.write(text)
    os.chmod(file.name, 0o644)  # noqa: PTH101 - NamedTemporaryFile made it private; a report is to be read
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
