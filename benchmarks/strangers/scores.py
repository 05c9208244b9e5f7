"""Compares the reports on a round with what its cases declare."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.accuracy.runs import GENERAL
from benchmarks.accuracy.scores import Errors, summary
from benchmarks.strangers.cases import HEALTHY, SICK, Case

NEAR = 2
"""Lines between a place and the fault's: a call may span several."""

COUNTS = 0.10
"""Share of the step that a fix must save, measured without a profiler, for its fault to count."""

HELD = 0.05
"""Share of the step by which a measured saving may exceed a ceiling."""


@dataclass(frozen=True, slots=True)
class Named:
    """One finding: its rule, the predicted share of the step (None is unknown), whether at most, and its lines.

    ``edit`` says whether the report changes the script's own lines for one of its remedies.
    """

    rule: str
    share: float | None
    at_most: bool
    lines: tuple[int, ...]
    edit: bool = False
    severity: str = ""
    run: float | None = None  # share of the run


def findings(report: Mapping[str, Any]) -> list[Named]:
    """Return the findings that ask for a change now, without those about the recording."""
    found = []
    for result in report["results"]:
        saving = result["saving"]
        if result["outcome"] != "finding" or result["topic"] == "recording":
            continue
        if saving and saving["share"] <= 0.0:
            continue
        lines = tuple(_lines([result["remedies"], result["evidence"]]))
        share = saving["share"] if saving else None
        at_most = bool(saving) and saving["bound"] == "at-most"
        edit = any(remedy.get("edit") for remedy in result["remedies"])
        severity = result.get("severity") or ""
        of_run = result["run"]["share"] if result.get("run") else None
        found.append(Named(result["rule"], share, at_most, lines, edit, severity, of_run))
    return found


def _lines(node: Any) -> Iterable[int]:
    if isinstance(node, dict):
        if isinstance(node.get("line"), int) and "path" in node:
            yield node["line"]
        for value in node.values():
            yield from _lines(value)
    elif isinstance(node, list):
        for value in node:
            yield from _lines(value)


@dataclass(slots=True)
class Scored:
    """A case, the findings in each of its scripts, and the measured saving."""

    case: Case
    found: Mapping[str, list[Named]]
    saving: float | None = None
    times: list[dict[str, dict[str, float]]] = field(default_factory=list)
    named: bool | None = None  # see benchmarks/strangers/classes.py; None is not known
    explained: bool | None = None

    @property
    def slow(self) -> bool:
        """Whether the fix saves enough, as measured here, for the script to count as slow."""
        return not self.case.trap and (self.saving is None or self.saving >= COUNTS)

    @property
    def naming(self) -> list[Named]:
        """The findings that name the fault."""
        return [
            one
            for one in self.found.get(SICK, [])
            if one.rule in self.case.named_by
            or (one.rule in GENERAL | {*self.case.named_if_line} and self._there(one))
        ]

    def _there(self, one: Named) -> bool:
        return any(abs(line - fault) <= NEAR for line in one.lines for fault in self.case.where)

    @property
    def false(self) -> list[tuple[str, str]]:
        """The findings that nobody declared true: the script and the rule."""
        named = {*self.case.named_by, *self.case.named_if_line}
        true = {twin: set(self.case.acceptable.get(twin, ())) for twin in (SICK, HEALTHY)}
        true[SICK] |= named | {one.rule for one in self.naming}
        return [
            (twin, one.rule) for twin, found in self.found.items() for one in found if one.rule not in true[twin]
        ]

    @property
    def predicted(self) -> Named | None:
        """The finding that names the fault with the largest figure; None where none has a figure."""
        named = [one for one in self.naming if self.share(one) is not None]
        priced = [one for one in named if one.rule not in GENERAL] or named
        return max(priced, key=lambda one: self.share(one) or 0.0, default=None)

    def share(self, one: Named) -> float | None:
        """Return what a finding says that its change saves, of what the case measures: the run or the step."""
        return one.run if self.case.by_run else one.share

    @property
    def error(self) -> float | None:
        """Predicted less measured saving, in shares of the step."""
        said = self.share(self.predicted) if self.predicted else None
        return None if said is None or self.saving is None else said - self.saving


@dataclass(frozen=True, slots=True)
class Totals:
    """The score of a round."""

    cases: int
    found: int
    found_by_general: int  # of them by a general rule alone
    true: int
    false: int
    errors: Errors | None
    exceeded: int
    ceilings: int
    named: int
    explained: int

    @property
    def recall(self) -> float:
        """The share of the faults that were named."""
        return self.found / self.cases if self.cases else 1.0

    @property
    def precision(self) -> float:
        """The share of the findings that are true."""
        return self.true / (self.true + self.false) if self.true + self.false else 1.0


def totals(scored: Sequence[Scored]) -> Totals:
    """Add up a round."""
    pairs = [one for one in scored if one.slow]
    named = [one for one in pairs if one.naming]
    false = sum(len(one.false) for one in scored)
    said = sum(len(found) for one in scored for found in one.found.values())
    errors = [one.error for one in pairs if one.error is not None]
    ceilings = [one.error for one in pairs if one.error is not None and one.predicted and one.predicted.at_most]
    return Totals(
        cases=len(pairs),
        found=len(named),
        found_by_general=sum(all(f.rule in GENERAL for f in one.naming) for one in named),
        true=said - false,
        false=false,
        errors=summary([abs(error) for error in errors]),
        exceeded=sum(error < -HELD for error in ceilings),
        ceilings=len(ceilings),
        named=sum(one.named or False for one in pairs),
        explained=sum(one.explained or False for one in pairs),
    )
