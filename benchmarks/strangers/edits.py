"""Counts the findings in a round's slow scripts for which the report has an edit of the script."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from benchmarks.accuracy.runs import GENERAL
from benchmarks.strangers.cases import SICK
from benchmarks.strangers.scores import Named, Scored


@dataclass(frozen=True, slots=True)
class EditShare:
    """How many of some findings have an edit."""

    edits: int
    findings: int

    @classmethod
    def of(cls, found: Sequence[Named]) -> Self:
        """Count the findings with an edit."""
        return cls(sum(one.edit for one in found), len(found))

    def __str__(self) -> str:
        return f"{self.edits} of {self.findings}"


@dataclass(frozen=True, slots=True)
class EditCount:
    """The findings with an edit: all of slow scripts, those of specific rules, those that name the fault.

    A general rule names a place and no change, so it never has an edit.
    """

    every: EditShare
    specific: EditShare
    naming: EditShare
    faults: EditShare  # the named faults with an edit in one of the findings that name them

    @classmethod
    def of(cls, scored: Iterable[Scored]) -> Self:
        """Count over a round; a script whose fault costs nothing here counts as well."""
        pairs = [one for one in scored if not one.case.trap]
        every = [found for one in pairs for found in one.found.get(SICK, [])]
        naming = [found for one in pairs for found in one.naming]
        named = [one.naming for one in pairs if one.naming]
        return cls(
            every=EditShare.of(every),
            specific=EditShare.of([one for one in every if one.rule not in GENERAL]),
            naming=EditShare.of(naming),
            faults=EditShare(sum(any(f.edit for f in found) for found in named), len(named)),
        )

    def __str__(self) -> str:
        return (
            f"edits: {self.every} findings, {self.specific} of specific rules, "
            f"{self.naming} that name the fault; {self.faults} named faults"
        )
