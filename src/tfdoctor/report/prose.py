"""A rule's words as HTML: paragraphs, lists, code and links, and nothing else."""

import re

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

_UNUSED = ["html_block", "html_inline", "image", "heading", "lheading", "hr", "reference", "entity"]


_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable(_UNUSED)
_HTTPS = re.compile(r"https://[a-z0-9]", re.IGNORECASE)
setattr(_PARSER, "validateLink", _HTTPS.match)  # noqa: B010 - how its documentation replaces it


def to_html(markdown: str) -> Markup:
    """Return Markdown as HTML; its tags, images and links to other than https stay text."""
    return Markup(_PARSER.render(markdown))  # noqa: S704 - the parser escapes all but what it made


def coded(sentence: str) -> Markup:
    """Return a sentence with what stands between backticks as code, and all else as text."""
    parts = sentence.split("`")
    if len(parts) % 2 == 0:
        return escape(sentence)
    code = Markup("<code>{}</code>")
    return Markup().join(code.format(p) if at % 2 else escape(p) for at, p in enumerate(parts))
