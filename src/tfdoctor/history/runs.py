"""The runs of a history: read from stored reports or recordings, what each says, and which can be compared."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from tfdoctor import __version__
from tfdoctor.compare.baseline import program_of_report
from tfdoctor.compare.budgets import FIGURES
from tfdoctor.compare.reports import Examine, findings
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.history_report import HistoryFinding, HistoryRun, RunMetric
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.fleet.names import job
from tfdoctor.fleet.places import FoundRecording
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import SCRIPT
from tfdoctor.remote.fetching import fetched_files
from tfdoctor.remote.filesystem import is_url
from tfdoctor.stored.files import NAMES, is_report, open_report
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import is_below
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Errored, NotApplicable


class ReadRun(Record):
    """A run with what decides its series, and with what may change between the runs of one."""

    key: tuple[str, str, str]  # the program, its arguments and the kind of machine: those of a series share it
    run: HistoryRun  # without the step
    ended_early: bool  # after its traced steps, as asked
    untraced_ms: float | None  # median step outside of the traced ones
    shown_ms: float | None  # the step that its report is about
    traits: tuple[tuple[str, str], ...]  # what may change with a commit, and is no change of the program

    @classmethod
    def of(cls, place: str, report: Diagnosis) -> Self:
        """Return the run of a report."""
        subject, size = report.subject, report.conditions.batch_size
        early = bool(report.run and report.run.ended_early)
        values = {
            metric: value / metric.scale
            for metric in (RunMetric.RUN, RunMetric.MEMORY)
            if (value := FIGURES[metric.value](report).value)
        }
        checked = [one for one in report.results if not isinstance(one.outcome, NotApplicable | Errored)]
        run = HistoryRun(
            place=place,
            commit=subject.commit,
            committed=subject.committed,
            recorded=subject.recorded,
            changed=subject.changed,
            values=values,
            findings=_findings(report, early=early),
            checked=frozenset(one.rule.name for one in checked),
        )
        traits = (*sorted(subject.framework.items()), ("batch size", "" if size is None else str(size)))
        key = _key(report, place)
        return cls(key, run, early, report.conditions.untraced_ms, report.steps.shown_ms, traits)

    @property
    def program(self) -> str:
        """The program."""
        return self.key[0]

    @property
    def order(self) -> tuple[str, str, str]:
        """By which runs are in order: the time of the commit, or of the run where that is unknown."""
        run = self.run
        return run.committed or run.recorded, run.recorded, run.place

    def with_step(self, step_ms: float | None, *, timed: bool = True) -> HistoryRun:
        """Return the run with its step; without the time of the whole run if it is not ``timed``."""
        step = {RunMetric.STEP: step_ms} if step_ms else {}
        own = {metric: value for metric, value in self.run.values.items() if timed or metric is not RunMetric.RUN}
        return replace(self.run, values={**step, **own})


def _key(report: Diagnosis, place: str) -> tuple[str, str, str]:
    """Return what decides the series of a run; host names differ between equal machines of a CI."""
    subject, conditions, words = report.subject, report.conditions, report.subject.command
    program = next((at for at, word in enumerate(words) if word.endswith(SCRIPT)), None)
    if program is None and "-m" in words:
        program = words.index("-m") + 1
    arguments = words[program + 1 :] if program is not None else ()
    name = subject.device_name or subject.device or "unknown device"
    many = f"{subject.devices_used} \N{MULTIPLICATION SIGN} " if (subject.devices_used or 1) > 1 else ""
    cpu = conditions.cpu_model if conditions.cpu_model != name else ""
    cores = f"{conditions.cores_usable:g} cores" if conditions.cores_usable else ""
    machine = ", ".join(filter(None, (f"{many}{name}", cpu, cores)))
    return program_of_report(report) or job(place, ""), " ".join(arguments), machine


def _findings(report: Diagnosis, *, early: bool) -> dict[str, HistoryFinding]:
    """Return the findings about the run by their rules, with the share that each saves.

    It is the share of the step where the run was ended after its traced steps, as asked.
    """
    found = {}
    for result, finding in findings(report):
        of_run, of_step = result.run, result.saving
        saving = (of_step or of_run) if early else (of_run or of_step)
        severity = result.severity or finding.severity
        found[result.rule.name] = HistoryFinding(
            severity.name.lower() if severity else None, saving.share if saving else None
        )
    return found


def read_all(
    places: Sequence[FoundRecording], examine: Examine, rules: Sequence[Rule]
) -> Iterator[tuple[str, Diagnosis | InputError]]:
    """Yield each place with its report, or with why it cannot be read."""
    with tempfile.TemporaryDirectory(prefix="tfdoctor-") as scratch:
        for number, place in enumerate(places):
            try:
                yield place.shown, _read(place, Path(scratch, str(number)), examine, rules)
            except (InputError, OSError) as error:
                yield (place.shown, error if isinstance(error, InputError) else InputError(str(error)))


def _read(one: FoundRecording, scratch: Path, examine: Examine, rules: Sequence[Rule]) -> Diagnosis:
    """Return the report of a place; that beside a recording counts where this version wrote it.

    Raises:
        InputError: it cannot be read.
        OSError: it cannot be fetched.
    """
    at = Path(one.place)
    if is_url(one.place):
        scratch.mkdir()
        at = fetched_files(one.place, one.files, scratch)
    if is_report(at):
        return open_report(at, rules)
    for stored in (at / name for name in NAMES):
        with suppress(InputError):  # a damaged one: the recording is there
            if stored.is_file() and is_below(stored, at):
                report = open_report(stored, rules)
                if report.version == __version__ and report.subject.recorded:
                    return report
    recording = Recording.open(at)
    return examine(recording, recording.title(at))
