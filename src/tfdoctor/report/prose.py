"""A rule's documentation as HTML: paragraphs, lists, code and links, and nothing else."""

import re
from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

_UNUSED = ["html_block", "html_inline", "image", "heading", "lheading", "hr", "reference", "entity"]


def to_html(markdown: str) -> Markup:
    """Return Markdown as HTML; its tags, images and links to other than https stay text."""
    return Markup(_parser().render(markdown))  # noqa: S704 - the parser escapes all but what it made


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable(_UNUSED)
    setattr(parser, "validateLink", _is_https)  # noqa: B010 - how its documentation replaces it
    return parser


def _is_https(url: str) -> bool:
    return re.match(r"https://[a-z0-9]", url, re.IGNORECASE) is not None
