"""The manual as a static site: `make site` runs Sphinx with this configuration on docs/.

The pages stay plain Markdown, as code hosts show them. What a site needs besides is derived from them: the order of
pages is that of the links in index.md, rules/index.md and decisions/index.md; a page that none names is an error.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

from tfdoctor.report.formats import html
from tfdoctor.rules import all_rules
from tfdoctor.stored.files import COMPRESSED, open_report

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

REPORT = re.compile(r"\[([^]]+)\]\(([\w-]+)(\.json\.gz|\.md)\)")
"""A link to a report of the gallery: a stored one, which is rendered, or Markdown, which is no page of the site."""

TITLE = re.compile(r"^(?:\*\*(.+)\*\*|## (.+))$")
"""A line that begins a group of links: bold, or a heading in rules/index.md."""


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
    if page in ("index", "rules/index", "decisions/index"):
        source[0] += contents(source[0])
    if page == "gallery/index":
        source[0] = REPORT.sub(_link, source[0]) + frames(gallery(app, COMPRESSED))


def _link(report: re.Match[str]) -> str:
    title, name, suffix = report.groups()
    return f'<a href="{name}{".html" if suffix == COMPRESSED else suffix}">{title}</a>'


def gallery(app: Sphinx, suffix: str) -> list[Path]:
    """Return the reports of the gallery in a format."""
    files = Path(app.srcdir, "gallery").glob(f"*{suffix}")
    return sorted(path for path in files if path.name != "index.md")


def frames(reports: list[Path]) -> str:
    """Return each report in a frame that loads when it is scrolled to."""
    return "".join(
        f'\n\n## {name}\n\n<iframe src="{name}.html" loading="lazy" title="{name}" '
        'style="width: 100%; height: 80vh; border: 1px solid #8886"></iframe>\n'
        for name in (report.name.removesuffix(COMPRESSED) for report in reports)
    )


def with_reports(app: Sphinx, error: Exception | None) -> None:
    """Write the reports of the gallery beside its page."""
    if error is not None:
        return
    for report in gallery(app, ".md"):
        shutil.copy(report, Path(app.outdir, "gallery", report.name))
    for report in gallery(app, COMPRESSED):
        page = Path(app.outdir, "gallery", report.name.replace(COMPRESSED, ".html"))
        page.write_text(html.render(open_report(report, all_rules())), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Let Sphinx call us for each page it reads, and at its end."""
    app.connect("source-read", with_contents)
    app.connect("build-finished", with_reports)
