"""The rounds of strangers' scripts: complete, and declared in the words of today's rules."""

from benchmarks import archives
from benchmarks.accuracy.runs import GENERAL
from benchmarks.strangers.cases import HEALTHY, SICK, Case
from benchmarks.strangers.cases import cases as programs
from benchmarks.strangers.edits import EditCount, EditShare
from benchmarks.strangers.scores import Named, Scored, findings, totals
from benchmarks.strangers.stored import markdown, read, write
from benchmarks.strangers.timer import Marks
from tests.kit import *
from tfdoctor.rules import all_rules

ROUNDS = Path(__file__).parents[1] / "benchmarks" / "strangers" / "rounds"


@each(*sorted(ROUNDS.glob("*.zip")), ids=lambda packed: packed.stem)
def test_every_case_of_a_round_is_complete(packed: Path, tmp_path: Path) -> None:
    rules = GENERAL | {rule.name for rule in all_rules()}
    with archives.unpacked(packed) as folder:
        assert (folder / "README.md").is_file()
        found = list(programs(folder, []))
        assert found
        for case in found:
            acceptable = frozenset().union(*case.acceptable.values())
            assert {*case.named_by, *case.named_if_line, *acceptable} <= rules, case.name
            assert case.trap or (case.fault and case.measured and (case.named_by or case.where)), case.name
            scripts = case.written(tmp_path / case.name)
            for twin in case.twins:
                compile(case.script(twin, scripts).read_text("utf-8"), f"{case.name} {twin}", "exec")


def test_packing_what_an_archive_holds_makes_the_same_archive(tmp_path: Path) -> None:
    packed = ROUNDS / "6.zip"
    with archives.unpacked(packed) as folder:
        archives.pack(folder, tmp_path / "again.zip")
        with archives.unpacked(tmp_path / "again.zip") as again:
            files = [
                sorted((p.relative_to(one), p.read_bytes()) for p in one.rglob("*") if p.is_file())
                for one in (folder, again)
            ]
    assert files[0] == files[1]
    assert files[0]


def case_of(folder: Path, **declared: object) -> Case:
    for twin in (SICK, HEALTHY):
        (folder / f"{twin}.py").touch()
    (folder / "case.json").write_text(json.dumps(declared), encoding="utf-8")
    return Case.read(folder)


def test_modules_are_written_beside_the_scripts_that_import_them(tmp_path: Path) -> None:
    (tmp_path / "case" / "cells").mkdir(parents=True)
    (tmp_path / "case" / "cells" / "data.py").write_text("N = 96\n", encoding="utf-8")
    case = case_of(tmp_path / "case", files=["cells/data.py"])
    out = case.written(tmp_path / "out")
    written = {str(path.relative_to(out)) for path in out.rglob("*.py")}
    assert written == {"sick.py", "healthy.py", "cells/data.py"}
    assert (out / "cells" / "data.py").read_text("utf-8") == "N = 96\n"


@cases(("train_function", 32), ("", 16))
def test_a_step_that_compile_makes_again_is_one_step_where_it_is_named(function: str, steps: int) -> None:
    marks = Marks()
    marks.function = function
    call = marks.note("function", lambda _: None, lambda made: marks.key("train_function", made))
    for made in (1, 2):
        for _ in range(16):
            call(made)
    assert len(marks.steps(function)[1]) == steps


def named(rule: str, share: float | None = None, *, at_most: bool = False, line: int = 1) -> Named:
    return Named(rule, share, at_most, (line,))


def test_a_fault_is_found_by_a_rule_that_names_it_or_a_general_one_on_its_line(tmp_path: Path) -> None:
    case = case_of(tmp_path, named_by=["small-files"], where=[20])
    assert Scored(case, {SICK: [named("small-files")]}).naming
    assert Scored(case, {SICK: [named("hot-stage", line=21)]}).naming
    assert not Scored(case, {SICK: [named("hot-stage", line=40)]}).naming
    assert not Scored(case, {SICK: [named("float32-matmul", line=20)]}).naming


@cases((0.1, 1), (0.09, 0), (None, 1))
def test_a_fault_that_costs_nothing_here_does_not_count(saving: float | None, counted: int, tmp_path: Path) -> None:
    case = case_of(tmp_path, named_by=["small-files"])
    assert totals([Scored(case, {SICK: []}, saving)]).cases == counted


def test_what_nobody_declared_is_false(tmp_path: Path) -> None:
    case = case_of(tmp_path, named_by=["small-files"], acceptable=["float32-matmul"])
    said = [named("small-files"), named("float32-matmul"), named("retracing")]
    scored = Scored(case, {SICK: said, HEALTHY: said})
    assert scored.false == [(SICK, "retracing"), (HEALTHY, "small-files"), (HEALTHY, "retracing")]
    assert totals([scored]).precision == pytest.approx(0.5)


def test_a_finding_of_a_general_rule_is_true_at_the_faults_line_alone(tmp_path: Path) -> None:
    case = case_of(tmp_path, named_by=["small-files"], where=[20])
    there, elsewhere = named("hot-stage", line=21), named("hot-stage", line=40)
    assert Scored(case, {SICK: [there]}).false == []
    assert Scored(case, {SICK: [elsewhere]}).false == [(SICK, "hot-stage")]
    assert Scored(case, {HEALTHY: [there]}).false == [(HEALTHY, "hot-stage")]
    assert totals([Scored(case, {SICK: [there], HEALTHY: [there]})]).precision == pytest.approx(0.5)


def test_a_round_is_counted_again_from_what_was_stored(tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    case = case_of(tmp_path / "case", named_by=["small-files"])
    loud = Named("retracing", 0.3, at_most=True, lines=(7, 9), severity="critical")
    scored = [Scored(case, {SICK: [named("small-files"), loud], HEALTHY: []}, 0.5)]
    write(scored, tmp_path)
    assert [(one.case.name, one.found, one.saving) for one in read(tmp_path)] == [(case.name, scored[0].found, 0.5)]
    assert totals(read(tmp_path)) == totals(scored)


def test_the_table_of_rounds_has_each_round_that_strangers_wrote() -> None:
    *_, before_last, last, aim = markdown()
    assert [row.split(" | ")[0] for row in (before_last, last, aim)] == ["| 11", "| 12", "| aim"]
    assert f"| {totals(read(ROUNDS / '12.zip')).false} of " in last
    assert "| 12 | 12 of 16 |" in last


def test_the_figure_is_compared_with_the_measured_saving_for_each_sample(tmp_path: Path) -> None:
    case = case_of(tmp_path, named_by=["small-batch"], samples_per_step={SICK: 2, HEALTHY: 64})
    saving = case.saving([{SICK: {"median_ms": 4.0}, HEALTHY: {"median_ms": 8.0}}])
    scored = Scored(case, {SICK: [named("small-batch", 0.8, at_most=True)]}, saving)
    assert saving == pytest.approx(1 - (8 / 64) / (4 / 2))
    assert scored.error == pytest.approx(0.8 - 0.9375)
    assert (totals([scored]).exceeded, totals([scored]).ceilings) == (1, 1)


def test_a_finding_that_saves_nothing_yet_and_doubts_on_the_recording_do_not_count() -> None:
    def result(rule: str, topic: str, share: float | None) -> dict[str, object]:
        saving = None if share is None else {"share": share, "bound": "expected"}
        return {
            "rule": rule, "topic": topic, "outcome": "finding", "saving": saving,
            "remedies": [{"at": {"path": "train.py", "line": 7}}], "evidence": [],
        }  # fmt: skip

    report = {
        "results": [
            result("float32-matmul", "precision", 0.0),
            result("doubtful-recording", "recording", None),
            result("input-bound", "input", 0.3),
        ]
    }
    assert findings(report) == [named("input-bound", 0.3, line=7)]


def test_findings_with_an_edit_are_counted_for_all_specific_and_naming_rules(tmp_path: Path) -> None:
    case = case_of(tmp_path, named_by=["small-files", "cache-order"])
    edited = Named("cache-order", None, at_most=False, lines=(1,), edit=True)
    said = [named("small-files"), edited, named("retracing"), named("hot-line")]
    count = EditCount.of([Scored(case, {SICK: said, HEALTHY: said})])
    assert count == EditCount(EditShare(1, 4), EditShare(1, 3), EditShare(1, 2), EditShare(1, 1))
    assert str(count) == (
        "edits: 1 of 4 findings, 1 of 3 of specific rules, 1 of 2 that name the fault; 1 of 1 named faults"
    )


def test_an_edit_counts_where_the_report_shows_lines_of_the_script() -> None:
    shown = {"at": None, "before": "a", "after": "b", "in_patch": False}
    for edit, counted in ((shown, True), (None, False)):
        result = {
            "rule": "retracing", "topic": "execution", "outcome": "finding", "saving": None,
            "remedies": [{"at": None, "edit": None}, {"at": None, "edit": edit}], "evidence": [],
        }  # fmt: skip
        assert findings({"results": [result]})[0].edit is counted
