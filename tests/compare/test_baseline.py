"""Baselines: findings by rule and file, what is new, what is gone, and how other files are refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases, each
from tests.report import diagnoses
from tfdoctor.compare import baseline
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.gates import KnownFinding, Off, Settings
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import CapturePlan, Manifest
from tfdoctor.terms.errors import InputError, OutputError, TfdoctorError
from tfdoctor.terms.verdict import Concern, Finding, Healthy, Location, NotApplicable, Outcome, Remedy

REPORT = {"schema": 1, "tfdoctor": "0.1.0", "steps": {}, "results": []}


def written(diagnosis: Diagnosis, path: Path) -> baseline.Baseline:
    baseline.write(diagnosis, "train.py", path)
    return baseline.read(path)


def marks(diagnosis: Diagnosis, known: baseline.Baseline) -> list[bool | None]:
    after = baseline.compared(diagnosis, known, "b.json")
    return [one.known for one in after.results if isinstance(one.outcome, Finding)]


def gone(diagnosis: Diagnosis, known: baseline.Baseline) -> list[KnownFinding]:
    use = baseline.compared(diagnosis, known, "b.json").baseline
    assert use
    return list(use.gone)


def with_first(outcome: Outcome | None, **changes: Any) -> Diagnosis:
    """Return a report whose first result is another, or left out."""
    base = diagnoses.full()
    first, *others = base.results
    results = [replace(first, outcome=outcome), *others] if outcome else others
    return replace(base, results=tuple(results), **changes)


HEALTHY, UNCHECKED = with_first(Healthy(summary="ok")), with_first(NotApplicable(reason="no trace"))
OFF = Settings(off=(Off("input-bound", "The step waits", "ignored by --ignore"),))
IGNORED, REMOVED = with_first(None, settings=OFF), with_first(None)


def at(path: str, line: int) -> Diagnosis:
    first = diagnoses.full().results[0].outcome
    assert isinstance(first, Finding)
    remedies = tuple(replace(remedy, at=Location(path, line)) for remedy in first.remedies)
    return with_first(replace(first, remedies=remedies))


def test_what_is_written_is_known_by_its_file(tmp_path: Path) -> None:
    known = written(diagnoses.full(), tmp_path / "b.json")
    assert marks(diagnoses.full(), known) == [True] * 4
    assert gone(diagnoses.full(), known) == []
    assert marks(at("train.py", 99), known)[0] is True
    assert marks(at("other.py", 41), known)[0] is False
    assert KnownFinding("input-bound", "train.py") in gone(at("other.py", 41), known)
    # The path in the repository counts, wherever the command runs:
    inside = written(replace(diagnoses.full(), repository={"train.py": "models/train.py"}), tmp_path / "b.json")
    assert KnownFinding("input-bound", "models/train.py") in inside.findings
    assert marks(replace(at("models/train.py", 41), repository={}), inside)[0] is True


def test_the_file_is_sorted_and_the_same_every_time(tmp_path: Path) -> None:
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    base = diagnoses.full()
    baseline.write(base, "train.py", first)
    baseline.write(replace(base, results=base.results[::-1]), "train.py", second)
    text = first.read_text()
    assert text == second.read_text()
    assert text.endswith("}\n")
    rules = [one["rule"] for one in json.loads(text)["findings"]]
    assert rules == sorted(rules)
    assert sorted(tmp_path.iterdir()) == [first, second]


@cases((HEALTHY, ["input-bound"]), (UNCHECKED, []), (IGNORED, []), (REMOVED, ["input-bound"]))
def test_gone_is_only_what_was_checked(after: Diagnosis, left: list[str], tmp_path: Path) -> None:
    """What this run did not check stays when the file is written again."""
    known = written(diagnoses.full(), tmp_path / "b.json")
    assert [one.rule for one in gone(after, known)] == left
    again = written(after, tmp_path / "b.json").findings
    assert [one.rule for one in known.findings if one not in again] == left


def test_findings_about_the_run_and_of_other_hosts_are_known_by_their_files(tmp_path: Path) -> None:
    remedy = Remedy("Read the table once", at=Location("prepare.py", 33))
    found = Finding(summary="iterrows takes 19.8 s", evidence=(), remedies=(remedy,), concern=Concern.RUN)
    base = diagnoses.several_hosts()
    assert base.hosts
    of_run = replace(base, hosts=None, results=(replace(base.results[0], outcome=found, saving=None),))
    known = written(of_run, tmp_path / "run.json")
    assert [one.file for one in known.findings] == ["prepare.py"]
    assert marks(of_run, known) == [True]
    other = replace(base.hosts.findings[-1], rule="small-batch", at=Location("train.py", 3))
    job = replace(base, hosts=replace(base.hosts, findings=(*base.hosts.findings, other)))
    known = written(job, tmp_path / "job.json")
    assert KnownFinding("small-batch", "train.py") in known.findings
    hosts = baseline.compared(job, known, "b.json").hosts
    assert hosts
    assert hosts.findings[-1].known is True


# Other files


@cases(
    (None, "does not exist: write it with --write-baseline"),
    (b"<!DOCTYPE html><html>", "is HTML: name a file that --write-baseline wrote."),
    (b"{", "is not JSON"),
    (b"", "is not JSON"),
    (b"[" * 100_000, "is not JSON"),
    (b"\xff\xfe", "is no baseline: it is not UTF-8."),
    (b"[]", "is no baseline"),
    (json.dumps(REPORT).encode(), "is damaged (subject: it is missing)"),
    (b'{"schema": 2, "program": "", "findings": []}', "has schema 2, and this tfdoctor reads"),
    (b'{"schema": "x", "program": "", "findings": []}', "has schema x"),
    (b'{"schema": 1, "program": "", "findings": []}', "is damaged: write it again"),
    (b'{"schema": 1, "tfdoctor": "0", "program": "", "findings": [{"rule": 3}]}', "is damaged (findings"),
)
def test_what_is_no_baseline_is_one_sentence(content: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        baseline.read(path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@cases(
    ("script", "a/train.py", ["python", "a/train.py"], "train.py"),
    ("command", "mpirun", ["mpirun", "-n", "2", "python", "a/train.py"], "train.py"),  # as in its report
    ("command", "/opt/start", ["/opt/start"], "start"),
)
def test_the_program_is_what_the_command_names(kind: str, script: str, command: list[str], program: str) -> None:
    run = Manifest(command=tuple(command), plan=CapturePlan(kind, script))
    assert baseline.program_of(Recording(None, run, (), None, (), ())) == program
    assert baseline.program_of(Recording(None, None, (), None, (), ())) == ""


def test_the_baseline_of_another_program_is_refused_and_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    baseline.must_be_writable(path, "train.py")
    known = written(diagnoses.full(), path)
    for program in ("train.py", ""):  # a trace does not name its program
        baseline.must_be_of(known, program, path)
        baseline.must_be_writable(path, program)
    with pytest.raises(InputError, match=r"is the baseline of train\.py, and this is a run of x\.py"):
        baseline.must_be_of(known, "x.py", path)
    with pytest.raises(InputError, match="is the baseline of"):
        baseline.must_be_writable(path, "other.py")


@each("[project]", "{}", "<html>")
def test_nothing_else_is_overwritten(content: str, tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(content)
    with pytest.raises(OutputError, match="exists and is no baseline"):
        baseline.must_be_writable(path, "train.py")
    assert path.read_text() == content


@each("none/b.json", ".", "file/b.json")
def test_a_place_that_takes_no_file_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TfdoctorError, match="choose another file"):
        baseline.must_be_writable(tmp_path / name, "train.py")
