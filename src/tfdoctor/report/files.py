"""Writes reports to files."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report import formats
from tfdoctor.terms.errors import OutputError
from tfdoctor.terms.replacement import replace_file, unwritten
from tfdoctor.terms.text import uncommanding, uncommanding_json

# What jobs print, by the ends of the names of files: no line of it is to command a CI runner.
UNCOMMANDING = {".md": uncommanding, ".json": uncommanding_json, ".sarif": uncommanding_json}


def write(diagnosis: Diagnosis, folder: Path, names: Iterable[str], prefix: str = "") -> tuple[Path, ...]:
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
        raise OutputError(unwritten(folder, error)) from error
