"""Turns a diagnosis into a page, a comment, a contract or a screen.

Importing this package is cheap: plotly, Jinja and rich load when a report is rendered.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType

from tfdoctor.diagnosis import Diagnosis

Renderer = Callable[[Diagnosis], str]
"""A diagnosis in, the whole text of a file out."""


class Format(StrEnum):
    """A file that a report can be written as."""

    HTML = "html"
    JSON = "json"
    MD = "md"

    @property
    def suffix(self) -> str:
        """The ending of the file's name."""
        return f".{self.value}"


def _html(diagnosis: Diagnosis) -> str:
    from tfdoctor.report import html  # noqa: PLC0415 - brings Jinja and plotly

    return html.render(diagnosis)


def _json(diagnosis: Diagnosis) -> str:
    from tfdoctor.report import json_  # noqa: PLC0415 - as the others

    return json_.render(diagnosis)


def _markdown(diagnosis: Diagnosis) -> str:
    from tfdoctor.report import markdown  # noqa: PLC0415 - as the others

    return markdown.render(diagnosis)


RENDERERS: Mapping[Format, Renderer] = MappingProxyType(
    {Format.HTML: _html, Format.JSON: _json, Format.MD: _markdown}
)

__all__ = ["RENDERERS", "Format", "Renderer"]
