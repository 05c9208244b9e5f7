"""Turns a diagnosis into a page, a comment, a contract or a screen.

Importing this package is cheap: plotly, Jinja and rich load when a report is rendered. To add a format, write
a module with ``render(diagnosis) -> str`` and name it in ``Format`` and ``MODULES``.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib import import_module
from types import MappingProxyType

from tfdoctor.diagnosis import Diagnosis

Renderer = Callable[[Diagnosis], str]
"""A diagnosis in, the whole text of a file out."""


class Format(StrEnum):
    """A file format of reports."""

    HTML = "html"
    JSON = "json"
    MD = "md"

    @property
    def suffix(self) -> str:
        """The suffix of the file name."""
        return f".{self.value}"


MODULES: Mapping[Format, str] = MappingProxyType(
    {Format.HTML: "html", Format.JSON: "json_", Format.MD: "markdown"}
)
"""The module of this package that renders each format."""


def _renderer(file_format: Format) -> Renderer:
    def render(diagnosis: Diagnosis) -> str:
        text: str = import_module(f"tfdoctor.report.{MODULES[file_format]}").render(diagnosis)
        return text

    return render


RENDERERS: Mapping[Format, Renderer] = MappingProxyType({form: _renderer(form) for form in Format})

__all__ = ["RENDERERS", "Format", "Renderer"]
