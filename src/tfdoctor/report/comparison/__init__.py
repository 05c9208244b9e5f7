"""Renderings of a comparison. The file formats are modules here, loaded when they are used."""

from importlib import import_module
from pathlib import Path

from tfdoctor.comparison import RunComparison
from tfdoctor.errors import OutputError
from tfdoctor.report.files import replace_file

FORMATS = ("html", "json", "md")


def render(file_format: str, comparison: RunComparison) -> str:
    """Return the whole text of a file in one of ``FORMATS``."""
    text: str = import_module(f"{__name__}.{file_format}").render(comparison)
    return text


def write(comparison: RunComparison, folder: Path, formats: list[str]) -> tuple[Path, ...]:
    """Write ``tfdoctor-diff.<format>`` for each format and return the paths.

    Raises:
        OutputError: the folder cannot be made or written to.
    """
    texts = {folder / f"tfdoctor-diff.{one}": render(one, comparison) for one in formats}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            replace_file(path, text)
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written ({error.strerror}): choose another folder."
        ) from error
    return tuple(texts)
