"""Findings become edits and one patch: which edits go together, and how git applies them."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.edits.editing import git_apply
from tests.edits.recorded import finding, recorded, remedy
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import Order, Relation, Relationship
from tfdoctor.edits import edited
from tfdoctor.edits.patch import Draft, FileChange, unified
from tfdoctor.edits.source import Sources

SCRIPT = """\
import keras
import tensorflow as tf

def make(d):
{tab}# {accent}
{tab}d = d.map(f)
{tab}return d.batch(
{tab}{tab}8,
{tab})

model = keras.Sequential([keras.layers.Dense(2)])
model.compile("sgd", "mse")
model.fit(make(d))"""

CHANGED = """\
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")

def make(d):
{tab}# {accent}
{tab}d = d.map(f, num_parallel_calls=tf.data.AUTOTUNE)
{tab}return d.batch(
{tab}{tab}8,
{tab}{tab}num_parallel_calls=tf.data.AUTOTUNE,
{tab}).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([keras.layers.Dense(2, dtype="float32")])
model.compile("sgd", "mse", jit_compile=True, steps_per_execution=16)
model.fit(make(d))"""

POLICY = 'keras.mixed_precision.set_global_policy("mixed_bfloat16")'
EPOCH = {"steps_per_epoch": 320}
TOGETHER = "model.compile(..., steps_per_execution=16)"

WRITTEN = st.fixed_dictionaries(
    {
        "newline": st.sampled_from(["\n", "\r\n"]),
        "tab": st.sampled_from(["\t", "    ", "  "]),
        "encoding": st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "cp1252"]),
        "accent": st.sampled_from(["plain", "é", "ü\x0cß"]),
        "end": st.sampled_from(["", "\n", "\n\n", "\n# end"]),
    }
)


def written(template: str, how: dict[str, str]) -> bytes:
    """Return a script in some style; its encoding is declared unless it is UTF-8."""
    encoding = how["encoding"]
    head = "" if encoding.startswith("utf-8") else f"# coding: {encoding}\n"
    text = head + template.format(**how) + how["end"]
    return text.replace("\n", how["newline"]).encode(encoding)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(how=WRITTEN)
def test_git_applies_the_edits_to_any_file(tmp_path: Path, how: dict[str, str]) -> None:
    script = tmp_path / "a b.py"
    script.write_bytes(written(SCRIPT, how))
    add = 0 if how["encoding"].startswith("utf-8") else 1
    asked = [
        ("parallel-map", 6, ""), ("parallel-batch", 7, ""),
        ("prefetch", 7, ""), ("mixed-precision", 11, POLICY), ("jit-compile", 12, ""),
        ("steps-per-execution", 12, TOGETHER),
    ]  # fmt: skip
    findings = [finding(edit_id, remedy(edit_id, "a b.py", line + add, code)) for edit_id, line, code in asked]
    results, patch = edited(recorded(tmp_path, ["a b.py"], EPOCH), findings, None)

    assert [edit.missing for result in results for edit in result.edits] == [""] * len(asked)
    git_apply(patch, tmp_path)
    assert script.read_bytes() == written(CHANGED, how)
    compile(script.read_bytes(), "a b.py", "exec")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.text("ab\r\n\té", min_size=1, max_size=40), after=st.text("ab\r\n\té", min_size=1, max_size=40))
def test_a_diff_is_what_git_reads(tmp_path: Path, before: str, after: str) -> None:
    if before == after:
        return
    (tmp_path / "x.py").write_bytes(before.encode())
    git_apply(unified([FileChange("x.py", before.encode(), after.encode())]), tmp_path)
    assert (tmp_path / "x.py").read_bytes() == after.encode()


def test_it_applies_in_the_folder_of_the_run_within_a_repository(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True, timeout=60)
    folder = tmp_path / "jobs"
    (folder / "input").mkdir(parents=True)
    names = ["train.py", "input/pipeline.py"]
    for name in names:
        (folder / name).write_text("import tensorflow as tf\nd = d.map(f)\n")
    findings = [finding(name, remedy("parallel-map", name, 2)) for name in names]
    _, patch = edited(recorded(folder, names), findings, None)

    git_apply(patch, folder)
    made = "import tensorflow as tf\nd = d.map(f, num_parallel_calls=tf.data.AUTOTUNE)\n"
    assert [(folder / name).read_text() for name in names] == [made, made]


def test_a_package_called_like_the_folder_is_not_confused_with_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True, timeout=60)
    folder = tmp_path / "proj"
    (folder / "proj").mkdir(parents=True)
    text = "import tensorflow as tf\nd = d.map(f)\n"
    for name in ("data.py", "proj/data.py"):
        (folder / name).write_text(text)
    asked = [finding("a", remedy("parallel-map", "proj/data.py", 2))]
    _, patch = edited(recorded(folder, ["proj/data.py"]), asked, None)

    git_apply(patch, folder)
    assert (folder / "data.py").read_text() == text
    assert "num_parallel_calls" in (folder / "proj" / "data.py").read_text()


@pytest.mark.parametrize("link", ["train.py", "linked/real.py"])
def test_a_link_is_followed_to_the_file_that_git_changes(tmp_path: Path, link: str) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True, timeout=60)
    (tmp_path / "code").mkdir()
    real = tmp_path / "code" / "real.py"
    real.write_text("import tensorflow as tf\nd = d.map(f)\n")
    (tmp_path / "train.py").symlink_to(real)
    (tmp_path / "linked").symlink_to(tmp_path / "code")
    results, patch = edited(recorded(tmp_path, [link]), [finding("a", remedy("parallel-map", link, 2))], None)
    assert results[0].edits[0].missing == ""
    git_apply(patch, tmp_path)
    assert "num_parallel_calls" in real.read_text()
    assert (tmp_path / "train.py").is_symlink()


def test_a_link_to_a_file_elsewhere_is_not_in_the_patch(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "real.py").write_text("import tensorflow as tf\nd = d.map(f)\n")
    (folder / "train.py").symlink_to(tmp_path / "real.py")
    (reason,) = reasons(folder, finding("a", remedy("parallel-map", line=2)))
    assert "outside the folder" in reason


def test_nothing_writes_to_the_file(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import tensorflow as tf\nd = d.map(f)\n")
    edited(recorded(tmp_path, ["train.py"]), [finding("a", remedy("parallel-map", line=2))], None)
    assert script.read_text() == "import tensorflow as tf\nd = d.map(f)\n"


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """A folder with a script that several remedies change in the same line."""
    (tmp_path / "train.py").write_text('model.compile("sgd", "mse")\nmodel.fit(x)\n')
    return tmp_path


def reasons(folder: Path, *findings: Result, order: Order | None = None) -> list[str]:
    results, _ = edited(recorded(folder, ["train.py"], EPOCH), findings, order)
    return [edit.missing for result in results for edit in result.edits]


def test_two_findings_that_want_the_same_edit_get_it_once(compiled: Path) -> None:
    findings = [finding("a", remedy("jit-compile")), finding("b", remedy("jit-compile"))]
    assert reasons(compiled, *findings) == ["", ""]
    _, patch = edited(recorded(compiled, ["train.py"]), findings, None)
    assert patch.count(b"jit_compile=True") == 1


def test_of_several_fixes_for_one_finding_the_first_is_taken(compiled: Path) -> None:
    either = finding("a", remedy("jit-compile"), remedy("steps-per-execution", code=TOGETHER))
    first, second = reasons(compiled, either)
    assert first == ""
    assert "another fix for this finding" in second


def test_of_two_findings_that_exclude_each_other_the_first_is_taken(compiled: Path) -> None:
    order = Order(relations=(Relation(Relationship.INSTEAD, "a", ("b",)),))
    findings = [finding("a", remedy("jit-compile")), finding("b", remedy("steps-per-execution", code=TOGETHER))]
    first, second = reasons(compiled, *findings, order=order)
    assert first == ""
    assert "cannot be combined with the fix for a," in second


def test_a_remedy_without_a_line_is_made_where_the_run_trains(compiled: Path) -> None:
    assert reasons(compiled, finding("a", remedy("jit-compile", line=0))) == [""]


@pytest.mark.parametrize(
    ("run", "why"),
    [(EPOCH, ""), ({"steps_per_epoch": 65}, "16 does not divide the 65 steps"), ({}, "number of steps per epoch")],
)
def test_the_steps_of_a_call_divide_the_epoch(compiled: Path, run: dict[str, object], why: str) -> None:
    findings = [finding("a", remedy("steps-per-execution", code=TOGETHER))]
    results, _ = edited(recorded(compiled, ["train.py"], run), findings, None)
    missing = results[0].edits[0].missing
    assert why in missing
    assert bool(why) == bool(missing)


def test_a_change_by_hand_says_so(compiled: Path) -> None:
    findings = [finding("a", remedy("")), finding("b", remedy(""), by_hand="files have to be written again")]
    unnamed, named = reasons(compiled, *findings)
    assert "by hand" in unnamed
    assert "written again" in named


def test_a_file_outside_the_folder_is_shown_and_not_in_the_patch(tmp_path: Path) -> None:
    other = tmp_path / "library.py"
    other.write_text('model.compile("sgd", "mse")\n')
    folder = tmp_path / "run"
    folder.mkdir()
    recording = recorded(folder, [str(other)])
    results, patch = edited(recording, [finding("a", remedy("jit-compile", str(other)))], None)
    assert results[0].edits[0].after == 'model.compile("sgd", "mse", jit_compile=True)'
    assert "outside the folder" in results[0].edits[0].missing
    assert patch == b""


def test_a_file_that_is_no_python_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("model.compile(\n")
    (reason,) = reasons(tmp_path, finding("a", remedy("jit-compile")))
    assert "cannot be parsed" in reason


def test_a_draft_without_edits_is_no_patch(compiled: Path) -> None:
    assert Draft(Sources(recorded(compiled, []))).patch() == b""
