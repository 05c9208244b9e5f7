"""Sets what tfdoctor said against what is true: by rule, and by saving."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.accuracy.corpus import Pair
from benchmarks.accuracy.runs import Promise, Report


@dataclass(slots=True)
class Score:
    """How often one rule was found where it had to be, was missed, or was found where nothing is."""

    found: int = 0
    missed: int = 0
    falsely: int = 0


@dataclass(slots=True)
class Measured:
    """A pair, what tfdoctor said of its twins, and their steps in ms, a pair of runs after the other."""

    pair: Pair
    reports: Mapping[str, Report]
    rounds: list[tuple[float, float]] = field(default_factory=list)  # fault, fixed

    @property
    def savings(self) -> list[float]:
        """The share of the faulty twin's step that the fix saved, in each round."""
        return [1.0 - fixed / fault for fault, fixed in self.rounds]

    @property
    def saving(self) -> float | None:
        """Their median."""
        return statistics.median(self.savings) if self.rounds else None

    @property
    def spread(self) -> tuple[float, float] | None:
        """Their lower and upper quartile."""
        if len(self.rounds) < 2:  # noqa: PLR2004 - as quantiles wants
            return None
        low, _, high = statistics.quantiles(self.savings, n=4, method="inclusive")
        return low, high

    @property
    def predicted(self) -> Promise | None:
        """What the rule whose remedy was followed promised on the faulty twin."""
        report = self.reports.get("fault")
        return report.promises.get(self.pair.remedy) if report else None

    @property
    def error(self) -> float | None:
        """Predicted less measured saving, in shares of the faulty step."""
        if self.predicted is None or self.saving is None:
            return None
        return self.predicted.share - self.saving

    def mistakes(self) -> Iterable[str]:
        """Say what was missed and what was falsely found."""
        for twin, report in self.reports.items():
            truth = self.pair.truth(twin)
            yield from (f"{twin}: missed {rule}" for rule in sorted(truth - report.found))
            for rule in sorted(report.found - truth - set(self.pair.undecided)):
                promised = report.promises.get(rule)
                yield f"{twin}: {rule} falsely ({f'{promised.share:.0%}' if promised else 'no figure'})"


def scores(measured: Iterable[Measured]) -> dict[str, Score]:
    """Count what was found, missed and falsely found, by rule."""
    found: defaultdict[str, Score] = defaultdict(Score)
    for one in measured:
        for twin, report in one.reports.items():
            truth = one.pair.truth(twin)
            for rule in truth & report.found:
                found[rule].found += 1
            for rule in truth - report.found:
                found[rule].missed += 1
            for rule in report.found - truth - set(one.pair.undecided):
                found[rule].falsely += 1
    return dict(sorted(found.items()))


def recall(counted: Iterable[Score]) -> float | None:
    """Return the share that was found of what had to be."""
    rows = list(counted)
    due = sum(row.found + row.missed for row in rows)
    return sum(row.found for row in rows) / due if due else None


def precision(counted: Iterable[Score]) -> float | None:
    """Return the share that is true of what was said."""
    rows = list(counted)
    said = sum(row.found + row.falsely for row in rows)
    return sum(row.found for row in rows) / said if said else None


@dataclass(frozen=True, slots=True)
class Errors:
    """How far predicted savings were off: number, median and 90th percentile, in shares of the step."""

    number: int
    median: float
    ninetieth: float


def errors(measured: Sequence[Measured], *, at_most: bool) -> Errors | None:
    """Return the absolute errors of the expected savings, or of the ceilings as if they were expected."""
    off = [
        abs(one.error)
        for one in measured
        if one.error is not None and one.predicted and one.predicted.at_most == at_most
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


HELD = 0.05
"""Of the step: so far may a measured saving be above a ceiling before it counts as broken."""


def broken(measured: Iterable[Measured]) -> tuple[int, int]:
    """Return how many ceilings were exceeded, and of how many."""
    ceilings = [one.error for one in measured if one.predicted and one.predicted.at_most]
    known = [error for error in ceilings if error is not None]
    return sum(error < -HELD for error in known), len(known)
