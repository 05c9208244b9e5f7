"""``tfdoctor try``: what it takes, and how it refuses."""

import errno
import tempfile

from tests.cli.kit import *
from tests.report.diagnoses import tried, untried
from tfdoctor.recording import Recording
from tfdoctor.trial import of_recording, stored, taking_out
from tfdoctor.trial.program import Variant, texts_of


def tried_with(*words: object) -> tuple[int, str]:
    return run("try", *words)


def test_help_names_what_can_be_tried() -> None:
    code, output = tried_with("--help")
    assert code == 0
    assert "RECORDING | SCRIPT" in output
    assert "--patch" in output


def test_options_may_follow_a_recording(tmp_path: Path) -> None:
    recording = shutil.copytree(CONVNET, tmp_path / "run")
    _, output = tried_with(str(recording), "--only", "no-such-rule")
    assert "No such option" not in output


@pytest.mark.parametrize("sample", ["synthetic-gpu-a100-fp32", "cpu-float32-convnet"])
def test_a_recording_that_cannot_be_run_again_is_one_sentence(tmp_path: Path, sample: str) -> None:
    recording = shutil.copytree(SAMPLES / sample, tmp_path / "run")
    before = sorted(path.name for path in recording.rglob("*"))
    code, output = tried_with(str(recording))
    assert code != 0
    assert "does not say which command to run" in output
    assert sorted(path.name for path in recording.rglob("*")) == before


def test_a_program_without_steps_is_not_run(tmp_path: Path) -> None:
    """Trap: a recording may follow each of our options, also those that say no."""
    why = "the script did not import TensorFlow"
    recording = made(tmp_path, missing=[{"what": "trace", "why": why}], steps={"seen": 0})
    code, output = tried_with("--settings", "--parts", "--yes", "--no-layer", str(recording))
    assert code != 0
    assert f"cannot be timed as it is: {why}." in output
    assert not (tmp_path / "ran.txt").exists()


def test_several_workers_are_refused(tmp_path: Path) -> None:
    recording = made(tmp_path, worker={"name": "worker-0", "rank": 0, "size": 2})
    before = content(tmp_path)
    code, output = tried_with(str(recording), "--env", "A=1")
    assert code != 0
    assert "A job of several workers cannot be tried" in output
    assert content(tmp_path) == before


def test_a_recording_whose_sources_are_elsewhere_is_refused(tmp_path: Path) -> None:
    recording = made(tmp_path)
    shutil.copy(CONVNET / "program.json.gz", recording)
    before = content(tmp_path)
    _, output = tried_with(str(recording), "--env", "A=1")
    assert "float32_convnet.py cannot be read (No such file or directory)" in output
    assert "run the trial where the source is" in output
    assert content(tmp_path) == before


DIFF = """--- a/train.py
+++ b/train.py
@@ -1,2 +1,2 @@
-x = 1
+x = 2
 y = 3
"""

EDITS_ITSELF = """x = 1
y = 3
with open("train.py", "a") as file:
    file.write("z = 1\\n")
"""


def test_an_edit_during_the_trial_ends_it(tmp_path: Path) -> None:
    """The runs as it is would see the edit, and the variants not; nothing is written."""
    recording, patch, kept = made(tmp_path), tmp_path / "mine.diff", tmp_path / "kept.diff"
    (tmp_path / "train.py").write_text(EDITS_ITSELF)
    patch.write_text(DIFF)
    before = content(recording)
    options = ("--no-layer", "--yes", "--patch", str(patch), "--keep", str(kept))
    code, output = tried_with(str(recording), *options)
    assert code != 0
    assert "train.py changed while the trial ran, so nothing is claimed" in output
    assert content(recording) == before
    assert not kept.exists()


def test_no_large_part_says_nothing_of_what_the_report_advises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking_out, "of_recording", lambda *_: ([], []))
    code, output = tried_with(str(made(tmp_path)), "--parts")
    assert code != 0
    assert "No part of the program takes enough to be taken out: leave out --parts" in output


def test_a_credential_is_in_no_output(tmp_path: Path) -> None:
    recording = made(tmp_path)
    _, output = tried_with(str(recording), "--no-layer", "--yes", "--env", "HF_TOKEN=very-secret")
    assert "as it is" in output
    assert "very-secret" not in output


def test_a_recording_that_cannot_be_written_is_refused_before_any_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = made(tmp_path)
    before = content(tmp_path)

    def refuse(**_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    code, output = tried_with(str(recording), "--no-layer", "--yes", "--env", "A=1")
    assert code != 0
    assert f"{recording} cannot be written (Read-only file system): copy the" in output
    assert content(tmp_path) == before


def test_a_file_to_keep_that_cannot_be_written_is_refused_before_any_run(tmp_path: Path) -> None:
    recording = made(tmp_path)
    before = content(tmp_path)
    code, output = tried_with(str(recording), "--no-layer", "--yes", "--env", "A=1", "--keep", "/proc/kept.diff")
    assert code != 0
    assert "/proc/kept.diff cannot be written" in output
    assert content(tmp_path) == before


def test_a_file_that_cannot_be_written_loses_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder for the kept diff goes away meanwhile, and the reports cannot be written."""
    recording, kept = made(tmp_path), tmp_path / "gone" / "kept.diff"
    kept.parent.mkdir()
    file = tmp_path.resolve() / "a.py"
    file.write_text("batch = 1\n", "utf-8")
    change = Variant("larger", files={file: b"batch = 2\n"})

    def conduct(*_: object) -> of_recording.Tried:
        kept.parent.rmdir()
        (recording / "report.html").mkdir()
        return of_recording.Tried(tried(), (change,), texts_of([file]))

    monkeypatch.setattr(of_recording, "conduct", conduct)
    code, output = tried_with(str(recording), "--env", "A=1", "--keep", str(kept))
    assert code != 0
    assert (recording / stored.FILE).is_file()
    assert "saves" in output
    assert f"{recording / 'report.html'} is not a file" in output
    assert f"{kept.parent} is no folder" in output


def test_a_trial_without_figures_says_that_the_earlier_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, earlier = made(tmp_path), tried().trials
    assert earlier is not None
    stored.keep(earlier, Recording.open(recording))
    before = (recording / stored.FILE).read_text()
    none = of_recording.Tried(replace(tried(), trials=replace(earlier, rows=())), (), texts_of([]))
    monkeypatch.setattr(of_recording, "conduct", lambda *_: none)
    code, output = tried_with(str(recording), "--env", "A=1")
    assert code == 0
    assert "this trial has no figure, so trials.json in the recording keeps" in output
    assert (recording / stored.FILE).read_text() == before


def test_a_damaged_earlier_trial_does_not_stop_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tfdoctor report` refuses it, and says that a new trial replaces it."""
    recording = made(tmp_path)
    (recording / stored.FILE).write_text("{")
    done = of_recording.Tried(tried(), (), texts_of([]))
    monkeypatch.setattr(of_recording, "conduct", lambda *_: done)
    code, output = tried_with(str(recording), "--env", "A=1")
    assert code == 0, output
    assert stored.with_last(untried(), Recording.open(recording)) == tried()


def test_a_kept_change_that_is_not_in_the_diff_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    script = tmp_path / "train.py"
    recording = made(tmp_path, cwd=str(tmp_path / "work"), command=["python", "../jobs/train.py"])
    (folder / "train.py").write_text("x = 1\n")
    paths = [folder / "train.py", script]
    kept = Variant("a", dict.fromkeys(paths, b"x = 2\n"))
    done = of_recording.Tried(tried(), (kept,), texts_of(paths))
    monkeypatch.setattr(of_recording, "conduct", lambda *_: done)
    target = tmp_path / "kept.diff"
    code, output = tried_with(str(recording), "--env", "A=1", "--keep", str(target))
    assert code == 0, output
    assert f"not in the patch: {script} is outside {folder}: change it by hand" in output
    assert f"apply it with `git apply` in {folder}" in output
    assert (
        "not in the patch: half-the-batch.diff and float32-matmul make a step shorter, but do not train the same."
        in output
    )
    assert target.read_bytes().startswith(b"--- a/train.py")
