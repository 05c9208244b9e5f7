"""Compares tfdoctor's findings and savings with the truth."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.accuracy.corpus import CORPUS, Pair
from benchmarks.accuracy.runs import Promise, Report


@dataclass(slots=True)
class Score:
    """A rule's true findings, missed findings and false findings."""

    found: int = 0
    missed: int = 0
    falsely: int = 0


@dataclass(frozen=True, slots=True)
class Origin:
    """The day and the machine of a measurement."""

    day: str
    machine: str


@dataclass(slots=True)
class Measured:
    """A pair, tfdoctor's reports on its twins, and their step times in ms for each round."""

    pair: Pair
    reports: Mapping[str, Report]
    rounds: list[tuple[float, float]] = field(default_factory=list)  # fault, fixed
    timed: Origin | None = None
    recorded: Origin | None = None

    @property
    def savings(self) -> list[float]:
        """The share of the faulty twin's step that the fix saved, in each round."""
        return [1.0 - fixed / fault for fault, fixed in self.rounds]

    @property
    def saving(self) -> float | None:
        """The median saving."""
        return statistics.median(self.savings) if self.rounds else None

    @property
    def spread(self) -> tuple[float, float] | None:
        """The lower and the upper quartile of the savings."""
        if len(self.rounds) < 2:  # noqa: PLR2004 - as quantiles wants
            return None
        low, _, high = statistics.quantiles(self.savings, n=4, method="inclusive")
        return low, high

    @property
    def predicted(self) -> Promise | None:
        """The saving that the faulty twin's report promises for the remedy."""
        report = self.reports.get("fault")
        return report.promises.get(self.pair.remedy) if report else None

    @property
    def error(self) -> float | None:
        """Predicted less measured saving, in shares of the faulty step."""
        if self.predicted is None or self.saving is None:
            return None
        return self.predicted.share - self.saving

    def falsely(self, twin: str) -> set[str]:
        """Return the rules that were found in a twin, and are not declared there."""
        found = self.reports[twin].found
        return {*found} - self.pair.truth(twin) - {*self.pair.undecided}

    def mistakes(self) -> Iterable[str]:
        """Yield the missed and the false findings."""
        for twin, report in self.reports.items():
            truth = self.pair.truth(twin)
            yield from (f"{twin}: missed {rule}" for rule in sorted(truth - report.found))
            for rule in sorted(self.falsely(twin)):
                promised = report.promises.get(rule)
                yield f"{twin}: {rule} falsely ({f'{promised.share:.0%}' if promised else 'no figure'})"


def scores(measured: Iterable[Measured]) -> dict[str, Score]:
    """Count what was found, missed and falsely found, by rule."""
    counts: defaultdict[str, Score] = defaultdict(Score)
    for measurement in measured:
        for twin, report in measurement.reports.items():
            truth = measurement.pair.truth(twin)
            for rule in truth & report.found:
                counts[rule].found += 1
            for rule in truth - report.found:
                counts[rule].missed += 1
            for rule in measurement.falsely(twin):
                counts[rule].falsely += 1
    return dict(sorted(counts.items()))


def recall(counted: Iterable[Score]) -> float | None:
    """Return the share of true faults that were found."""
    rows = list(counted)
    due = sum(row.found + row.missed for row in rows)
    return sum(row.found for row in rows) / due if due else None


def precision(counted: Iterable[Score]) -> float | None:
    """Return the share of findings that are true."""
    rows = list(counted)
    reported = sum(row.found + row.falsely for row in rows)
    return sum(row.found for row in rows) / reported if reported else None


@dataclass(frozen=True, slots=True)
class Errors:
    """How far predicted savings were off: number, median and 90th percentile, in shares of the step."""

    number: int
    median: float
    ninetieth: float


def errors(measured: Sequence[Measured], *, at_most: bool) -> Errors | None:
    """Return the absolute errors of the expected savings, or of the ceilings as if they were expected."""
    off = [
        abs(measurement.error)
        for measurement in measured
        if measurement.error is not None and measurement.predicted and measurement.predicted.at_most == at_most
    ]
    return summary(off)


def summary(off: Sequence[float]) -> Errors | None:
    """Return number, median and 90th percentile; None of nothing."""
    if not off:
        return None
    if len(off) == 1:
        return Errors(1, off[0], off[0])
    ninetieth = statistics.quantiles(off, n=10, method="inclusive")[-1]
    return Errors(len(off), statistics.median(off), ninetieth)


def undeclared(counted: Mapping[str, Score]) -> tuple[int, list[str]]:
    """Return how many findings count as false by rules that the corpus declares nowhere, and these rules.

    Most are newer than the declarations: nobody has examined whether their findings are true.
    """
    declared = {rule for pair in CORPUS for rule in (*pair.fault, *pair.fixed, *pair.undecided)}
    rules = [rule for rule, row in counted.items() if row.falsely and rule not in declared]
    return sum(counted[rule].falsely for rule in rules), rules


HELD = 0.05
"""Share of the step by which a measured saving may exceed a ceiling."""


def broken(measured: Iterable[Measured]) -> tuple[list[str], int]:
    """Return the pairs with exceeded ceilings, and the number of all ceilings."""
    ceilings = {one.pair.name: one.error for one in measured if one.predicted and one.predicted.at_most}
    known = {name: error for name, error in ceilings.items() if error is not None}
    return [name for name, error in known.items() if error < -HELD], len(known)
