"""Findings become edits: which of them go into one patch, and the files as chosen ones change them for a trial."""

from tests.edits.kit import *
from tfdoctor.diagnosis.savings import Order, Relation, Relationship, Saving
from tfdoctor.edits.patch import changed_files
from tfdoctor.terms.verdict import Bound

TEXT = """\
import tensorflow as tf

d = tf.data.Dataset.range(8).map(f)
d = d.batch(2)
model.compile("adam", "mse")
model.fit(d)
"""

MAP = ("parallel-map", remedy("parallel-map", line=3))
BATCH = ("parallel-batch", remedy("parallel-batch", line=4))
JIT = ("jit-compile", remedy("jit-compile", line=5))
EPOCH = {"steps_per_epoch": 80}
STEPS = remedy("steps-per-execution", line=5, code="steps_per_execution=8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TEXT)
    return tmp_path


def patched(folder: Path, patch: bytes) -> str:
    git_apply(patch, folder)
    return (folder / "train.py").read_text()


def order(kind: Relationship, rule: str, *others: str) -> Order:
    return Order(relations=(Relation(kind, rule, others),))


def test_edits_of_several_findings_are_one_patch(folder: Path) -> None:
    findings = [finding(*MAP), finding(*BATCH), finding(*JIT)]
    results, patch = made(folder, *findings, run=EPOCH)
    assert missing(results) == ["", "", ""]
    assert patched(folder, patch) == TEXT.replace("map(f)", "map(f, num_parallel_calls=tf.data.AUTOTUNE)").replace(
        "batch(2)", "batch(2, num_parallel_calls=tf.data.AUTOTUNE)"
    ).replace('"mse")', '"mse", jit_compile=True)')


@pytest.mark.parametrize("first", ["jit-compile", "steps-per-execution"])
def test_findings_that_exclude_each_other_are_not_combined(folder: Path, first: str) -> None:
    both = [finding(*JIT), finding("steps-per-execution", STEPS)]
    findings = sorted(both, key=lambda result: result.rule.name != first)
    excluded = order(Relationship.INSTEAD, "jit-compile", "steps-per-execution")
    results, patch = made(folder, *findings, run=EPOCH, order=excluded)
    taken, left_out = missing(results)
    assert taken == ""
    assert first in left_out
    assert (b"jit_compile" in patch) == (first == "jit-compile")


def test_a_fix_that_saves_nothing_after_the_others_is_left_out(folder: Path) -> None:
    findings = [finding(*MAP), finding(*BATCH), finding(*JIT)]
    unneeded = order(Relationship.UNNEEDED, "parallel-map", "parallel-batch", "jit-compile")
    results, patch = made(folder, *findings, run=EPOCH, order=unneeded)
    assert [result.rule.name for result in results] == [name for name, _ in (MAP, BATCH, JIT)]
    left_out, *taken = missing(results)
    assert "parallel-batch and jit-compile" in left_out
    assert taken == ["", ""]
    assert b"map(f, " not in patch


def after(result: Result, *others: str) -> Result:
    """Return a finding whose fix saves nothing before other findings are fixed."""
    saving = Saving(ms_per_step=0.0, share=0.0, bound=Bound.EXPECTED, how="", after=others)
    return replace(result, saving=saving)


def test_a_fix_that_saves_nothing_before_others_is_left_out_without_them(folder: Path) -> None:
    findings = [after(finding(*JIT), "parallel-map"), finding("parallel-map", remedy("", line=3))]
    results, patch = made(folder, *findings, run=EPOCH)
    dependent, by_hand = missing(results)
    assert "parallel-map" in dependent
    assert by_hand
    assert results[0].edits[0].after.endswith("jit_compile=True)")
    assert patch == b""


def test_a_fix_that_saves_after_others_is_in_the_patch_with_them(folder: Path) -> None:
    findings = [after(finding(*JIT), "parallel-map"), finding(*MAP)]
    results, _ = made(folder, *findings, run=EPOCH)
    assert missing(results) == ["", ""]


def test_other_fixes_count_only_where_they_are_in_the_patch(folder: Path) -> None:
    findings = [finding(*MAP), finding("cost", remedy("", line=4))]
    unneeded = order(Relationship.UNNEEDED, "parallel-map", "cost")
    results, patch = made(folder, *findings, run=EPOCH, order=unneeded)
    assert missing(results)[0] == ""
    assert b"num_parallel_calls" in patch


def test_a_defect_in_one_edit_costs_that_edit_alone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit fails as one of a rule in the user's folder may."""
    (tmp_path / "edits_of_mine.py").write_text("EDITS = {'mine': lambda *_: [][1]}")
    monkeypatch.syspath_prepend(str(tmp_path))
    broken = finding("mine", remedy("mine", line=3))
    broken = replace(broken, rule=replace(broken.rule, edit_modules=("edits_of_mine",)))
    results, patch = made(folder, broken, finding(*JIT), run=EPOCH)
    defect, other = missing(results)
    assert "IndexError" in defect
    assert "report this defect" in defect
    assert other == ""
    assert b"jit_compile=True" in patch


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """A folder with a script that several remedies change in the same line."""
    (tmp_path / "train.py").write_text('model.compile("sgd", "mse")\nmodel.fit(x)\n')
    return tmp_path


def reasons(folder: Path, *findings: Result) -> list[str]:
    return missing(made(folder, *findings, run=EPOCH)[0])


def test_two_findings_that_want_the_same_edit_get_it_once(compiled: Path) -> None:
    findings = [finding("a", remedy("jit-compile")), finding("b", remedy("jit-compile"))]
    results, patch = made(compiled, *findings)
    assert missing(results) == ["", ""]
    assert patch.count(b"jit_compile=True") == 1


def test_of_several_fixes_for_one_finding_the_first_is_taken(compiled: Path) -> None:
    either = finding("a", remedy("jit-compile"), remedy("steps-per-execution", code="steps_per_execution=8"))
    first, second = missing(made(compiled, either, run=EPOCH)[0])
    assert first == ""
    assert "another fix for this finding" in second


def test_a_remedy_without_a_line_is_made_where_the_run_trains(compiled: Path) -> None:
    assert missing(made(compiled, finding("a", remedy("jit-compile", line=0)))[0]) == [""]


@pytest.mark.parametrize(
    ("run", "why"),
    [(EPOCH, ""), ({"steps_per_epoch": 65}, "8 does not divide the 65 steps"), ({}, "number of steps per epoch")],
)
def test_the_steps_of_a_call_divide_the_epoch(compiled: Path, run: dict[str, object], why: str) -> None:
    found = finding("a", remedy("steps-per-execution", code="steps_per_execution=8"))
    (reason,) = missing(made(compiled, found, run=run)[0])
    assert why in reason
    assert bool(why) == bool(reason)


def test_a_file_outside_the_folder_is_shown_and_not_in_the_patch(tmp_path: Path) -> None:
    other = tmp_path / "library.py"
    other.write_text('model.compile("sgd", "mse")\n')
    folder = tmp_path / "run"
    folder.mkdir()
    recording = recorded(folder, [str(other)])
    results, patch = made(recording, finding("a", remedy("jit-compile", str(other))))
    assert results[0].edits[0].after == 'model.compile("sgd", "mse", jit_compile=True)'
    assert "outside the folder" in results[0].edits[0].missing
    assert patch == b""


def test_a_file_that_is_no_python_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("model.compile(\n")
    (reason,) = missing(made(tmp_path, finding("a", remedy("jit-compile")))[0])
    assert "cannot be parsed" in reason


def test_one_finding_alone_and_two_together(folder: Path) -> None:
    recording = recorded(folder)
    parallel, jit = finding(*MAP), finding(*JIT)
    path = (folder / "train.py").resolve()
    alone = changed_files(recording, [parallel])
    assert alone == {path: TEXT.replace(".map(f)", ".map(f, num_parallel_calls=tf.data.AUTOTUNE)").encode()}
    both = changed_files(recording, [parallel, jit])[path]
    assert b"num_parallel_calls" in both
    assert b"jit_compile=True" in both
    assert (folder / "train.py").read_text() == TEXT


def test_of_several_remedies_the_first_that_is_an_edit_is_taken(folder: Path) -> None:
    recording = recorded(folder)
    by_hand = remedy("", line=3)
    found = finding("parallel-map", by_hand, MAP[1], remedy("cache", line=3))
    (text,) = changed_files(recording, [found]).values()
    assert b"num_parallel_calls" in text
    assert b"cache" not in text


def test_a_finding_without_an_edit_says_why(folder: Path) -> None:
    recording = recorded(folder)
    with pytest.raises(Declined, match="hand"):
        changed_files(recording, [finding("own-rule", remedy("", line=3))])
