"""A run of a history: what its report says of it, and which runs can be compared with it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Self

from tfdoctor.compare.baseline import program_of_report
from tfdoctor.compare.budgets import FIGURES
from tfdoctor.compare.reports import findings
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.history_report import HistoryFinding, HistoryRun, RunMetric
from tfdoctor.fleet.names import job
from tfdoctor.recording.manifest import SCRIPT
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Errored, NotApplicable


class SeriesKey(Record, order=True):
    """What runs must share to be one series: the program, its arguments, and the kind of machine."""

    program: str
    arguments: str
    machine: str


class ReadRun(Record):
    """A run with what decides its series, and with what may change between the runs of one."""

    key: SeriesKey
    run: HistoryRun  # without the step
    ended_early: bool  # after its traced steps, as asked
    untraced_ms: float | None  # median step outside of the traced ones
    shown_ms: float | None  # the step that its report is about
    traits: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, place: str, report: Diagnosis) -> Self:
        """Return the run of a report."""
        subject, conditions = report.subject, report.conditions
        key = SeriesKey(program_of_report(report) or job(place, ""), _arguments(report), _machine(report))
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
        early = bool(report.run and report.run.ended_early)
        traits = tuple(_traits(report))
        return cls(key, run, early, conditions.untraced_ms, report.steps.shown_ms, traits)

    @property
    def order(self) -> tuple[str, str, str]:
        """By which runs are in order: the time of the commit, or of the run where that is unknown."""
        run = self.run
        return run.committed or run.recorded, run.recorded, run.place

    def without_time(self) -> Self:
        """Return it without the time of the whole run."""
        values = dict(self.run.values)
        values.pop(RunMetric.RUN, None)
        return replace(self, run=replace(self.run, values=values))

    def with_step(self, step_ms: float | None) -> HistoryRun:
        """Return the run with its step."""
        step = {RunMetric.STEP: step_ms} if step_ms else {}
        return replace(self.run, values={**step, **self.run.values})


def _findings(report: Diagnosis) -> dict[str, HistoryFinding]:
    """Return the findings about the run by their rules, with the share that each saves.

    It is the share of the step where the run was ended after its traced steps, as asked.
    """
    found, early = {}, report.run is not None and report.run.ended_early
    for result, finding in findings(report):
        of_run, of_step = result.run, result.saving
        saving = (of_step or of_run) if early else (of_run or of_step)
        severity = result.severity or finding.severity
        found[result.rule.name] = HistoryFinding(
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
    many = f"{subject.devices_used} \N{MULTIPLICATION SIGN} " if (subject.devices_used or 1) > 1 else ""
    cpu = conditions.cpu_model if conditions.cpu_model != name else ""
    cores = f"{conditions.cores_usable:g} cores" if conditions.cores_usable else ""
    return ", ".join(filter(None, (f"{many}{name}", cpu, cores)))


def _traits(report: Diagnosis) -> Iterator[tuple[str, str]]:
    """Yield what may change with a commit, and is no change of the program."""
    yield from sorted(report.subject.framework.items())
    size = report.conditions.batch_size
    yield "batch size", "" if size is None else str(size)
