"""The report as Markdown: one comment on a pull request, or a CI job's summary."""

import re
from collections.abc import Callable, Sequence
from html import unescape

from markupsafe import Markup

from tfdoctor.diagnosis import Diagnosis, StepsSummary
from tfdoctor.report import words
from tfdoctor.report.page import page
from tfdoctor.report.pictures.step_bars import lines
from tfdoctor.report.template import fill

LIMIT = 64_000  # Bytes: GitHub refuses comments of more than 65,536 characters
ROWS = 10  # Rows of a table that a comment shows
BAR = 30  # Characters of the longest possible bar: what fits beside its figures in a comment on a phone
# Marks in the filled template: they begin a folded part, what is in it, and one of a list. No text has them.
FOLD, PART, ITEM = "\x1c", "\x1e", "\x1f"
HELD = "\x1d"  # Stands for the end of a line that stays: of code, also after an empty one
_NOT_IN_MARKERS = re.compile(r"[^A-Za-z0-9_.]+")  # A title could end the comment that the marker is
_RESERVE = 400  # Bytes kept for the line that says what was left out, and for closing what is open

_MARKUP = re.compile(r"([\\`*_\[\]|~$])")
_ESCAPE = re.compile(r"\\([\\`*_\[\]~$])")  # What `_MARKUP` needs, apart from the bars between cells
_REFERENCE = re.compile(r"[@#!$%&~](?=\w)|:(?=\w|//)|(?<=www)\.")
_LIST_OR_HEADING = re.compile(r"^(\d*)([-+#=.)])(?=\s|$|[-=#>])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ZERO_WIDTH = "\u200b"  # Keeps a host from turning @names, #numbers, :emoji: and addresses in a name into links


def as_it_is(markdown: str) -> str:
    """Return Markdown for who reads it as it is, such as a language model: without what a host needs."""
    return _ESCAPE.sub(r"\1", unescape(markdown.replace(_ZERO_WIDTH, "")))


def render(diagnosis: Diagnosis) -> str:
    """Return the report, most important parts first, short enough for one comment."""
    shown = page(diagnosis)
    text = filled("report.md.jinja", page=shown, d=shown.diagnosis, fold=FOLD, part=PART, item=ITEM)
    head, *folds = re.split(rf"\n*{FOLD}", text)
    room = LIMIT - _RESERVE - len(head.encode())
    parts = [head]
    for fold in folds:
        title, *blocks = re.split(rf"\n*[{PART}{ITEM}]", fold)
        parts.append(_fold(title, blocks, room, "\n" if ITEM in fold else "\n\n"))
        room -= len(parts[-1].encode()) + 2
    return "\n\n".join(filter(None, parts)) + "\n"


def filled(template: str, **values: object) -> str:
    """Return Markdown of a template, with one empty line between its paragraphs."""
    written = {one.__name__: made(one) for one in (bar, code, code_cell, fenced, marker, more)}
    text = fill(template, escaped, rows=ROWS, **written, **values)
    return re.sub(r"\n{3,}", "\n\n", text).strip().replace(HELD, "\n")


def made(write: Callable[..., str]) -> Callable[..., Markup]:
    """Return a function for templates, whose text is not escaped again; its lines stay as they are."""
    return lambda *args: Markup(write(*args).replace("\n", HELD))  # noqa: S704 - no HTML is made of it


def _fold(title: str, blocks: Sequence[str], room: int, apart: str) -> str:
    """Return as many blocks as there is room for, folded under the title; "" where none fits."""
    start = f"<details><summary>{title}</summary>\n"
    kept, used = [], len(start) + _RESERVE
    for block in blocks:
        used += len(block.encode()) + 2
        if used > room:
            break
        kept.append(block)
    if not kept:
        return ""
    left_out = more(len(blocks) - len(kept), "entry", "entries")
    return words.joined(start.rstrip(), apart.join(kept).rstrip(), left_out, "</details>", by="\n\n")


def marker(title: str) -> str:
    """Return a comment that no reader sees, by which a bot finds its own comment on a change to update it."""
    return f"<!-- tfdoctor-report {_NOT_IN_MARKERS.sub('-', title)} -->"


def bar(steps: StepsSummary) -> str:
    """Return the parts of the step as a picture of text."""
    return fenced("\n".join(figures + blocks for _, figures, blocks in lines(steps, BAR)), "")


def more(left_out: int, singular: str, plural: str = "") -> str:
    """Return how many of a list are left out, and where they are; "" where none is."""
    noun = singular if left_out == 1 else plural or f"{singular}s"
    return f"… {left_out:,} more {noun} in the HTML and JSON reports." if left_out > 0 else ""


def escaped(text: str) -> str:
    """Return text that stays text: no markup, no mention, no reference, no address."""
    parted = _REFERENCE.sub(lambda sign: sign.group() + _ZERO_WIDTH, text)
    marked = _LIST_OR_HEADING.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", parted))
    return marked.translate(_ENTITIES)


def code(text: str) -> str:
    """Return a span of code, its fence longer than any run of backticks in it."""
    if not text:
        return ""
    fence = _fence(text, 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def code_cell(text: str) -> str:
    """Return a span of code for a table, where a bar would end the cell even inside code."""
    return code(text).replace("|", r"\|")


def fenced(text: str, language: str = "python") -> str:
    """Return a block of code, or nothing."""
    fence = _fence(text, 3)
    return f"{fence}{language}\n{text}\n{fence}" if text else ""


def _fence(text: str, least: int) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(least, longest + 1)
