"""The runs of a history: read one by one, and the file that a team commits.

It has names of baselines, and the changes that the team accepted, with who, when and why.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Self

from tfdoctor import __version__
from tfdoctor.compare.baseline import fitting
from tfdoctor.compare.budgets import FIGURES
from tfdoctor.compare.reports import Examine, diagnosed
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.history_report import Accepted, HistoryFinding, HistoryRun, NamedBaseline, RunMetric, Series
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.fleet.places import FoundRecording, job
from tfdoctor.recording.manifest import program_of
from tfdoctor.remote.fetching import fetched_files
from tfdoctor.remote.filesystem import is_url
from tfdoctor.rulebook.values import hint
from tfdoctor.stored.files import NAMES, open_report
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import content, is_below
from tfdoctor.terms.record import Record, common
from tfdoctor.terms.replacement import content_to_replace
from tfdoctor.terms.verdict import Errored, NotApplicable

SCHEMA = 1  # Of the file
NAME = "tfdoctor-history.json"  # Of the file, in the current folder
ANOTHER = "choose another file"
UNTRACED, SHOWN = "median step outside of the traced ones", "step of the report"  # What the step of a run is


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
        checked = (one for one in report.results if not isinstance(one.outcome, NotApplicable | Errored))
        found = {}
        for result in report.results:
            if not (finding := result.finding):
                continue
            of_run, of_step = result.run, result.saving
            # Of the step where the run was ended after its traced steps, as asked.
            saving = (of_step or of_run) if early else (of_run or of_step)
            severity = result.severity or finding.severity
            word = severity.word if severity else None
            found[result.rule.name] = HistoryFinding(word, saving.share if saving else None)
        names = frozenset(one.rule.name for one in checked)
        run = common(HistoryRun, subject, place=place, values=values, findings=found, checked=names)
        traits = (*sorted(subject.framework.items()), ("batch size", "" if size is None else str(size)))
        return cls(_key(report, place), run, early, report.conditions.untraced_ms, report.steps.shown_ms, traits)

    @property
    def program(self) -> str:
        """The program."""
        return self.key[0]

    @property
    def order(self) -> tuple[str, str, str]:
        """By which runs are in order: the time of the commit, or of the run where that is unknown."""
        return self.run.committed or self.run.recorded, self.run.recorded, self.run.place

    def with_step(self, step_ms: float | None, *, timed: bool = True) -> HistoryRun:
        """Return the run with its step; without the time of the whole run if it is not ``timed``."""
        step = {RunMetric.STEP: step_ms} if step_ms else {}
        own = {metric: value for metric, value in self.run.values.items() if timed or metric is not RunMetric.RUN}
        return replace(self.run, values={**step, **own})


def _key(report: Diagnosis, place: str) -> tuple[str, str, str]:
    """Return what decides the series of a run; host names differ between equal machines of a CI."""
    subject, conditions = report.subject, report.conditions
    program, arguments = program_of(subject.command)
    name = subject.device_name or subject.device or "unknown device"
    many = f"{subject.devices_used} \N{MULTIPLICATION SIGN} " if (subject.devices_used or 1) > 1 else ""
    cpu = conditions.cpu_model if conditions.cpu_model != name else ""
    cores = f"{conditions.cores_usable:g} cores" if conditions.cores_usable else ""
    machine = ", ".join(filter(None, (f"{many}{name}", cpu, cores)))
    return Path(program).name or job(place, ""), " ".join(arguments), machine


def read_all(
    places: Sequence[FoundRecording], examine: Examine, rules: Sequence[Rule]
) -> Iterator[tuple[str, Diagnosis | InputError]]:
    """Yield each place with its report, or with why it cannot be read."""
    with tempfile.TemporaryDirectory(prefix="tfdoctor-") as scratch:
        for number, place in enumerate(places):
            try:
                yield place.shown, _read(place, Path(scratch, str(number)), examine, rules)
            except (InputError, OSError) as error:  # an OSError where it cannot be fetched
                yield place.shown, InputError(str(error))


def _read(one: FoundRecording, scratch: Path, examine: Examine, rules: Sequence[Rule]) -> Diagnosis:
    """Return the report of a place; that beside a recording counts where this version wrote it."""
    at = Path(one.place)
    if is_url(one.place):
        scratch.mkdir()
        at = fetched_files(one.place, one.files, scratch)
    for stored in (at / name for name in NAMES):
        with suppress(InputError):  # a damaged one: the recording is there
            if stored.is_file() and is_below(stored, at):
                report = open_report(stored, rules)
                if report.version == __version__ and report.subject.recorded:
                    return report
    return diagnosed(at, examine, rules)


class KeptHistory(Record):
    """What the file holds."""

    schema: int = SCHEMA
    baselines: tuple[NamedBaseline, ...] = ()
    accepted: tuple[Accepted, ...] = ()

    def with_entry(self, entry: NamedBaseline | Accepted) -> Self:
        """Return it with a baseline or an accepted change, in place of that of the same name or the same change."""
        of_name, of_change = ("baselines", "name", "program"), ("accepted", "program", "what", "commit")
        where, *names = of_name if isinstance(entry, NamedBaseline) else of_change
        key = attrgetter(*names)
        others = [one for one in getattr(self, where) if key(one) != key(entry)]
        kept = tuple(sorted((*others, entry), key=key))
        return replace(self, **{where: kept})  # type: ignore[arg-type] # one of its two fields


def read_kept(path: Path, *, to_write: bool = False) -> KeptHistory:
    """Return what a file holds; nothing where there is none.

    Raises:
        InputError: it cannot be read, is no such file, or is one of another schema.
        OutputError: it is ``to_write`` in the end, and cannot be written.
    """
    if to_write:
        content_to_replace(path, ANOTHER)
    try:
        data = json.loads(content(path))
    except FileNotFoundError:
        return KeptHistory()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: repair it, or name another file.") from error
    if not isinstance(data, dict) or not {"schema", "baselines", "accepted"} <= set(data):
        raise InputError(f"{path} is no file of `tfdoctor history`: name another one.")
    if data["schema"] != SCHEMA:
        raise InputError(
            f"{path} has a schema that this tfdoctor does not read (it reads {SCHEMA}): update tfdoctor."
        )
    return fitting(KeptHistory, data, path, "repair it, or take it from an earlier commit")


def of_program(read: Sequence[ReadRun], program: str) -> list[ReadRun]:
    """Return the runs of a program.

    Raises:
        InputError: there is none.
    """
    chosen = [one for one in read if one.program == program]
    if not chosen:
        raise InputError(f"no run of {program!r}: {hint(program, sorted({one.program for one in read}))}")
    return chosen


def named(name: str, run: ReadRun) -> NamedBaseline:
    """Return a run as a baseline of this name."""
    found = run.with_step(run.untraced_ms or run.shown_ms)
    values = {metric.value: value for metric, value in found.values.items()}
    step = UNTRACED if run.untraced_ms else SHOWN
    return common(NamedBaseline, found, name=name, program=run.program, step=step, values=values)


def accepted(what: str, commit: str, shown: Sequence[Series], *, by: str, why: str) -> Accepted:
    """Return an accepted change, by the whole hash of its commit, which is that of a run.

    Raises:
        InputError: no run or several commits begin so, or no run of the commit has the metric or the finding.
    """
    if not any(run.commit for one in shown for run in one.runs):
        raise InputError(
            "no run has a commit, at which a change could be accepted: record the program in its git repository."
        )
    runs = [(one.program, run) for one in shown for run in one.runs if run.commit.startswith(commit)]
    commits = sorted({run.commit for _, run in runs if commit})
    if not commits:
        raise InputError(f"no run is of commit {commit!r}: `tfdoctor history` lists the commits.")
    if len(commits) > 1:
        raise InputError(f"{len(commits)} commits begin with {commit!r}: write more of it.")
    programs = sorted({program for program, _ in runs})
    if len(programs) > 1:
        raise InputError(f"commit {commit!r} has runs of {' and '.join(programs)}: choose one with --program.")
    known = {name for _, run in runs for name in (*(metric.value for metric in run.values), *run.findings)}
    if what not in known:
        raise InputError(f"no run of commit {commit!r} has {what!r}: {hint(what, sorted(known))}")
    return Accepted(programs[0], what, commits[0], by, datetime.now(UTC).date().isoformat(), why)
