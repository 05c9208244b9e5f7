"""A run of a history: what its report says of it, and which runs can be compared with it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.compare.baseline import program_of_report
from tfdoctor.compare.budgets import FIGURES
from tfdoctor.compare.reports import findings
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.history_report import HistoryFinding, HistoryRun, RunMetric
from tfdoctor.fleet.names import job
from tfdoctor.recording.manifest import SCRIPT
from tfdoctor.terms.verdict import Errored, NotApplicable


@dataclass(frozen=True, slots=True, order=True)
class SeriesKey:
    """What runs must share to be one series: the program, its arguments, and the kind of machine."""

    program: str
    arguments: str
    machine: str


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A run with what decides its series, and with what may change between the runs of one."""

    key: SeriesKey
    run: HistoryRun  # without the step
    untraced_ms: float | None  # median step outside of the traced ones
    shown_ms: float | None  # the step that its report is about
    traits: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, place: str, report: Diagnosis) -> Self:
        """Return the run of a report."""
        subject, conditions = report.subject, report.conditions
        key = SeriesKey(
            program_of_report(report) or job(place, ""), _arguments(report), _machine(report)
        )
        values = {
            metric: value / metric.scale
            for metric in (RunMetric.RUN, RunMetric.MEMORY)
            if (value := FIGURES[metric.value][0](report).value)
        }
        run = HistoryRun(
            place=place,
            commit=subject.commit,
            committed=subject.committed,
            recorded=subject.recorded,
            changed=subject.changed,
            values=values,
            findings=_findings(report),
            checked=frozenset(
                result.rule.name
                for result in report.results
                if not isinstance(result.outcome, NotApplicable | Errored)
            ),
        )
        return cls(key, run, conditions.untraced_ms, report.steps.shown_ms, tuple(_traits(report)))

    @property
    def order(self) -> tuple[str, str, str]:
        """By which runs are in order: the time of the commit, or of the run where that is unknown."""
        run = self.run
        return run.committed or run.recorded, run.recorded, run.place

    def with_step(self, step_ms: float | None) -> HistoryRun:
        """Return the run with its step."""
        step = {RunMetric.STEP: step_ms} if step_ms else {}
        return replace(self.run, values={**step, **self.run.values})


def _findings(report: Diagnosis) -> dict[str, HistoryFinding]:
    """Return the findings about the run by their rules, with the share that each saves."""
    found = {}
    for one in findings(report):
        result, saving = one.result, one.result.run or one.result.saving
        severity = result.severity or one.finding.severity
        found[one.rule] = HistoryFinding(
            severity.name.lower() if severity else None, saving.share if saving else None
        )
    return found


def _arguments(report: Diagnosis) -> str:
    """Return the words of the command after the program."""
    words = report.subject.command
    script = next((at for at, word in enumerate(words) if word.endswith(SCRIPT)), None)
    if script is None and "-m" in words:
        script = words.index("-m") + 1
    return " ".join(words[script + 1 :]) if script is not None else ""


def _machine(report: Diagnosis) -> str:
    """Return the devices and the CPU of a run; host names differ between equal machines of a CI."""
    subject, conditions = report.subject, report.conditions
    name = subject.device_name or subject.device or "unknown device"
    many = (
        f"{subject.devices_used} \N{MULTIPLICATION SIGN} "
        if (subject.devices_used or 1) > 1
        else ""
    )
    cpu = conditions.cpu_model if conditions.cpu_model != name else ""
    cores = f"{conditions.cores_usable:g} cores" if conditions.cores_usable else ""
    return ", ".join(filter(None, (f"{many}{name}", cpu, cores)))


def _traits(report: Diagnosis) -> Iterator[tuple[str, str]]:
    """Yield what may change with a commit, and is no change of the program."""
    yield from sorted(report.subject.framework.items())
    size = report.conditions.batch_size
    yield "batch size", "" if size is None else str(size)
