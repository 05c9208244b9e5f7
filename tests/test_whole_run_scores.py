"""The benchmark of whole programs counts what reports say of planted causes, and what they say falsely."""

from benchmarks.whole_run import phase_timer
from benchmarks.whole_run.cases import Case
from benchmarks.whole_run.cases import cases as programs
from benchmarks.whole_run.phase_timer import VARIABLE
from benchmarks.whole_run.reports import RunFinding, RunReport
from benchmarks.whole_run.scores import Scored, figures, quantile
from tests.kit import *

CASE = Case(
    Path("pairs/compiles"), 30, 33, sick_s=100.0, healthy_s=60.0,
    true=frozenset(["slow-start"]),
)  # fmt: skip


def finding(
    rule: str = "retracing", line: int = 31, severity: str = "critical", own: int = 1, share: float | None = 0.35
) -> RunFinding:
    return RunFinding(rule, severity, "run", "It is so", (("sick.py", line),), own, share)


def scored(sick: list[RunFinding], healthy: list[RunFinding] | None = None) -> Scored:
    report = RunReport(tuple(sick), {"steps": 49_000.0, "end": 3_000.0}, 100_000.0)
    return Scored(CASE, report, RunReport(tuple(healthy or ()), {}, 60_000.0))


@cases(
    ([finding()], True, True),
    ([finding(line=30)], True, True),
    ([finding(line=34)], False, False),
    ([finding(line=9), finding()], False, True),
    ([finding(own=0)], False, True),  # the line stands in its evidence only
    ([], False, False),
)
def test_a_cause_counts_as_first_with_its_own_line(findings: list[RunFinding], *, first: bool, named: bool) -> None:
    one = scored(findings)
    assert (one.first, one.named is not None) == (first, named)


def test_the_saving_is_compared_as_shares_of_the_sick_run() -> None:
    assert scored([finding()]).error == pytest.approx(0.35 - 0.40)
    assert scored([]).error == pytest.approx(-0.40)  # a saving that is not promised
    assert scored([finding(share=None)]).error == pytest.approx(-0.40)


@cases(
    (finding(), 1),
    (finding(severity="warning"), 1),
    (finding(severity="note"), 0),
    (finding(rule="slow-start"), 0),  # declared
)
def test_loud_findings_of_a_healthy_program_are_false_unless_declared(one: RunFinding, false: int) -> None:
    assert len(scored([], [one]).false) == false


def test_phases_are_compared_with_the_timer() -> None:
    report = RunReport((), {"steps": 40_000.0, "profiler": 500.0, "imports": 2_000.0}, 100_000.0)
    timed = {"training": 35.0, "between_epochs": 3.5, "imports": 2.0}
    errors = Scored(CASE, None, None, report, timed).phase_errors
    assert errors["training"] == pytest.approx(0.02)
    assert errors["imports"] == errors["evaluation and prediction"] == 0.0
    assert scored([]).phase_errors == {}


def test_the_timer_gives_each_moment_to_one_phase(tmp_path: Path) -> None:
    source = (
        "import time, phase_timer\n"
        "phase_timer._T('preparing'); time.sleep(0.05)\n"
        "phase_timer._push('building'); time.sleep(0.05); phase_timer._pop()\n"
    )
    out = tmp_path / "seconds.json"
    environment = {VARIABLE: str(out), "PYTHONPATH": str(Path(phase_timer.__file__).parent)}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", source], env=os.environ | environment, check=True)
    took, seconds = time.perf_counter() - began, json.loads(out.read_text())
    assert set(seconds) == {"imports", "preparing", "building"}
    assert min(seconds["preparing"], seconds["building"]) >= 0.05
    assert sum(seconds.values()) <= took


def test_figures_state_whether_the_aim_is_reached() -> None:
    found = {figure.name: figure for figure in figures([scored([finding()], [finding(rule="x")])])}
    first = found["cause first in the list with its line"]
    assert (first.value, first.aim, first.reached) == ("1 of 1", "90%", True)
    assert found["healthy programs without a false warning"].reached is False
    assert found["error of the run's saving, median"].value == "5.0 points"
    assert all(figure.reached is None for figure in figures([]))


@given(st.lists(st.floats(0.0, 1.0), min_size=1))
def test_nine_of_ten_are_within_the_quantile(values: list[float]) -> None:
    limit = quantile(values, 0.9)
    assert limit in values
    assert sum(value <= limit for value in values) >= 0.9 * len(values)


def test_pairs_are_read_from_their_folders(tmp_path: Path) -> None:
    for name, data in (("01-a", {"line": 3}), ("02-b", {"line": 3, "end_line": 5, "sick_s": 9.0})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "case.json").write_text(json.dumps(data))
    first, second = programs(tmp_path)
    assert (first.end_line, first.saving) == (3, None)
    assert second.holds("src/sick.py", 5)
    assert not second.holds("sick.py", 6)
    assert not second.holds("other.py", 5)
    assert [case.name for case in programs(tmp_path, ["02"])] == ["02-b"]


def test_a_report_is_read_in_the_order_of_its_list(tmp_path: Path) -> None:
    at = {"path": "sick.py", "line": 31, "kind": "line"}
    near = at | {"kind": "training-call"}
    results: list[dict[str, Any]] = [
        {"rule": "a", "topic": "run", "at": near, "remedies": [{"at": None}], "evidence": [], "run": None},
        {
            "rule": "b", "topic": "run", "at": at, "remedies": [], "run": {"share": 0.5, "bound": "expected"},
            "evidence": [{"columns": ["line"], "rows": [[{"path": "sick.py", "line": 7}]]}],
        },
        {"rule": "c", "topic": "recording", "at": None, "remedies": [], "evidence": [], "run": None},
    ]  # fmt: skip
    for result in results:
        result |= {"outcome": "finding", "severity": "warning", "summary": "It is so"}
    report = {"results": results, "entries": [{"rule": "b"}], "run": None}
    (tmp_path / "report.json").write_text(json.dumps(report))
    b, a = RunReport.read(tmp_path).findings
    assert (b.rule, b.lines, b.own, b.share) == ("b", (("sick.py", 31), ("sick.py", 7)), 1, 0.5)
    assert (a.rule, a.lines) == ("a", ())
    assert RunReport.read(tmp_path / "none").findings == ()
