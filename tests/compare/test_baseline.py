"""Baselines: findings by rule and file, what is new, what is gone, and how other files are refused."""

from tests.compare.kit import *
from tfdoctor.compare import baseline
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import CapturePlan, Manifest

TOLD = Told()
REPORT = {"schema": 1, "tfdoctor": "0.1.0", "steps": {}, "results": []}
FULL = diagnoses.full()


def written(diagnosis: Diagnosis, path: Path) -> baseline.Baseline:
    baseline.write(diagnosis, "train.py", path)
    return baseline.read(path)


def told(diagnosis: Diagnosis, known: baseline.Baseline) -> dict[str, object]:
    """Return which findings of a report are known, and what is gone."""
    after = baseline.compared(diagnosis, known, "b.json")
    found = {one.rule.name: one.known for one in after.results if isinstance(one.outcome, Finding)}
    others = {(one.rule, one.at): one.known for one in after.hosts.findings} if after.hosts else {}
    return {"known": found, "known of hosts": others, "gone": after.baseline and after.baseline.gone}


def with_first(outcome: Outcome | None, **changes: Any) -> Diagnosis:
    """Return a report whose first result is another, or left out."""
    first, *others = FULL.results
    return replace(FULL, results=(*([replace(first, outcome=outcome)] if outcome else []), *others), **changes)


def at(path: str, line: int) -> Diagnosis:
    first = FULL.results[0].outcome
    assert isinstance(first, Finding)
    remedies = tuple(replace(remedy, at=Location(path, line)) for remedy in first.remedies)
    return with_first(replace(first, remedies=remedies))


INSIDE = replace(FULL, repository={"train.py": "models/train.py"})
ELSEWHERE = replace(at("models/train.py", 41), repository={})
OFF = Settings(off=(Off("input-bound", "The step waits", "ignored by --ignore"),))


def known_by(before: Diagnosis, after: Diagnosis, folder: Path) -> dict[str, object]:
    """Return what the baseline of a report has and knows of another, and what it loses when it is written again."""
    known = written(before, folder / "b.json")
    again = written(after, folder / "b.json").findings
    lost = [one for one in known.findings if one not in again]
    return {"baseline": known.findings, **told(after, known), "lost": lost}


def of_the_run() -> Diagnosis:
    base = diagnoses.several_hosts()
    remedy = Remedy("Read the table once", at=Location("prepare.py", 33))
    found = Finding(summary="iterrows takes 19.8 s", evidence=(), remedies=(remedy,), concern=Concern.RUN)
    return replace(base, hosts=None, results=(replace(base.results[0], outcome=found, saving=None),))


def of_another_host() -> Diagnosis:
    base = diagnoses.several_hosts()
    assert base.hosts
    other = replace(base.hosts.findings[-1], rule="small-batch", at=Location("train.py", 3))
    return replace(base, hosts=replace(base.hosts, findings=(*base.hosts.findings, other)))


TOLD[known_by] = {
    "what is written is known": (FULL, FULL),
    "on another line": (FULL, at("train.py", 99)),
    "in another file": (FULL, at("other.py", 41)),
    # The path in the repository counts, wherever the command runs:
    "in the same file of the repository": (INSIDE, ELSEWHERE),
    # What this run did not check is not gone, and stays when the file is written again:
    "healthy": (FULL, with_first(Healthy(summary="ok"))),
    "not checked": (FULL, with_first(NotApplicable(reason="no trace"))),
    "ignored": (FULL, with_first(None, settings=OFF)),
    "without its rule": (FULL, with_first(None)),
    "findings about the run are known by their files": (of_the_run(), of_the_run()),
    "findings of other hosts are known by their files": (of_another_host(), of_another_host()),
}


def test_the_file_is_sorted_and_the_same_every_time(tmp_path: Path) -> None:
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    baseline.write(FULL, "train.py", first)
    baseline.write(replace(FULL, results=FULL.results[::-1]), "train.py", second)
    text = first.read_text()
    assert (text, text[-2:]) == (second.read_text(), "}\n")
    rules = [one["rule"] for one in json.loads(text)["findings"]]
    assert rules == sorted(rules)
    assert sorted(tmp_path.iterdir()) == [first, second]


# Other files


def read(content: bytes | None, folder: Path) -> object:
    if content is not None:
        (folder / "b.json").write_bytes(content)
    return baseline.read(folder / "b.json")


TOLD[read] = {
    "no file": None,
    "a page": b"<!DOCTYPE html><html>",
    "half an object": b"{",
    "nothing": b"",
    "a deep list": b"[" * 100_000,
    "no text": b"\xff\xfe",
    "a list": b"[]",
    "a damaged report": json.dumps(REPORT).encode(),
    "a later schema": b'{"schema": 2, "program": "", "findings": []}',
    "a schema that is no number": b'{"schema": "x", "program": "", "findings": []}',
    "a missing field": b'{"schema": 1, "program": "", "findings": []}',
    "a rule that is a number": b'{"schema": 1, "tfdoctor": "0", "program": "", "findings": [{"rule": 3}]}',
}


@cases(
    ("script", "a/train.py", ["python", "a/train.py"], "train.py"),
    ("command", "mpirun", ["mpirun", "-n", "2", "python", "a/train.py"], "train.py"),  # as in its report
    ("command", "/opt/start", ["/opt/start"], "start"),
)
def test_the_program_is_what_the_command_names(kind: str, script: str, command: list[str], program: str) -> None:
    run = Manifest(command=tuple(command), plan=CapturePlan(kind, script))
    assert baseline.program_of(Recording(None, run, (), None, (), ())) == program
    assert baseline.program_of(Recording(None, None, (), None, (), ())) == ""


def of_program(program: str, folder: Path) -> None:
    path = folder / "b.json"
    baseline.must_be_writable(path, "train.py")
    baseline.must_be_of(written(FULL, path), program, path)


def writable(name: str, content: str, program: str, folder: Path) -> None:
    (folder / "file").write_text("")
    if content == "baseline":
        baseline.write(FULL, "train.py", folder / name)
    elif content:
        (folder / name).write_text(content)
    before = (folder / name).read_bytes() if content else b""
    try:
        baseline.must_be_writable(folder / name, program)
    finally:
        assert not content or (folder / name).read_bytes() == before


# A trace does not name its program.
TOLD[of_program] = {f"read of {name or 'a trace'}": name for name in ("train.py", "", "x.py")}
TOLD[writable] = {
    **{f"written of {name or 'a trace'}": ("b.json", "baseline", name) for name in ("train.py", "", "x.py")},
    **{f"over {text}": ("pyproject.toml", text, "train.py") for text in ("[project]", "{}", "<html>")},
    **{f"to {name}": (name, "", "train.py") for name in ("none/b.json", ".", "file/b.json")},
}

test_baselines = TOLD.test("baselines")
