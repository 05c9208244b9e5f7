"""The history of runs: series, order, findings, and what was accepted."""

from dataclasses import replace
from typing import Any

import pytest

from tests.history.made import commit, followed, moment, noisy, read, report
from tests.report import diagnoses
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.gates import BudgetState
from tfdoctor.diagnosis.history_report import History, MetricHistory, RunMetric
from tfdoctor.history.runs import SHOWN, UNTRACED, KeptHistory, ReadRun, accepted, named, of_program
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.verdict import Healthy, Severity


def step(history: History) -> MetricHistory:
    (series,) = history.series
    return series.metrics[0]


def state(history: History) -> BudgetState | None:
    check = step(history).check
    assert check is not None
    return check.state


def test_runs_are_in_the_order_of_their_commits_and_not_of_their_recording() -> None:
    again = report(1, recorded=moment(40))
    history = followed([report(2), again, report(0)])
    (series,) = history.series
    assert [run.commit for run in series.runs] == [commit(0), commit(1), commit(2)]


def test_without_a_commit_runs_are_in_the_order_of_their_recording() -> None:
    history = followed([report(2, commit="", committed=""), report(0, commit="", committed="")])
    (series,) = history.series
    assert [run.recorded for run in series.runs] == [moment(0), moment(2)]


@pytest.mark.parametrize(
    "changes",
    [
        {"command": ("python", "other.py")},
        {"command": ("python", "train.py", "--epochs", "3")},
        {"device_name": "another GPU"},
    ],
)
def test_another_program_its_arguments_or_another_machine_is_another_series(changes: dict[str, Any]) -> None:
    history = followed([report(0), report(1, **changes), report(2)])
    assert [len(series.runs) for series in history.series] == [2, 1]


def test_versions_belong_to_the_series_and_are_noted() -> None:
    runs = [report(0, framework={"tensorflow": "2.20.0"}), report(1, framework={"tensorflow": "2.21.0"})]
    (series,) = followed(runs).series
    assert series.notes == (f"with {commit(1)[:9]}, tensorflow changed from 2.20.0 to 2.21.0",)


def test_all_steps_of_a_series_are_of_one_kind() -> None:
    runs = noisy([50.0] * 3)
    assert step(followed(runs)).what == UNTRACED
    unknown = replace(runs[1], conditions=replace(runs[1].conditions, untraced_ms=None))
    found = step(followed([runs[0], unknown, runs[2]]))
    assert found.what == SHOWN
    assert found.values == tuple(one.steps.shown_ms for one in runs)


def test_the_metrics_are_in_their_units() -> None:
    (series,) = followed([report(0)]).series
    assert dict(series.runs[0].values) == {RunMetric.STEP: 50.0, RunMetric.RUN: 10.0, RunMetric.MEMORY: 3.0}


def test_a_run_that_was_ended_early_is_no_run_among_whole_ones() -> None:
    runs = noisy([50.0] * 3)
    assert runs[1].run is not None
    ended = replace(runs[1], run=replace(runs[1].run, ended_early=True))
    (series,) = followed([runs[0], ended, runs[2]]).series
    assert [RunMetric.RUN in run.values for run in series.runs] == [True, False, True]
    (alike,) = followed([ended]).series
    assert RunMetric.RUN in alike.runs[0].values


def test_findings_of_a_run_that_was_ended_early_are_weighed_by_the_step() -> None:
    base = diagnoses.run()
    assert base.run is not None
    both = [one for one in base.results if one.run and one.saving]
    assert any(one.run.share != one.saving.share for one in both if one.run and one.saving)
    for early in (False, True):
        found = ReadRun.of("a", replace(base, run=replace(base.run, ended_early=early)))
        for one in both:
            share = one.saving.share if early and one.saving else one.run.share if one.run else None
            assert found.run.findings[one.rule.name].saving == share


# A regression


REGRESSED = [50.0] * 12 + [60.0] * 12


def test_a_regression_is_marked_at_its_commit_and_fails_until_it_is_accepted() -> None:
    runs = noisy(REGRESSED)
    history = followed(runs, limit=0.1)
    (change,) = step(history).changes
    assert history.series[0].runs[change.at].commit == commit(12)
    assert change.share == pytest.approx(0.2, abs=0.02)
    assert state(history) is BudgetState.EXCEEDED
    assert history.failed

    kept = KeptHistory()
    for what in ("step-ms", "run-s"):
        kept = kept.with_entry(accepted(what, commit(12)[:9], history.series, by="Ann", why="larger crops"))
    history = followed(runs, kept, limit=0.1)
    assert [one.accepted is not None for one in step(history).changes] == [True]
    assert state(history) is BudgetState.MET
    assert not history.failed


def test_a_new_regression_fails_after_another_was_accepted() -> None:
    runs = noisy([*REGRESSED, 75.0])
    history = followed(runs, limit=0.1)
    kept = KeptHistory().with_entry(accepted("step-ms", commit(12), history.series, by="Ann", why="larger crops"))
    assert state(followed(runs, kept, limit=0.1)) is BudgetState.EXCEEDED


def test_a_mended_regression_passes() -> None:
    history = followed(noisy([50.0] * 10 + [60.0] * 7 + [50.0] * 7), limit=0.1)
    assert [one.at for one in step(history).changes] == [10, 17]
    check = step(history).check
    assert check is not None
    assert (check.runs, history.failed) == (6, False)


def test_a_regression_older_than_the_last_runs_is_the_level() -> None:
    assert followed(noisy(REGRESSED), limit=0.1).failed
    assert not followed(noisy(REGRESSED), limit=0.1, last=8).failed


def test_three_runs_decide_nothing() -> None:
    history = followed(noisy([50.0, 50.0, 90.0]), limit=0.05)
    assert (step(history).changes, state(history)) == ((), BudgetState.UNCLEAR)
    assert step(history).why_no_changes == "three runs of at least 10"
    assert not history.failed


def test_runs_of_one_commit_are_judged_together_unless_files_differed() -> None:
    slow = [report(12, 60.0), report(12, 61.0), report(12, 60.5)]
    history = followed([*noisy([50.0] * 12), *slow], limit=0.05)
    check = step(history).check
    assert check is not None
    assert (check.newest, check.runs) == (60.5, 12)
    edited = replace(slow[0], subject=replace(slow[0].subject, changed=True))
    check = step(followed([*noisy([50.0] * 12), *slow, edited], limit=0.05)).check
    assert check is not None
    assert check.newest in {60.0, 60.5, 61.0}


# Findings


def without(made: Diagnosis, rule: str) -> Diagnosis:
    """Return a report in which a rule found nothing."""
    return replace(
        made,
        results=tuple(
            replace(one, outcome=Healthy(summary="nothing")) if one.rule.name == rule else one
            for one in made.results
        ),
    )


RULE = "input-bound"


def test_a_finding_appears_and_goes() -> None:
    runs = [without(report(0), RULE), report(1), report(2), without(report(3), RULE)]
    (series,) = followed(runs).series
    one = next(finding for finding in series.findings if finding.rule == RULE)
    assert one.found == (False, True, True, False)
    assert (one.appeared, one.gone) == (1, 3)


def test_a_rule_that_was_not_checked_is_neither_absent_nor_gone() -> None:
    silent = replace(report(1), results=tuple(one for one in report(1).results if one.rule.name != RULE))
    (series,) = followed([report(0), silent]).series
    one = next(finding for finding in series.findings if finding.rule == RULE)
    assert (one.found, one.appeared, one.gone) == ((True, None), None, None)


def test_a_new_finding_fails_from_its_severity_on_until_it_is_accepted() -> None:
    runs = [without(report(day), RULE) for day in range(6)] + [report(6)]
    assert not followed(runs).failed
    history = followed(runs, severity=Severity.WARNING)
    assert [one.rule for one in history.series[0].findings if one.new] == [RULE]
    assert history.failed
    kept = KeptHistory().with_entry(
        accepted(RULE, commit(6), history.series, by="Ann", why="a slower disk for now")
    )
    assert not followed(runs, kept, severity=Severity.WARNING).failed
    assert not followed(runs[2:], severity=Severity.WARNING).failed  # too few runs before it


# What is kept


def test_a_baseline_has_the_figures_of_its_run() -> None:
    baseline = named("release-1", read([report(3, 40.0)])[0])
    assert (baseline.program, baseline.commit) == ("train.py", commit(3))
    assert dict(baseline.values) == {"step-ms": 40.0, "run-s": 8.0, "memory-peak-gb": 3.0}


@pytest.mark.parametrize(
    ("what", "at", "message"),
    [
        ("step-ms", "fff", "no run is of commit 'fff'"),
        ("step-ms", "0", "24 commits begin with '0': write more of it"),
        ("step", commit(3), "has 'step': did you mean 'step-ms'?"),
        ("retracing", commit(3), "has 'retracing': "),
    ],
)
def test_what_no_run_shows_cannot_be_accepted(what: str, at: str, message: str) -> None:
    history = followed(noisy(REGRESSED))
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        accepted(what, at, history.series, by="Ann", why="why")


def test_without_git_nothing_can_be_accepted() -> None:
    history = followed([report(0, commit="", committed="")])
    with pytest.raises(InputError, match="no run has a commit, at which a change could be"):
        accepted("step-ms", "fff", history.series, by="Ann", why="why")


def test_a_commit_of_two_programs_needs_the_program() -> None:
    history = followed([report(0), report(0, command=("python", "other.py"))])
    with pytest.raises(InputError, match=r"has runs of other\.py and train\.py: choose one"):
        accepted("step-ms", commit(0), history.series, by="Ann", why="why")


def test_a_program_without_a_run_is_an_error() -> None:
    runs = read([report(0)])
    assert of_program(runs, "train.py") == runs
    with pytest.raises(InputError, match=r"no run of 'trian\.py': did you mean 'train\.py'\?"):
        of_program(runs, "trian.py")
