"""What a comparison reads in a diagnosis: the step that it is about, and the findings about the run."""

from collections.abc import Mapping

from tfdoctor.diagnosis import Diagnosis, Result, Saving, Takes
from tfdoctor.diagnosis.comparison import AmountKind
from tfdoctor.diagnosis.step import untraced_beside
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Finding, Location


def step_of(report: Diagnosis) -> float | None:
    """Return the step that a report is about, without the profiler's cost where that is noticeable, in ms."""
    return report.steps.untraced_ms or report.steps.step_ms


def without_cost(report: Diagnosis) -> bool:
    """Return whether that step has no noticeable cost of the profiler: untraced steps were timed."""
    steps, outside_ms = report.steps, report.conditions.untraced_ms
    alike = outside_ms is not None and untraced_beside(steps.step_ms, outside_ms) is None
    return steps.untraced_ms is not None or alike


def parts_of(report: Diagnosis) -> Mapping[str, float]:
    """Return the parts of that step, in ms; {} where they are not known."""
    steps = report.steps
    return steps.untraced_breakdown_ms if steps.untraced_ms else steps.breakdown_ms


class Found(Record):
    """A finding about the run."""

    result: Result
    finding: Finding
    step_ms: float  # of its report, as it is compared

    @property
    def rule(self) -> str:
        """The name of its rule."""
        return self.result.rule.name

    @property
    def amount(self) -> Saving | Takes | None:
        """What it is about in ms per step: the saving, or the time that it names."""
        return self.result.saving or self.result.takes

    @property
    def amount_ms(self) -> float | None:
        """The same of the compared step, which may be with the profiler's cost where the report's is without."""
        return self.amount.share * self.step_ms if self.amount else None

    @property
    def run_ms(self) -> float | None:
        """What its change saves of the run."""
        return self.result.run.total.value if self.result.run else None

    @property
    def kind(self) -> AmountKind | None:
        """What that time is."""
        if self.result.saving:
            return AmountKind.SAVING
        return AmountKind.COST if self.amount else None

    @property
    def changes(self) -> Location | None:
        """The first line to change, by which findings are matched."""
        return next((remedy.at for remedy in self.finding.remedies if remedy.at), None)


def findings(report: Diagnosis) -> tuple[Found, ...]:
    """Return the findings about the run, the most severe first."""
    return tuple(
        Found(result, result.outcome, step_of(report) or 0.0)
        for result in report.results
        if isinstance(result.outcome, Finding)
    )
