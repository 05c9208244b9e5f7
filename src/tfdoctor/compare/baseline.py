"""Baselines: the findings of a program that are known, so that only new ones fail a build."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from tfdoctor import __version__
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.gates import BaselineUse, KnownFinding
from tfdoctor.diagnosis.hosts import HostFinding
from tfdoctor.diagnosis.results import Result
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import SCRIPT
from tfdoctor.recording.typed import Misfit
from tfdoctor.recording.typed import read as read_typed
from tfdoctor.stored.files import COMPRESSED, of_text, open_report
from tfdoctor.stored.report import finished
from tfdoctor.terms import text
from tfdoctor.terms.errors import InputError, OutputError
from tfdoctor.terms.record import Record
from tfdoctor.terms.replacement import replace_file, unwritten, why_unwritable
from tfdoctor.terms.verdict import Errored, Finding, NotApplicable

BASELINE_SCHEMA = 1
BASELINE = {"schema", "program", "findings"}  # Fields that every baseline has
REPORT = {"tfdoctor", "steps", "results"}  # Fields that a report has, and no baseline

AGAIN = "write it again with --write-baseline"


class Baseline(Record):
    """The known findings of a program; ``program`` is "" where the trace does not name it."""

    schema: int
    tfdoctor: str
    program: str
    findings: tuple[KnownFinding, ...]


def program_of(recording: Recording) -> str:
    """Return the name of the recorded script, module or command; "" for a trace of another profiler."""
    plan = recording.manifest.plan if recording.manifest else None
    return Path(plan.script).name if plan else ""


def program_of_report(diagnosis: Diagnosis) -> str:
    """Return the same of a stored report, as far as its command says it."""
    command = diagnosis.subject.command
    script = next((word for word in command if word.endswith(SCRIPT)), "")
    module = command[command.index("-m") + 1 :][:1] if "-m" in command else ()
    return Path(next(iter(module), script)).name


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
    """Return the baseline that all findings of a report are known by."""
    found = {_names(report, one)[0] for one in _findings(report)}
    return Baseline(BASELINE_SCHEMA, report.version, program_of_report(report), tuple(sorted(found)))


def _json(written: str, path: Path) -> object:
    if written.lstrip()[:1] == "<":
        raise InputError(f"{path} is HTML: name a file that --write-baseline wrote.")
    try:
        content: object = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: name a file that --write-baseline wrote.") from error
    return content


def _typed(content: object, path: Path) -> Baseline:
    if not isinstance(content, dict) or not set(content) >= BASELINE:
        raise InputError(f"{path} is no baseline: name a file that --write-baseline wrote.")
    if (schema := content["schema"]) != BASELINE_SCHEMA:
        raise InputError(
            f"{path} has schema {text.shorten(str(schema), 20)}, and this tfdoctor reads schema {BASELINE_SCHEMA}: "
            f"{AGAIN}."
        )
    faults: list[str] = []
    try:
        found = read_typed(Baseline, content, faults)
    except Misfit:
        raise InputError(f"{path} is damaged: {AGAIN}.") from None
    if faults:
        raise InputError(f"{path} is damaged ({faults[0].lstrip('.')}): {AGAIN}.")
    return found


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
    if path.is_dir() or not path.parent.is_dir():
        place = path if path.is_dir() else path.parent
        what = "is a folder" if path.is_dir() else "is no folder"
        raise OutputError(f"{place} {what}: choose another file for the baseline.")
    if why := why_unwritable(path if path.exists() else path.parent):
        raise OutputError(f"{path} cannot be written ({why}): choose another file for the baseline.")
    if not path.exists() or not path.stat().st_size:
        return
    try:
        content = _json(path.read_bytes().decode("utf-8", "replace"), path)
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
    found = {known for known in earlier if known.rule in unsaid}
    found |= {_names(diagnosis, one)[0] for one in _findings(diagnosis)}
    baseline = Baseline(BASELINE_SCHEMA, __version__, program, tuple(sorted(found)))
    try:
        replace_file(path, json.dumps(asdict(baseline), indent=2) + "\n", named=True)
    except OSError as error:
        raise OutputError(unwritten(path, error, "choose another file for the baseline")) from error


def compared(diagnosis: Diagnosis, baseline: Baseline, file: str) -> Diagnosis:
    """Return the diagnosis with what the baseline knows of its findings, and what of the baseline is gone.

    A rule that was not checked says nothing of its own findings: they are not gone.
    """
    known, unsaid = set(baseline.findings), _unsaid(diagnosis)
    found = {name for one in _findings(diagnosis) for name in _names(diagnosis, one)}
    gone = tuple(sorted(one for one in known - found if one.rule not in unsaid))

    def marked(one: Result | HostFinding) -> bool:
        return not known.isdisjoint(_names(diagnosis, one))

    results = tuple(
        replace(one, known=marked(one)) if isinstance(one.outcome, Finding) else one for one in diagnosis.results
    )
    hosts = diagnosis.hosts
    if hosts is not None:
        hosts = replace(hosts, findings=tuple(replace(one, known=marked(one)) for one in hosts.findings))
    return replace(diagnosis, results=results, hosts=hosts, baseline=finished(BaselineUse(file=file, gone=gone)))


def _unsaid(diagnosis: Diagnosis) -> set[str]:
    """Return the rules that say nothing of the run: they are off, or could not be checked."""
    unchecked = (one for one in diagnosis.results if isinstance(one.outcome, NotApplicable | Errored))
    return {one.rule.name for one in unchecked} | {off.rule for off in diagnosis.settings.off}


def _findings(diagnosis: Diagnosis) -> Iterator[Result | HostFinding]:
    """Yield the findings on any host."""
    yield from (one for one in diagnosis.results if isinstance(one.outcome, Finding))
    yield from (one for one in (diagnosis.hosts.findings if diagnosis.hosts else ()) if not one.shown)


def _names(diagnosis: Diagnosis, finding: Result | HostFinding) -> tuple[KnownFinding, KnownFinding]:
    """Return how a baseline may have a finding: by its path in the repository, as far as known, and as recorded."""
    if isinstance(finding, HostFinding):
        rule, at = finding.rule, finding.at
    else:
        rule, at = finding.rule.name, finding.outcome.at if isinstance(finding.outcome, Finding) else None
    path = at.path if at else ""
    return KnownFinding(rule, diagnosis.repository.get(path) or path), KnownFinding(rule, path)
