"""Baselines: the findings of a program that are known, so that only new ones fail a build."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeVar

from tfdoctor import __version__
from tfdoctor.diagnosis import BaselineUse, Diagnosis, KnownFinding
from tfdoctor.recording import Recording, manifest, typed
from tfdoctor.stored.files import COMPRESSED, of_text, open_report
from tfdoctor.stored.report import finished
from tfdoctor.terms import text
from tfdoctor.terms.errors import InputError, OutputError
from tfdoctor.terms.record import Record
from tfdoctor.terms.replacement import content_to_replace, replace_file, writing
from tfdoctor.terms.verdict import Errored, Location, NotApplicable

BASELINE_SCHEMA = 1
BASELINE = {"schema", "program", "findings"}  # Fields that every baseline has
REPORT = {"tfdoctor", "steps", "results"}  # Fields that a report has, and no baseline
ANOTHER = "choose another file for the baseline"
T = TypeVar("T")


class Baseline(Record):
    """The known findings of a program; ``program`` is "" where the trace does not name it."""

    schema: int
    tfdoctor: str
    program: str
    findings: tuple[KnownFinding, ...]


def program_of(recording: Recording) -> str:
    """Return the name of the recorded script, module or command; "" for a trace of another profiler."""
    run = recording.manifest
    if run is None or run.plan is None:
        return ""
    script, _ = manifest.program_of(run.command) if run.plan.kind == "command" else (run.plan.script, ())
    return Path(script or run.plan.script).name  # of `mpirun python train.py`, as in its report, train.py


def program_of_report(diagnosis: Diagnosis) -> str:
    """Return the same of a stored report, as far as its command says it."""
    return Path(manifest.program_of(diagnosis.subject.command)[0]).name


def read(path: Path) -> Baseline:
    """Return the baseline in a file, or that of the findings of a stored report.

    Raises:
        InputError: there is none, or one of another schema.
    """
    if path.is_file() and path.name.lower().endswith(COMPRESSED):
        return _of_report(open_report(path, ()))
    try:
        written = path.read_bytes().decode()
    except FileNotFoundError as error:
        raise InputError(f"the baseline {path} does not exist: write it with --write-baseline {path}.") from error
    except OSError as error:
        raise InputError(f"the baseline {path} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no baseline: it is not UTF-8.") from error
    content = _json(written, path)
    if isinstance(content, dict) and set(content) >= REPORT:
        return _of_report(of_text(written, path))
    return _typed(content, path)


def _of_report(report: Diagnosis) -> Baseline:
    found = sorted({name for name, _ in _found(report)})
    return Baseline(BASELINE_SCHEMA, report.version, program_of_report(report), tuple(found))


def _json(written: str, path: Path) -> object:
    if written.lstrip()[:1] == "<":
        raise InputError(f"{path} is HTML: name a file that --write-baseline wrote.")
    try:
        return json.loads(written)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: name a file that --write-baseline wrote.") from error


def _typed(content: object, path: Path) -> Baseline:
    if not isinstance(content, dict) or not set(content) >= BASELINE:
        raise InputError(f"{path} is no baseline: name a file that --write-baseline wrote.")
    again = "write it again with --write-baseline"
    if (schema := content["schema"]) != BASELINE_SCHEMA:
        which = text.shorten(str(schema), 20)
        raise InputError(f"{path} has schema {which}, and this tfdoctor reads schema {BASELINE_SCHEMA}: {again}.")
    return fitting(Baseline, content, path, again)


def fitting(kind: type[T], content: object, path: Path, repair: str) -> T:
    """Return the record that the JSON of a kept file describes; ``repair`` is what to do about one that does not.

    Raises:
        InputError: a part of it does not fit.
    """
    faults: list[str] = []
    try:
        found = typed.read(kind, content, faults)
    except typed.Misfit:
        raise InputError(f"{path} is damaged: {repair}.") from None
    if faults:
        raise InputError(f"{path} is damaged ({faults[0].lstrip('.')}): {repair}.")
    return found


def keep(record: Record, path: Path, instead: str) -> None:
    """Write a record as the JSON of a kept file; ``instead`` is what to do where that cannot be done.

    Raises:
        OutputError: the file cannot be written.
    """
    with writing(path, instead):
        replace_file(path, json.dumps(asdict(record), indent=2) + "\n", named=True)


def must_be_of(baseline: Baseline, program: str, path: Path) -> None:
    """Check that a baseline is that of the program, as far as both are known.

    Raises:
        InputError: it is that of another one.
    """
    if baseline.program and program and baseline.program != program:
        raise InputError(
            f"{path} is the baseline of {text.shorten(baseline.program, 60)}, and this is a run of "
            f"{text.shorten(program, 60)}: name another baseline, or another file for --write-baseline."
        )


def must_be_writable(path: Path, program: str) -> None:
    """Check that a file can be written as the baseline of a program: nothing else is in it.

    Raises:
        InputError: it is the baseline of another program.
        OutputError: it has other content, or cannot be written.
    """
    written = content_to_replace(path, ANOTHER)
    if not written:
        return
    try:
        content = _json(written.decode("utf-8", "replace"), path)
    except InputError:
        content = None
    if not isinstance(content, dict) or not set(content) >= BASELINE:
        raise OutputError(f"{path} exists and is no baseline: choose another file, or remove it.")
    if content["schema"] == BASELINE_SCHEMA:
        must_be_of(_typed(content, path), program, path)


def write(diagnosis: Diagnosis, program: str, path: Path) -> None:
    """Write the findings of a diagnosis as known ones; those already in the file stay if their rules say nothing.

    Raises:
        OutputError: the file cannot be written.
    """
    earlier: tuple[KnownFinding, ...] = ()
    with suppress(InputError):  # the file is new, or of another schema
        earlier = read(path).findings
    unsaid = _unsaid(diagnosis)
    found = {known for known in earlier if known.rule in unsaid} | {name for name, _ in _found(diagnosis)}
    keep(Baseline(BASELINE_SCHEMA, __version__, program, tuple(sorted(found))), path, ANOTHER)


def compared(diagnosis: Diagnosis, baseline: Baseline, file: str) -> Diagnosis:
    """Return the diagnosis with what the baseline knows of its findings, and what of the baseline is gone.

    A rule that was not checked says nothing of its own findings: they are not gone.
    """
    known, unsaid = set(baseline.findings), _unsaid(diagnosis)
    found = {name for names in _found(diagnosis) for name in names}
    gone = tuple(sorted(one for one in known - found if one.rule not in unsaid))

    def is_known(rule: str, at: Location | None) -> bool:
        return not known.isdisjoint(_names(diagnosis, rule, at))

    results, hosts = list(diagnosis.results), diagnosis.hosts
    for place, one in enumerate(results):
        if one.finding:
            results[place] = replace(one, known=is_known(one.rule.name, one.finding.at))
    if hosts is not None:
        marked = (replace(one, known=is_known(one.rule, one.at)) for one in hosts.findings)
        hosts = replace(hosts, findings=tuple(marked))
    use = finished(BaselineUse(file=file, gone=gone))
    return replace(diagnosis, results=tuple(results), hosts=hosts, baseline=use)


def _unsaid(diagnosis: Diagnosis) -> set[str]:
    """Return the rules that say nothing of the run: they are off, or could not be checked."""
    unchecked = (one for one in diagnosis.results if isinstance(one.outcome, NotApplicable | Errored))
    return {one.rule.name for one in unchecked} | {off.rule for off in diagnosis.settings.off}


def _found(diagnosis: Diagnosis) -> Iterator[tuple[KnownFinding, KnownFinding]]:
    """Yield how a baseline may have each finding on any host."""
    for one in diagnosis.results:
        if one.finding:
            yield _names(diagnosis, one.rule.name, one.finding.at)
    for other in diagnosis.hosts.findings if diagnosis.hosts else ():
        if not other.shown:
            yield _names(diagnosis, other.rule, other.at)


def _names(diagnosis: Diagnosis, rule: str, at: Location | None) -> tuple[KnownFinding, KnownFinding]:
    """Return how a baseline may have a finding: by its path in the repository, as far as known, and as recorded."""
    path = at.path if at else ""
    return KnownFinding(rule, diagnosis.repository.get(path) or path), KnownFinding(rule, path)
