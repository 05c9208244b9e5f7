"""A rule is a module: its file name is its id, its docstring is its documentation."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import Self

from tfdoctor.facts.chart import kind_of, needs
from tfdoctor.verdict import Verdict

SECTIONS = ("What it checks", "Why it matters", "How to fix", "Holds for", "Sources")


class Topic(StrEnum):
    """The part of training a rule looks at."""

    INPUT = "input"
    PRECISION = "precision"
    OPERATIONS = "operations"
    EXECUTION = "execution"
    SCALE = "scale"
    RECORDING = "recording"


@dataclass(frozen=True, slots=True)
class RuleDoc:
    """A rule's documentation, in Markdown."""

    title: str
    sections: dict[str, str]

    @classmethod
    def parse(cls, docstring: str) -> Self:
        """Split a docstring at its ``##`` headings.

        Raises:
            ValueError: a section is missing or empty.
        """
        title, *rest = re.split(r"^## (.+)$", docstring.strip(), flags=re.MULTILINE)
        headings, bodies = rest[::2], rest[1::2]
        sections = {h.strip(): b.strip() for h, b in zip(headings, bodies, strict=True)}
        missing = [s for s in SECTIONS if not sections.get(s)]
        if missing:
            raise ValueError(f"{title.strip()!r} lacks {', '.join(missing)}")
        return cls(title.strip().removesuffix("."), sections)


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that can be wrong with a training run, and how to see it."""

    name: str
    topic: Topic
    since: str
    doc: RuleDoc
    needs: tuple[str, ...]
    check: Callable[..., Verdict]
    sick: Callable[[], Verdict]
    healthy: Callable[[], Verdict]

    @classmethod
    def from_module(cls, module: ModuleType) -> Self:
        """Read the rule that a module defines.

        Raises:
            ValueError: the docstring lacks a section.
            AttributeError: the module lacks a part of a rule.
        """
        return cls(
            name=module.__name__.rpartition(".")[2].replace("_", "-"),
            topic=module.TOPIC,
            since=module.SINCE,
            doc=RuleDoc.parse(module.__doc__ or ""),
            needs=tuple(kind_of(kind).__name__ for kind in needs(module.check).values()),
            check=module.check,
            sick=module.sick,
            healthy=module.healthy,
        )
