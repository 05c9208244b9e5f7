"""The variants of a trial: what each changes, and what the report promises of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, count
from pathlib import Path

from tfdoctor.capture.agent.process.masking import masked
from tfdoctor.diagnosis.savings import RunSaving, Saving
from tfdoctor.edits.splice import Splice
from tfdoctor.facts.run_work.run_parts import RunPart
from tfdoctor.terms.record import Record, field

AS_IS = "as it is"

FEWEST_HIDDEN = 4  # Characters of a credential that is looked for in what a program prints


class Variant(Record):
    """A change of the program: other texts of files, environment variables, or settings that the agent makes."""

    name: str
    files: Mapping[Path, bytes] = field(default_factory=dict)  # by absolute path with links resolved
    environment: Mapping[str, str] = field(default_factory=dict)
    runner: Mapping[str, int] = field(default_factory=dict)  # what the agent sets in the program
    action: str = ""  # what it changes, in the words of the report
    rules: tuple[str, ...] = ()  # whose findings it fixes
    promised: Saving | None = None
    promised_run: RunSaving | None = None
    patched: bool = False  # its texts are those of a patch of the user's
    exact: bool = False  # the weights must be the same as without it
    reorders: bool = False  # but for the order in which it draws random numbers
    model: str = ""  # how it changes what is trained, as a clause
    may_keep: bool = True  # it may be among the changes that are kept
    examples: Fraction = Fraction(1)  # of a step, for each one of the program as it is
    splices: tuple[tuple[str, tuple[Splice, ...]], ...] = ()  # by file: changes that no finding's edit makes
    parts: tuple[str, ...] = ()  # the names of the variants that it makes at once
    without: RunPart | None = None  # the part of the program that the agent takes out
    share: float | None = None  # of that part in what recurs in the run

    @property
    def edited(self) -> bool:
        """Whether its texts are made by the edits of findings, which can be made together."""
        return bool(self.rules) and not self.patched and not self.splices

    @property
    def expected(self) -> float | None:
        """The share of the run that the report expects it to save, or of the step; None where it has no figure."""
        promises = (self.promised_run, self.promised)
        return next((one.share for one in promises if one and math.isfinite(one.share)), None)

    @property
    def credentials(self) -> list[str]:
        """The values of its variables that are not to be shown; of the shortest, every text would have some."""
        pairs = [(f"{name}={value}", value) for name, value in self.environment.items()]
        return [value for pair, value in pairs if len(value) >= FEWEST_HIDDEN and masked([pair]) != [pair]]


ORIGINAL = Variant(AS_IS)


class NotTried(Record):
    """A change that is no variant, and why."""

    name: str
    why: str


def distinct(variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants without those that change the same as one before, each with a name of its own."""
    kept: list[Variant] = []
    for variant in variants:
        if all(_change(other) != _change(variant) for other in kept):
            taken = {other.name for other in kept}  # results are kept by name
            numbered = (f"{variant.name} ({number})" for number in count(2))
            names = chain([variant.name], numbered)
            kept.append(replace(variant, name=next(name for name in names if name not in taken)))
    return kept


def _change(variant: Variant) -> tuple[Mapping[Path, bytes], Mapping[str, str], Mapping[str, int]]:
    """Return all that a variant changes."""
    return variant.files, variant.environment, variant.runner
