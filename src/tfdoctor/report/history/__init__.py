"""Renderings of a history. The file formats are modules here, loaded when they are used."""

from importlib import import_module
from pathlib import Path

from tfdoctor.diagnosis.history_report import History
from tfdoctor.report.files import write_texts

FORMATS = ("html", "json", "md")


def render(file_format: str, history: History) -> str:
    """Return the whole text of a file in one of ``FORMATS``."""
    text: str = import_module(f"{__name__}.{file_format}").render(history)
    return text


def write(history: History, folder: Path, formats: list[str]) -> tuple[Path, ...]:
    """Write ``tfdoctor-history.<format>`` for each format and return the paths.

    Raises:
        OutputError: the folder cannot be made or written to, or something else has the name of a file.
    """
    texts = {folder / f"{STEM}.{one}": render(one, history) for one in formats}
    write_texts(folder, texts)
    return tuple(texts)


STEM = "tfdoctor-history-report"  # Of the files: tfdoctor-history.json is the file that users commit
