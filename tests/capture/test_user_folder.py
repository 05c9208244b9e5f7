"""The folder of a recorded program: its commit, by git or without it, and the files that the run wrote."""

from tests.capture.kit import *
from tests.capture.running import profiled
from tfdoctor.capture import manifest, user_folder
from tfdoctor.capture.plan import Plan
from tfdoctor.capture.user_folder import revision, written_since
from tfdoctor.recording.manifest import Manifest, Revision, WrittenFiles
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
    for words in ("init -q", "add .", "commit -q -m First --date 2026-01-02T03:04:05Z"):
        git(tmp_path, *words.split())
    return path


def test_the_commit_and_its_time_are_those_of_git(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, seconds = git(script.parent, "log", "-1", "--format=%H %ct").split()
    monkeypatch.chdir("/")
    begun = manifest.begin(Plan(str(script)), ["python", str(script)])
    assert begun.revision == Revision(commit, int(seconds) * 10**9, changed=False)
    assert read(Manifest, asdict(begun), []) == begun
    other = script.with_name("other.py")
    other.write_text("print(3)\n")

    def changed(path: Path) -> bool | None:
        found = revision(path.parent, path, {"GITHUB_SHA": OF_CI})
        assert found is not None
        assert found.commit == commit
        return found.changed

    assert (changed(script), changed(other)) == (False, True)  # which git does not track
    script.write_text("print(2)\n")
    assert changed(script)
    monkeypatch.setenv("PATH", "")
    assert revision(script.parent, script, {}) is None


def test_without_a_repository_the_ci_names_the_commit(tmp_path: Path) -> None:
    variables: list[dict[str, str]] = [{}, {"GITHUB_SHA": "no hash"}, {"CI_COMMIT_SHA": OF_CI}]
    assert [revision(tmp_path, None, given) for given in variables] == [None, None, Revision(OF_CI)]


SCRIPT = """
import os
from pathlib import Path

Path("checkpoints").mkdir()
Path("checkpoints/1.bin").write_bytes(b"1")
with open("log.txt", "a") as log:
    log.write("2")
Path("__pycache__").mkdir()
Path("__pycache__/x.pyc").write_bytes(b"3")
os.utime("checkpoints/1.bin", (0, 0))
"""


def test_a_recording_knows_what_its_folder_got(tmp_path: Path) -> None:
    """Traps: a file that is dated back, and the recording itself, which lies in the same folder."""
    script = tmp_path / "project" / "train.py"
    script.parent.mkdir()
    for name, text in (("log.txt", "1"), ("data.txt", "1"), ("train.py", SCRIPT)):
        script.with_name(name).write_text(text)
    time.sleep(0.02)  # the clock of a file system has steps of up to 10 ms
    run = profiled(script, script.parent / "runs" / "one", sample_every_ms=0)
    assert run.code == 0, run.stderr
    assert run.manifest.written == WrittenFiles(2, ("checkpoints/1.bin", "log.txt"))


def test_of_many_files_a_few_are_named_and_of_too_many_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    for path in ("outside/file", "folder/0", "folder/1", "folder/2"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    (folder / "link").symlink_to(tmp_path / "outside")  # is not followed
    found = [written_since(folder, 0, folder / "out")]
    for name, most in (("NAMES", 2), ("MOST_ENTRIES", 3)):
        monkeypatch.setattr(user_folder, name, most)
        found.append(written_since(folder, 0, folder / "out"))
    assert found == [WrittenFiles(4, ("0", "1", "2", "link")), WrittenFiles(4, ("0", "1")), None]
