"""The commit of a recorded program: what git says of it, and what is known without git."""

import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from tfdoctor.capture import manifest
from tfdoctor.capture.plan import Plan
from tfdoctor.capture.revision import revision
from tfdoctor.recording.manifest import Manifest, Revision
from tfdoctor.recording.typed import read

OF_CI = "3" * 40


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", "-C", str(folder), *settings, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script whose folder lies in a repository with one commit."""
    path = tmp_path / "jobs" / "train.py"
    path.parent.mkdir()
    path.write_text("print(1)\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "First", "--date", "2026-01-02T03:04:05Z")
    return path


def test_the_commit_and_its_time_are_those_of_git(script: Path) -> None:
    found = revision(script.parent, script, {"GITHUB_SHA": OF_CI})
    seconds = int(git(script.parent, "log", "-1", "--format=%ct"))
    commit = git(script.parent, "rev-parse", "HEAD")
    assert found == Revision(commit, seconds * 10**9, changed=False)


def test_a_changed_file_is_a_change_of_the_commit(script: Path) -> None:
    script.write_text("print(2)\n")
    found = revision(script.parent, script, {})
    assert found is not None
    assert found.changed is True


def test_files_that_git_does_not_track_are_no_change_but_the_script_is(script: Path) -> None:
    other = script.with_name("other.py")
    other.write_text("print(3)\n")
    known, unknown = revision(script.parent, script, {}), revision(script.parent, other, {})
    assert known is not None
    assert unknown is not None
    assert (known.changed, unknown.changed) == (False, True)


def test_without_a_repository_the_ci_names_the_commit(tmp_path: Path) -> None:
    assert revision(tmp_path, None, {}) is None
    assert revision(tmp_path, None, {"GITHUB_SHA": "no hash"}) is None
    assert revision(tmp_path, None, {"CI_COMMIT_SHA": OF_CI}) == Revision(OF_CI)


def test_without_git_nothing_is_known(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert revision(script.parent, script, {}) is None


def test_the_manifest_has_the_commit_of_the_scripts_folder(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    begun = manifest.begin(Plan(str(script)), ["python", str(script)])
    assert begun.revision is not None
    assert begun.revision.commit == git(script.parent, "rev-parse", "HEAD")
    assert read(Manifest, asdict(begun), []) == begun
