"""Compares what reports say of whole programs with what is true of them."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.whole_run.cases import Case
from benchmarks.whole_run.reports import RunFinding, RunReport

RUN = "run"
"""The topic of findings about phases of the run."""

LOUD = ("warning", "critical")
"""Severities of findings that are false in a healthy program."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A pair with the reports on both programs; None is not run.

    ``timed`` is that on the program with a timer of its own, which measured the ``seconds`` of its phases.
    """

    case: Case
    sick: RunReport | None
    healthy: RunReport | None
    timed: RunReport | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def named(self) -> RunFinding | None:
        """The first finding of the sick program that has a line of the cause."""
        found = self.sick.findings if self.sick else ()
        return next((f for f in found if any(self.case.holds(*line) for line in f.lines)), None)

    @property
    def first(self) -> bool:
        """Whether the first of the list names a line of the cause as its own, or as its remedy's."""
        found = self.sick.findings[:1] if self.sick else ()
        return any(self.case.holds(*line) for one in found for line in one.lines[: one.own])

    @property
    def predicted(self) -> float | None:
        """The share of the run that is promised by what names the cause: each ms of a phase is in one finding."""
        named = self.named
        if named is None or named.share is None or named.topic != RUN:
            return named.share if named else None
        found = self.sick.findings if self.sick else ()
        others = [one for one in found if one is not named and one.topic == RUN]
        return named.share + sum(one.share or 0.0 for one in others if self._is_of_cause(one))

    def _is_of_cause(self, finding: RunFinding) -> bool:
        return any(self.case.holds(*line) for line in finding.lines[: finding.own])

    @property
    def error(self) -> float | None:
        """Predicted less true saving, as shares of the run; a saving that is not promised is 0."""
        if self.case.saving is None or self.sick is None:
            return None
        return (self.predicted or 0.0) - self.case.saving

    @property
    def false(self) -> tuple[RunFinding, ...]:
        """The loud findings of the healthy program that are not declared true."""
        found = self.healthy.findings if self.healthy else ()
        return tuple(f for f in found if f.severity in LOUD and f.rule not in self.case.true)

    @property
    def phase_errors(self) -> dict[str, float]:
        """The time of phases in the account less the timer's, as shares of the run."""
        report = self.timed
        if report is None or not report.total_ms or not self.seconds:
            return {}
        return {
            name: (_sum(report.phases, said) - 1000 * _sum(self.seconds, timed)) / report.total_ms
            for name, (said, timed) in PHASES_OF.items()
        }


PHASES_OF = {
    "imports": (("imports",), ("imports",)),
    "preparing and building": (("preparing data", "building"), ("preparing", "building")),
    "training": (
        ("steps", "tracing and compiling", "epoch boundaries", "profiler", "saving"),
        ("training", "training_steps", "between_epochs", "saving"),
    ),
    "evaluation and prediction": (("evaluation", "prediction"), ("evaluation", "prediction")),
}
"""What is compared: phases of the account, and those of the timer, which has tracing and saving in ``fit``."""


def _sum(times: Mapping[str, float], names: Iterable[str]) -> float:
    return sum(times.get(name, 0.0) for name in names)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its aim; ``reached`` is None where nothing was measured."""

    name: str
    value: str
    aim: str
    reached: bool | None


FIRST, CLEAN = 0.90, 0.95
"""Aims: of causes that come first with their line, and of healthy programs without a false finding."""

MEDIAN, NINETIETH, PHASES = 0.08, 0.15, 0.03
"""Aims, as shares of the run: errors of its saving in the median and in nine of ten, and of the phases."""


def figures(scored: Sequence[Scored]) -> Iterator[Figure]:
    """Yield the figures that the issue of the whole run aims at."""
    sick = [one for one in scored if one.sick]
    yield _share("cause first in the list with its line", [one.first for one in sick], FIRST)
    yield _share("cause named with its line", [one.named is not None for one in sick], None)
    clean = [not one.false for one in scored if one.healthy]
    yield _share("healthy programs without a false warning", clean, CLEAN)
    errors = [abs(one.error) for one in scored if one.error is not None]
    yield _error("error of the run's saving, median", quantile(errors, 0.5), MEDIAN)
    yield _error("error of the run's saving, nine of ten", quantile(errors, 0.9), NINETIETH)
    phases = [abs(error) for one in scored for error in one.phase_errors.values()]
    yield _error("error of the phases, median", quantile(phases, 0.5), None)
    yield _error("error of the phases, largest", max(phases, default=None), PHASES)


def quantile(values: Iterable[float], share: float) -> float | None:
    """Return the smallest value that so large a share of the values does not exceed; None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    if share == 0.5:  # noqa: PLR2004 - the median
        return statistics.median(ordered)
    return next(v for at, v in enumerate(ordered, 1) if at >= share * len(ordered))


def _share(name: str, answers: Sequence[bool], aim: float | None) -> Figure:
    if not answers:
        return Figure(name, "-", _percent(aim), None)
    share = sum(answers) / len(answers)
    reached = None if aim is None else share >= aim
    return Figure(name, f"{sum(answers)} of {len(answers)}", _percent(aim), reached)


def _error(name: str, value: float | None, aim: float | None) -> Figure:
    shown = "-" if value is None else f"{100 * value:.1f} points"
    limit = "" if aim is None else f"{100 * aim:.0f} points"
    return Figure(name, shown, limit, None if value is None or aim is None else value <= aim)


def _percent(aim: float | None) -> str:
    return "" if aim is None else f"{aim:.0%}"
