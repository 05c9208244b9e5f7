"""The templates of HTML pages and what they share."""

import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256

from jinja2 import BytecodeCache, Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from tfdoctor.report import findings, hosts, run, sections, sentences, tables, trial_words, trials, words
from tfdoctor.report.pictures.palette import DARK_PAGE, LIGHT_PAGE, PART_COLOURS, ink
from tfdoctor.report.pictures.step_bars import caption, lanes, ticks
from tfdoctor.terms.humanize import counted, duration, location, milliseconds, place, quantity
from tfdoctor.terms.text import block, name, prose, sentence, unbroken

ROWS = 100  # Rows of a table that a page contains; the JSON in it has all
UNFOLDED_ROWS = 10  # Rows of a table that a page shows at once

_IN_SCRIPT = {char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}

_UNUSED = ["html_block", "html_inline", "image", "heading", "lheading", "hr", "reference", "entity"]
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable(_UNUSED)
_HTTPS = re.compile(r"https://[a-z0-9]", re.IGNORECASE)
setattr(_PARSER, "validateLink", _HTTPS.match)  # noqa: B010 - how its documentation replaces it


# RFC 1924's, with ``,`` for ``<``: so the text can neither close nor open an element.
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~"

# What templates call for their words.
MODULES = (findings, hosts, run, sections, sentences, tables, trial_words, trials, words)


@cache
def environment(escaped: Callable[[str], str] | None = None) -> Environment:
    """Return the environment of templates: without undefined names, with autoescape: of HTML, or as said."""

    def written(value: object) -> object:
        if escaped is None or isinstance(value, Markup):
            return value
        return Markup(escaped(str(value)))  # noqa: S704 - for files that are no HTML

    try:  # compiled templates take 0.2 s to make: kept in a folder of the user's alone below the temporary one
        compiled: BytecodeCache | None = FileSystemBytecodeCache()
    except (OSError, RuntimeError):  # there is no such place
        compiled = None
    made = Environment(
        loader=PackageLoader("tfdoctor.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        bytecode_cache=compiled,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=written,
    )
    made.filters |= {one.__name__: one for one in (name, prose, sentence, quantity, milliseconds, location, place)}
    made.filters |= {
        "markdown": to_html, "coded": coded, "unbroken": unbroken, "breakable": breakable, "in_script": in_script,
        "duration": duration, "counted": counted, "ink": ink, "caption": caption, "lanes": lanes, "ticks": ticks,
        "block": block,
    }  # fmt: skip
    made.globals |= {
        "asset": asset, "script_hash": script_hash, "plotly": plotly,
        "alphabet": ALPHABET, "most_rows": ROWS, "unfolded_rows": UNFOLDED_ROWS, "colours": PART_COLOURS,
        "surfaces": (LIGHT_PAGE, DARK_PAGE),
    }  # fmt: skip
    made.globals |= {module.__name__.rpartition(".")[2]: module for module in MODULES}
    return made


def fill(template: str, escaped: Callable[[str], str] | None = None, /, **values: object) -> str:
    """Return a page of a template with these values, all of the names that it knows."""
    return environment(escaped).get_template(template).render(values)


def plotly() -> list[str]:
    """Return the hash by which a page's policy lets the script that draws pictures run, and the script, packed.

    ``make plotly`` gzips the part of plotly.js that pages use, and writes it in base 85: four bytes as five
    characters of ALPHABET. Of 1.3 MB, 0.5 MB are left. The browser undoes both.
    """
    return [*asset("plotly.b85").split()]


def script_hash(script: bytes | str) -> str:
    """Return the hash under which a page's policy lets this script run, and no other."""
    data = script.encode() if isinstance(script, str) else script
    return f"sha256-{b64encode(sha256(data).digest()).decode('ascii')}"


@cache
def asset(name: str) -> Markup:
    """Return the text of a style sheet or a script."""
    source, *_ = PackageLoader("tfdoctor.report", "assets").get_source(environment(), name)
    return Markup(source)  # noqa: S704 - our own file


def in_script(json_text: str) -> Markup:
    """Return JSON that cannot end the script element it stands in."""
    for char, escaped in _IN_SCRIPT.items():  # faster than by a table: the steps of a long run are many megabytes
        json_text = json_text.replace(char, escaped)
    return Markup(json_text)  # noqa: S704 - no "<" is left


def breakable(cell: str) -> Markup:
    """Return a cell whose long words may end a line after a separator, and nowhere else; no number does."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/,.:\])])(?!(?<=\d\.)\d)(?=\w)", cell))


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
