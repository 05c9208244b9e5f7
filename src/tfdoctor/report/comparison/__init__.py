"""Renderings of a comparison. The file formats are modules here, loaded when they are used."""

from importlib import import_module
from pathlib import Path

from tfdoctor.diagnosis.comparison import RunComparison
from tfdoctor.report.files import write_texts

FORMATS = ("html", "json", "md")


def render(file_format: str, comparison: RunComparison) -> str:
    """Return the whole text of a file in one of ``FORMATS``."""
    text: str = import_module(f"{__name__}.{file_format}").render(comparison)
    return text


def write(comparison: RunComparison, folder: Path, formats: list[str]) -> tuple[Path, ...]:
    """Write ``tfdoctor-diff.<format>`` for each format and return the paths.

    Raises:
        OutputError: the folder cannot be made or written to, or something else has the name of a file.
    """
    texts = {folder / f"tfdoctor-diff.{one}": render(one, comparison) for one in formats}
    write_texts(folder, texts)
    return tuple(texts)
