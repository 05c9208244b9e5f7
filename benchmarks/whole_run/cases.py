"""Pairs of whole programs: one with a planted cause, one without it, and what a plain timer says of them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

TWINS = ("sick", "healthy")

TIMED = "timed"
"""The sick program with a timer in it."""


@dataclass(frozen=True, slots=True)
class Case:
    """A pair in a folder; seconds are those of the whole programs without tfdoctor.

    The cause is at the lines that its author names, or at those that his fix changes. ``healthy_s`` is the time of
    the sick program with the fix alone: a healthy program may train longer.
    ``true`` are rules whose findings in the healthy program are right. ``timed.py`` is the sick program with a
    timer of its phases in it (see ``phase_timer.py``).
    """

    folder: Path
    line: int
    end_line: int
    changed: frozenset[int] = frozenset()
    title: str = ""
    sick_s: float | None = None
    healthy_s: float | None = None
    true: frozenset[str] = frozenset()

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read ``case.json``; all but ``line`` may be missing there."""
        data: dict[str, Any] = json.loads((folder / "case.json").read_text("utf-8"))
        return cls(
            folder=folder,
            line=data["line"],
            end_line=data.get("end_line") or data["line"],
            changed=frozenset(data.get("changed") or ()),
            title=data.get("title") or "",
            sick_s=data.get("sick_s"),
            healthy_s=data.get("healthy_s"),
            true=frozenset(data.get("true_in_healthy") or ()),
        )

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def saving(self) -> float | None:
        """The share of the sick program's time that the healthy one does not take."""
        if not self.sick_s or self.healthy_s is None:
            return None
        return 1.0 - self.healthy_s / self.sick_s

    def script(self, twin: str, folder: Path) -> Path:
        """Write one of the programs into a folder for all pairs, where it can run, and return its path."""
        path = folder / self.name / f"{twin}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((self.folder / path.name).read_bytes())
        return path

    @property
    def is_timed(self) -> bool:
        """Whether there is a program with a timer."""
        return (self.folder / f"{TIMED}.py").is_file()

    def holds(self, path: str, line: int) -> bool:
        """Say whether a line is one of those of the planted cause."""
        is_cause = self.line <= line <= self.end_line or line in self.changed
        return is_cause and Path(path).name == "sick.py"


def cases(folder: Path, only: Sequence[str] = ()) -> Iterator[Case]:
    """Yield the pairs below a folder whose names begin with one of some texts; without any, all."""
    for file in sorted(folder.glob("*/case.json")):
        if not only or file.parent.name.startswith(tuple(only)):
            yield Case.read(file.parent)
