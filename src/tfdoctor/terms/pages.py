"""The page of a rule: its documentation in Markdown, the code that its remedies show, and what is generated.

A built-in rule has it in a file beside its module, one of the user in its module's docstring. The file's last
sections, from *About* on, are written by `make docs`, which also completes the table of limits.
"""

import ast
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Self

from tfdoctor.terms.record import Record, field

# What is written by hand, in this order.
SECTIONS = ("What it checks", "Why it matters", "How to fix", "Holds for", "Sources")
# The sections of the file that are not shown: the version that brought the rule, what is in the way of an edit, and
# code by name; then those that are generated.
SINCE, BY_HAND, CODE = "Since", "By hand", "Code"
ABOUT, LIMITS, EXAMPLE = "About", "Limits", "Example"

BLOCK = re.compile(r"^```python (\S+)\n(.*?)\n```$", re.DOTALL | re.MULTILINE)

RULES = Path(__file__).resolve().parent.parent / "rules"


class RuleDoc(Record):
    """A rule's documentation, in Markdown; ``example`` is the text of that section, "" for an own rule.

    ``limits`` says by name what each limit limits, with unit and reason, for those that the page has in a table.
    ``by_hand`` is a clause that says what is in the way of an edit; "" where that is not said.
    """

    title: str
    sections: Mapping[str, str] = field(default_factory=dict)
    example: str = ""
    limits: Mapping[str, str] = field(default_factory=dict)
    since: str = ""
    by_hand: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Split a page, or a docstring, at its ``##`` headings.

        Raises:
            ValueError: a section is missing or empty.
        """
        title, sections = _split(text)
        missing = [name for name in SECTIONS if not sections.get(name)]
        if missing:
            raise ValueError(f"{title!r} lacks {', '.join(missing)}")
        apart = {SINCE, BY_HAND, CODE, ABOUT, LIMITS, EXAMPLE}
        own = {name: body for name, body in sections.items() if name not in apart}
        rows = [line for line in sections.get(LIMITS, "").splitlines() if line.startswith("| `")]
        cells = [row.removeprefix("| ").removesuffix(" |").split(" | ", 2) for row in rows]
        limits = {name.strip("`"): why.replace(r"\|", "|") for name, _, why in cells}
        by_hand = " ".join(sections.get(BY_HAND, "").split())
        return cls(title, own, sections.get(EXAMPLE, ""), limits, sections.get(SINCE, ""), by_hand)


def page(file: str) -> tuple[str, Mapping[str, str]]:
    """Return the page beside a rule's module, and its blocks of code by name."""
    module = Path(file)
    path = (module.parent if module.stem == "__init__" else module).with_suffix(".md")
    text = path.read_text(encoding="utf-8")
    return text, dict(BLOCK.findall(_split(text)[1].get(CODE, "")))


def built_in_pages() -> dict[str, Path]:
    """Return where the page of each built-in rule is, by the rule's name: no rule is loaded for it."""
    return {path.stem.replace("_", "-"): path for path in sorted(RULES.glob("*/*.md"), key=lambda path: path.stem)}


def built_in(name: str) -> str:
    """Return the page of a built-in rule, as it is shown, without loading the rule; "" where there is none."""
    path = built_in_pages().get(name)
    text = path.read_text(encoding="utf-8") if path else ""
    return shown(text) if f"\n## {ABOUT}\n" in text else ""


def shown(text: str) -> str:
    """Return a page file as it is shown: what the rule is about first, without what serves the program alone."""
    title, sections = _split(text)
    first = f"# {title}\n\n{sections.pop(ABOUT)}\n"
    rest = (f"## {name}\n\n{body}\n" for name, body in sections.items() if name not in {SINCE, BY_HAND, CODE})
    return "\n".join((first, *rest))


def docstring(module: ModuleType) -> str:
    """Return the docstring of a module that was compiled without (``python -OO``), from its source."""
    return ast.get_docstring(ast.parse(inspect.getsource(module)), clean=False) or ""


def _split(text: str) -> tuple[str, dict[str, str]]:
    """Return the title, and the sections by heading."""
    title, *rest = re.split(r"^## (.+)$", text.strip(), flags=re.MULTILINE)
    headings, bodies = rest[::2], rest[1::2]
    sections = {heading.strip(): body.strip() for heading, body in zip(headings, bodies, strict=True)}
    return title.strip().removeprefix("# ").removesuffix("."), sections
