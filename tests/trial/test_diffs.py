"""Patches of the user's on copies, changes of one file together, and the diff of what proved to help."""

from tests.trial.kit import *

TEXT = "x = 1\ny = 3\n"
CHANGED = b"x = 2\ny = 3\n"
DIFF = """--- a/train.py
+++ b/train.py
@@ -1,2 +1,2 @@
-x = 1
+x = 2
 y = 3
"""
ADDS = "--- /dev/null\n+++ b/train.py\n@@ -0,0 +1 @@\n+x = 2\n"
DELETES = "--- a/train.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x = 1\n-y = 3\n"
RENAMES = "diff --git a/train.py b/other.py\nsimilarity index 50%\nrename from train.py\nrename to other.py\n"
MODE = "diff --git a/train.py b/train.py\nold mode 100644\nnew mode 100755\n"


def patch_of(folder: Path, diff: str | None, name: str = "train.py", text: str = TEXT) -> Variant:
    """Return the variant of a diff in a folder with one file."""
    (folder / name).write_text(text)
    if diff is not None:
        (folder / "mine.diff").write_text(diff)
    return diffs.of_patch(folder / "mine.diff", folder)


@cases(
    ("train.py", "x = 1"),
    # Trap: a removed line that starts with two dashes looks like the name of a file.
    ("train.py", "-- /dev/null"),
    ("train.py", "-- x"),
    ("tr\u00e4in it.py", "x = 1"),
)
def test_a_patch_is_applied_to_copies(name: str, line: str, tmp_path: Path) -> None:
    diff = DIFF.replace("train.py", f"{name}\t" if " " in name else name).replace("-x = 1", f"-{line}")
    variant = patch_of(tmp_path, diff, name, f"{line}\ny = 3\n")
    assert variant.files == {tmp_path / name: CHANGED}
    assert variant.name == "mine.diff"
    assert (tmp_path / name).read_text() == f"{line}\ny = 3\n"


@cases(
    (DIFF, "x = 5\n", "does not apply"),
    (DIFF, "", "does not apply"),
    ("hello\n", TEXT, "is no diff"),
    (None, TEXT, "check the path"),
    (ADDS, TEXT, "adds or deletes a file, or renames one"),
    (DELETES, TEXT, "adds or deletes a file, or renames one"),
    (RENAMES + DIFF.replace("b/train.py", "b/other.py"), TEXT, "adds or deletes a file, or renames one"),
    (MODE, TEXT, "changes the text of no file"),
)
def test_a_patch_that_cannot_be_tried_is_one_sentence(
    diff: str | None, text: str, why: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=why) as raised:
        patch_of(tmp_path, diff, text=text)
    assert "\n" not in str(raised.value)


@each("../outside.py", "/etc/outside.py")
def test_a_patch_touches_nothing_outside_of_the_folder(name: str, tmp_path: Path) -> None:
    """Trap: the copy that a patch is tried on must not land above the folder for copies."""
    folder, outside = tmp_path / "run", tmp_path / "outside.py"
    folder.mkdir()
    outside.write_text(TEXT)
    with pytest.raises(InputError, match="outside of the folder"):
        patch_of(folder, DIFF.replace("/train.py", f"/{name}"))
    assert outside.read_text() == TEXT


def test_changes_of_other_lines_of_one_file_go_together() -> None:
    base = b"a = 1\n" + b"x = 0\n" * 8 + b"b = 1\n"
    one, other = base.replace(b"a = 1", b"a = 2"), base.replace(b"b = 1", b"b = 2")
    assert diffs.merged(base, one, other) == one.replace(b"b = 1", b"b = 2")
    with pytest.raises(Declined, match="the same lines"):
        diffs.merged(base, one, base.replace(b"a = 1", b"a = 3"))


@cases(
    (["work/a.py"], b"--- a/a.py", "work", []),
    (["jobs/train.py"], b"--- a/train.py", "jobs", []),
    (["jobs/train.py", "elsewhere/other.py"], b"--- a/train.py", "jobs", ["elsewhere/other.py"]),
    ([], b"", "work", []),
)
def test_the_diff_is_of_the_folder_that_holds_the_files(
    names: list[str], header: bytes, folder: str, left_out: list[str], tmp_path: Path
) -> None:
    """Of the run or of the script, as here: `python ../jobs/train.py`."""
    for name in ("work", "jobs", "elsewhere"):
        (tmp_path / name).mkdir()
    paths = [tmp_path / name for name in names]
    for path in paths:
        path.write_text("x = 1\n")
    command = ["python", "../jobs/train.py"]
    recording = Recording.open(made(tmp_path, cwd=str(tmp_path / "work"), command=command))
    kept = [Variant("a", dict.fromkeys(paths, b"x = 2\n"))] if paths else []
    diff, found, outside = diffs.kept_diff(kept, texts_of(paths), recording)
    assert diff.startswith(header)
    assert (b"other.py" in diff, bool(diff)) == (False, bool(names))
    assert (found, list(outside)) == (tmp_path / folder, [tmp_path / one for one in left_out])


def test_the_kept_changes_do_not_revert_an_edit_made_meanwhile(tmp_path: Path) -> None:
    recording = Recording.open(made(tmp_path))
    path = tmp_path / "train.py"
    path.write_text("x = 1\ny = 1\n")
    originals = texts_of([path])
    path.write_text("x = 1\ny = 1\nmine = 1\n")
    diff, _, _ = diffs.kept_diff([Variant("a", {path: b"x = 2\ny = 1\n"})], originals, recording)
    assert b"mine" not in diff
    assert b"-x = 1\n+x = 2\n" in diff
