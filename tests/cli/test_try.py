"""``tfdoctor try``: what it takes, and how it refuses."""

import errno

from tests.cli.kit import *
from tests.report.diagnoses import tried, untried
from tfdoctor.recording import Recording
from tfdoctor.trial import of_recording, stored, taking_out
from tfdoctor.trial.program import Variant, texts_of


def tried_with(*words: object) -> tuple[int, str]:
    return run("try", *words)


Conducts = Callable[..., None]


@pytest.fixture
def conducts(monkeypatch: pytest.MonkeyPatch) -> Conducts:
    """Have trials end with a diagnosis, whatever they are about, and do something meanwhile."""

    def ends(with_trials: Any, *kept: Variant, files: Any = (), meanwhile: Callable[[], object] = dict) -> None:
        done = of_recording.Tried(with_trials, kept, texts_of(files))
        monkeypatch.setattr(of_recording, "conduct", lambda *_: (meanwhile(), done)[1])

    return ends


def test_help_names_what_can_be_tried() -> None:
    code, output = tried_with("--help")
    assert (code, "RECORDING | SCRIPT" in output, "--patch" in output) == (0, True, True)


def test_options_may_follow_a_recording(tmp_path: Path) -> None:
    assert (
        "No such option" not in tried_with(shutil.copytree(CONVNET, tmp_path / "run"), "--only", "no-such-rule")[1]
    )


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
    code, output = tried_with(recording, "--no-layer", "--yes", "--patch", patch, "--keep", kept)
    assert (code != 0, content(recording), kept.exists()) == (True, before, False)
    assert "train.py changed while the trial ran, so nothing is claimed" in output


def test_no_large_part_says_nothing_of_what_the_report_advises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking_out, "of_recording", lambda *_: ([], []))
    code, output = tried_with(made(tmp_path), "--parts")
    assert code != 0
    assert "No part of the program takes enough to be taken out: leave out --parts" in output


def test_a_credential_is_in_no_output(tmp_path: Path) -> None:
    _, output = tried_with(made(tmp_path), "--no-layer", "--yes", "--env", "HF_TOKEN=very-secret")
    assert ("as it is" in output, "very-secret" in output) == (True, False)


def test_a_recording_that_cannot_be_written_is_refused_before_any_run(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = made(alone)

    def refuse(**_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    said = refused(f"try {recording} --no-layer --yes --env A=1")
    assert "recording cannot be written (Read-only file system): copy the" in said


def test_a_file_that_cannot_be_written_loses_no_other(tmp_path: Path, conducts: Conducts) -> None:
    """The folder for the kept diff goes away meanwhile, and the reports cannot be written."""
    recording, kept, file = made(tmp_path), tmp_path / "gone" / "kept.diff", tmp_path.resolve() / "a.py"
    kept.parent.mkdir()
    file.write_text("batch = 1\n", "utf-8")
    (recording / "report.html").mkdir()
    conducts(tried(), Variant("larger", files={file: b"batch = 2\n"}), files=[file], meanwhile=kept.parent.rmdir)
    code, output = tried_with(recording, "--env", "A=1", "--keep", kept)
    assert (code != 0, (recording / stored.FILE).is_file(), "saves" in output) == (True, True, True)
    assert f"{recording / 'report.html'} is not a file" in output
    assert f"{kept.parent} is no folder" in output


def test_a_trial_without_figures_says_that_the_earlier_one_stays(tmp_path: Path, conducts: Conducts) -> None:
    recording, earlier = made(tmp_path), tried().trials
    assert earlier is not None
    stored.keep(earlier, Recording.open(recording))
    before = (recording / stored.FILE).read_text()
    conducts(replace(tried(), trials=replace(earlier, rows=())))
    code, output = tried_with(recording, "--env", "A=1")
    assert (code, (recording / stored.FILE).read_text()) == (0, before)
    assert "this trial has no figure, so trials.json in the recording keeps" in output


def test_a_damaged_earlier_trial_does_not_stop_a_new_one(tmp_path: Path, conducts: Conducts) -> None:
    """`tfdoctor report` refuses it, and says that a new trial replaces it."""
    recording = made(tmp_path)
    (recording / stored.FILE).write_text("{")
    conducts(tried())
    assert tried_with(recording, "--env", "A=1")[0] == 0
    assert stored.with_last(untried(), Recording.open(recording)) == tried()


def test_a_kept_change_that_is_not_in_the_diff_is_said(tmp_path: Path, conducts: Conducts) -> None:
    folder, script, target = tmp_path / "jobs", tmp_path / "train.py", tmp_path / "kept.diff"
    folder.mkdir()
    recording = made(tmp_path, cwd=str(tmp_path / "work"), command=["python", "../jobs/train.py"])
    (folder / "train.py").write_text("x = 1\n")
    files = [folder / "train.py", script]
    conducts(tried(), Variant("a", dict.fromkeys(files, b"x = 2\n")), files=files)
    code, output = tried_with(recording, "--env", "A=1", "--keep", target)
    assert code == 0, output
    assert f"not in the patch: {script} is outside {folder}: change it by hand" in output
    assert f"apply it with `git apply` in {folder}" in output
    same = "make a step shorter, but do not train the same."
    assert f"not in the patch: half-the-batch.diff and float32-matmul {same}" in output
    assert target.read_bytes().startswith(b"--- a/train.py")
