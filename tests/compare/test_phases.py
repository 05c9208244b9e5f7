"""The phases of two whole runs beside each other."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compare.made import finding, report, series
from tests.report import diagnoses
from tfdoctor.compare.compare import compare
from tfdoctor.compare.differences import run_change
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.comparison import FindingState
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import RunSaving
from tfdoctor.diagnosis.work import PhaseRow, RunAccount
from tfdoctor.report import comparison as words
from tfdoctor.report.formats.json import contract
from tfdoctor.stored.files import of_text
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.verdict import Bound, Recurrence


def with_run(made: Diagnosis, times: dict[Phase, float], epochs: int = 10) -> Diagnosis:
    rows = tuple(PhaseRow(phase=phase, ms=time) for phase, time in times.items())
    account = RunAccount(total_ms=sum(times.values()), rows=rows, epochs=epochs, steps=60)
    return replace(made, run=account)


def whole(times: dict[Phase, float], epochs: int = 10) -> Diagnosis:
    return with_run(report(series(0)), times, epochs)


times = st.dictionaries(st.sampled_from(Phase), st.floats(0.0, 1e8))


@given(times, times)
def test_phases_sum_to_the_runs_without_our_own_work(before: dict[Phase, float], after: dict[Phase, float]) -> None:
    change = run_change(whole(before), whole(after))
    assert change
    assert sum(one.before_ms for one in change.phases) == pytest.approx(change.before_ms)
    assert sum(one.after_ms for one in change.phases) == pytest.approx(change.after_ms)
    shown = [one.phase for one in change.phases]
    assert shown == [one for one in Phase if one in {*before, *after} - {Phase.PROFILER}]


def test_a_run_that_was_ended_early_is_known_as_such() -> None:
    known = whole({Phase.STEPS: 1_000.0})
    assert known.run
    early = replace(known, run=replace(known.run, ended_early=True))
    told = [run_change(*pair) for pair in ((known, known), (known, early), (early, known))]
    assert [one.ended_early for one in told if one] == [False, True, True]


def test_runs_that_are_not_known_whole_are_not_compared() -> None:
    known = whole({Phase.STEPS: 1_000.0})
    assert known.run
    window = replace(known, run=replace(known.run, whole=False))
    old = report(series(0))
    assert run_change(known, old) is None
    assert run_change(window, known) is None
    assert compare([known], [known], in_ms=False).run is None


def test_a_phase_of_a_later_version_is_unnamed() -> None:
    content = contract(whole({Phase.STEPS: 5.0}))
    content["run"]["phases"][0]["phase"] = "dreaming"
    later = of_text(json.dumps(content), Path("report.json"))
    change = run_change(later, later)
    assert change
    assert [one.phase for one in change.phases] == [Phase.UNNAMED]


def test_phases_and_the_whole_run_are_a_table_with_differences() -> None:
    before = whole({Phase.PREPARING: 21_400.0, Phase.STEPS: 60_000.0})
    after = whole({Phase.PREPARING: 1_400.0, Phase.STEPS: 60_000.0})
    comparison = compare([before], [after])
    (title, grid), *_ = words.tables(comparison).items()
    assert title == "Phases of the run"
    assert grid.rows[0] == ("whole run", "81.4 s", "61.4 s", "20 s")
    assert grid.rows[1] == ("preparing data", "21.4 s", "1.4 s", "20 s")
    assert any("took 81.4 s before and 61.4 s after" in note for note in words.notes(comparison))


def test_runs_of_unlike_length_are_said_to_be() -> None:
    comparison = compare([whole({Phase.STEPS: 1.0})], [whole({Phase.STEPS: 2.0}, epochs=20)])
    assert any("have 10 and 20 epochs" in note for note in words.notes(comparison))


def of_run(time: float, share: float) -> Result:
    return replace(
        finding("slow-prediction", "embed.py", 0.0),
        saving=None,
        run=RunSaving(
            ms=time,
            share=share,
            rated_share=share,
            recurs=Recurrence.ONCE,
            each_ms=time,
            times=1,
            bound=Bound.EXPECTED,
        ),
    )


@pytest.mark.parametrize(
    ("share", "state"), [(0.7, FindingState.SAME), (0.5, FindingState.BETTER), (0.9, FindingState.WORSE)]
)
def test_a_finding_about_the_run_changes_with_its_share(share: float, state: FindingState) -> None:
    before = report(series(0), results=[of_run(70_000.0, 0.69)])
    after = report(series(0), results=[of_run(share * 1e5, share)])
    compared = compare([before], [after])
    (row,) = words.tables(compared)[words.FINDINGS].rows
    assert compared.findings[0].state is state
    assert row[3] == "saves 70 s of the run"


def test_a_report_is_read_with_its_run() -> None:
    rows = (PhaseRow(phase=Phase.IMPORTS, ms=6_000.0), PhaseRow(phase=Phase.STEPS, ms=60_000.0))
    account = RunAccount(total_ms=66_000.0, rows=rows, epochs=3, steps=600)
    text = json.dumps(contract(replace(diagnoses.full(), run=account)))
    read = of_text(text, Path("report.json"))
    assert read.run
    assert read.run == account
