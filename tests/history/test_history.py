"""The history of runs: series, order, findings, and what was accepted."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cases import cases
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


def test_runs_are_in_the_order_of_their_commits_else_of_their_recording() -> None:
    (series,) = followed([report(2), report(1, recorded=moment(40)), report(0)]).series
    assert [run.commit for run in series.runs] == [commit(0), commit(1), commit(2)]
    (series,) = followed([report(2, commit="", committed=""), report(0, commit="", committed="")]).series
    assert [run.recorded for run in series.runs] == [moment(0), moment(2)]


@cases(
    ({"command": ("python", "other.py")}, [2, 1], ()),
    ({"command": ("python", "train.py", "--epochs", "3")}, [2, 1], ()),
    ({"device_name": "another GPU"}, [2, 1], ()),
    (
        {"framework": {"tensorflow": "2.21.0"}},
        [3],
        (
            f"with {commit(1)[:9]}, tensorflow changed from 2.20.0 to 2.21.0",
            f"with {commit(2)[:9]}, tensorflow changed from 2.21.0 to 2.20.0",
        ),
    ),
)
def test_another_program_its_arguments_or_another_machine_is_another_series(
    changes: dict[str, Any], runs: list[int], notes: tuple[str, ...]
) -> None:
    """Versions belong to the series, and are noted."""
    made = [
        report(day, **{"framework": {"tensorflow": "2.20.0"}, **(changes if day == 1 else {})}) for day in range(3)
    ]
    history = followed(made)
    assert [len(series.runs) for series in history.series] == runs
    assert history.series[0].notes == notes


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


SLOW = [report(12, 60.0), report(12, 61.0), report(12, 60.5)]
EDITED = replace(SLOW[0], subject=replace(SLOW[0].subject, changed=True))


@cases(
    # A regression that was mended, one that is new, and one that is older than the last runs:
    (noisy([50.0] * 10 + [60.0] * 7 + [50.0] * 7), {"limit": 0.1}, (10, 17), (BudgetState.UNCLEAR, 6)),
    (noisy(REGRESSED), {"limit": 0.1}, (12,), (BudgetState.EXCEEDED, 9)),
    (noisy(REGRESSED), {"limit": 0.1, "last": 8}, (12,), (BudgetState.UNCLEAR, 8)),
    (noisy([50.0, 50.0, 90.0]), {"limit": 0.05}, (), (BudgetState.UNCLEAR, 2)),  # three runs decide nothing
    # Runs of one commit are judged together unless files differed:
    ([*noisy([50.0] * 12), *SLOW], {"limit": 0.05}, (), (BudgetState.EXCEEDED, 12)),
    ([*noisy([50.0] * 12), *SLOW, EDITED], {"limit": 0.05}, (12,), (BudgetState.EXCEEDED, 12)),
)
def test_what_the_newest_run_is_compared_with(
    runs: list[Diagnosis], demand: dict[str, Any], changes: tuple[int, ...], found: tuple[BudgetState, int]
) -> None:
    history = followed(runs, **demand)
    shown = step(history)
    assert shown.check is not None
    assert tuple(one.at for one in shown.changes) == changes
    assert (shown.check.state, shown.check.runs) == found
    assert history.failed is found[0].failed
    if SLOW[1] in runs:
        assert shown.check.newest == (60.0 if EDITED in runs else 60.5)
    assert bool(shown.why_no_changes) is (len(runs) < 10)


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


def test_a_finding_appears_and_goes_and_is_neither_where_its_rule_was_not_checked() -> None:
    silent = replace(report(2), results=tuple(one for one in report(2).results if one.rule.name != RULE))
    for runs, told in (
        (
            [without(report(0), RULE), report(1), report(2), without(report(3), RULE)],
            ((False, True, True, False), 1, 3),
        ),
        ([report(0), silent], ((True, None), None, None)),
    ):
        (series,) = followed(runs).series
        one = next(finding for finding in series.findings if finding.rule == RULE)
        assert (one.found, one.appeared, one.gone) == told


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


TWO_PROGRAMS = [report(0), report(0, command=("python", "other.py"))]


@cases(
    (noisy(REGRESSED), "step-ms", "fff", "no run is of commit 'fff'"),
    (noisy(REGRESSED), "step-ms", "0", "24 commits begin with '0': write more of it"),
    (noisy(REGRESSED), "step", commit(3), r"has 'step': did you mean 'step-ms'\?"),
    (noisy(REGRESSED), "retracing", commit(3), "has 'retracing': "),
    # Without git, and of two programs:
    ([report(0, commit="", committed="")], "step-ms", "fff", "no run has a commit, at which a change could be"),
    (TWO_PROGRAMS, "step-ms", commit(0), r"has runs of other\.py and train\.py: choose one"),
)
def test_what_no_run_shows_cannot_be_accepted(runs: list[Diagnosis], what: str, at: str, message: str) -> None:
    history = followed(runs)
    with pytest.raises(InputError, match=message):
        accepted(what, at, history.series, by="Ann", why="why")


def test_a_program_without_a_run_is_an_error() -> None:
    runs = read([report(0)])
    assert of_program(runs, "train.py") == runs
    with pytest.raises(InputError, match=r"no run of 'trian\.py': did you mean 'train\.py'\?"):
        of_program(runs, "trian.py")
