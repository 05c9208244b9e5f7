"""The manual as a static site: `make site` runs Sphinx with this configuration on docs/.

The pages stay plain Markdown, as code hosts show them. What a site needs besides is derived from them: the order
of pages is that of the links in index.md and rules/index.md, and a page that neither of them leads to is an error.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

project = "tfdoctor"
extensions = ["myst_parser"]
exclude_patterns = ["gallery/[!i]*.md", "gallery/i[!n]*.md"]  # reports, which are copied
html_theme = "furo"
html_title = "tfdoctor"
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # a browser does not let a page of the file system read others
myst_heading_anchors = 4  # links to headings are checked, too

LINK = re.compile(r"\]\(([\w/.-]+)\.md\)")
"""A link to another page, without its suffix."""

REPORT = re.compile(r"\[([^]]+)\]\(([\w-]+\.(?:html|md))\)")
"""A link to a report of the gallery, which is copied and not a page."""

TITLE = re.compile(r"^(?:\*\*(.+)\*\*|## (.+))$")
"""A line that begins a group of links: bold in index.md, a heading in rules/index.md."""


def groups(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the titles of groups of links in a page, with the pages that they lead to."""
    title, pages = "", list[str]()
    for line in text.splitlines():
        if found := TITLE.match(line.strip()):
            if pages:
                yield title, pages
            title, pages = found[1] or found[2], []
        pages += [page for page in LINK.findall(line) if page not in pages]
    if pages:
        yield title, pages


def contents(text: str) -> str:
    """Return the tables of contents that a page has on the site: hidden, as its links are there already."""
    blocks = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```"])
        for title, pages in groups(text)
    ]
    return "\n\n".join(["", *blocks, ""])


def with_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Add what the site needs to a page."""
    if page in ("index", "rules/index"):
        source[0] += contents(source[0])
    if page == "gallery/index":
        source[0] = REPORT.sub(r'<a href="\2">\1</a>', source[0]) + frames(gallery(app, ".html"))


def gallery(app: Sphinx, suffix: str) -> list[Path]:
    """Return the reports of the gallery in a format."""
    files = Path(app.srcdir, "gallery").glob(f"*{suffix}")
    return sorted(path for path in files if path.name != "index.md")


def frames(reports: list[Path]) -> str:
    """Return each report in a frame that loads when it is scrolled to."""
    return "".join(
        f'\n\n## {report.stem}\n\n<iframe src="{report.name}" loading="lazy" title="{report.stem}" '
        'style="width: 100%; height: 80vh; border: 1px solid #8886"></iframe>\n'
        for report in reports
    )


def with_reports(app: Sphinx, error: Exception | None) -> None:
    """Copy the reports of the gallery beside its page."""
    reports = [*gallery(app, ".html"), *gallery(app, ".md")]
    for report in reports if error is None else ():
        shutil.copy(report, Path(app.outdir, "gallery", report.name))


def setup(app: Sphinx) -> None:
    """Let Sphinx call us for each page it reads, and at its end."""
    app.connect("source-read", with_contents)
    app.connect("build-finished", with_reports)
