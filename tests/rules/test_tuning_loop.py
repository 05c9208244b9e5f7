"""tuning-loop: models one after another whose memory stays, or whose tracing takes much of the run."""

import pytest

from tests.rules.cases.tuning_loop import example
from tests.rules.kit import *
from tfdoctor.facts.growth.memory_trends import KeptResult, KeptResults
from tfdoctor.facts.phases.run_calls import TracedDefinition
from tfdoctor.facts.phases.run_growth import Grows, Trend
from tfdoctor.rules import tuning_loop
from tfdoctor.terms.kinds import KeptValue
from tfdoctor.terms.verdict import RunFailure

FIT = MadeCall(
    call=RunCall.FIT, name="Sequential.fit", at=Location("tune.py", 31), count=8, ms=50e3, looped=True, models=8
)

RESIDENT = Trend(what=Grows.RESIDENT, first=0.9e9, last=1.9e9, slope=4e6, low=3e6, high=5e6, steady=True, points=60)

STEP = TracedDefinition(name="step", at=FIT.at, tracings=8, ms=4_500.0, first_ms=1_000.0, made=8)

PHASES = RunPhases(total_ms=70e3, times={Phase.STEPS: 60e3, Phase.IMPORTS: 10e3})


check = partial(example, fit=FIT, resident=RESIDENT, step=STEP, phases=PHASES)


@pytest.mark.parametrize(
    ("models", "grown", "kind"),
    [
        (8, 1e9, Finding),
        (3, 1e9, Finding),
        (2, 1e9, Healthy),
        (8, 64e6, Finding),
        (8, 63e6, Healthy),
        (20, 159e6, Healthy),  # 8 MB of each training stay in the allocator
        (20, 161e6, Finding),
    ],
)
def test_both_sides_of_each_limit(models: int, grown: float, kind: type) -> None:
    fit = replace(FIT, count=models, models=models)
    assert isinstance(check(fit=fit, resident=replace(RESIDENT, last=0.9e9 + grown)), kind)


def test_memory_that_stays_is_found_with_the_line_of_fit() -> None:
    finding = as_finding(check())
    assert (finding.at, finding.remedies[0].action) == (FIT.at, tuning_loop.FORGET)
    assert "resident memory grew by about 125 MB with each, so about 200 more fit" in finding.summary
    assert (finding.severity, finding.concern) == (Severity.WARNING, Concern.RUN)
    assert not finding.run_effects
    assert not as_finding(check(step=replace(STEP, ms=30e3))).run_effects  # a cleared session saves no time


@pytest.mark.parametrize(
    ("limit", "severity"),
    [
        (14.4e9, Severity.WARNING),  # exactly 100 more
        (14.3e9, Severity.CRITICAL),
        (126e9, Severity.WARNING),
        (127e9, Severity.NOTE),
        (None, Severity.NOTE),
    ],
)
def test_the_severity_follows_how_many_more_models_fit(limit: float | None, severity: Severity) -> None:
    assert as_finding(check(limit=limit)).severity is severity


@pytest.mark.parametrize("changes", [{"steady": False}, {"low": -1.0}])
def test_memory_that_only_warms_up_is_healthy(changes: dict[str, Any]) -> None:
    healthy = as_healthy(check(resident=replace(RESIDENT, **changes)))
    assert "eight models one after another" in healthy.summary


@pytest.mark.parametrize(("ms", "kind"), [(7_001.0, Finding), (6_999.0, Healthy)])
def test_building_the_same_graphs_again_is_priced(ms: float, kind: type) -> None:
    verdict = check(resident=None, step=replace(STEP, ms=ms + 1_000.0, alike_ms=ms, alike=7))
    assert isinstance(verdict, kind)
    if isinstance(verdict, Finding):
        (effect,) = verdict.run_effects
        assert (effect.of.value, effect.times, effect.bound) == (7_001.0, 7, Bound.AT_MOST)
        assert verdict.severity is None  # that of its saving
        assert "Build and compile models of the same" in verdict.remedies[0].action


def test_the_line_in_the_loop_that_has_the_model_built_is_the_one_to_change() -> None:
    compiled = MadeCall(
        call=RunCall.COMPILE, name="Sequential.compile", at=Location("tune.py", 14), count=8, ms=90.0,
        function="build",
    )  # fmt: skip
    line = RunLine(
        phase=Phase.BUILDING, at=Location("tune.py", 9), ms=700.0, samples=14, function="build",
        caller=Location("tune.py", 30),
    )  # fmt: skip
    again, phases = replace(STEP, alike_ms=9e3), replace(PHASES, lines=(line,))
    made = partial(check, compiled, resident=None, step=again)
    assert as_finding(made(phases=phases)).at == line.caller
    assert as_finding(made()).at == compiled.at


def test_graphs_of_other_models_are_necessary() -> None:
    assert isinstance(check(resident=None, step=replace(STEP, ms=30_000.0)), Healthy)


def test_functions_that_are_made_once_are_none_of_the_models() -> None:
    other = replace(STEP, ms=30e3, alike_ms=30e3, made=1)
    assert isinstance(check(resident=None, step=other), Healthy)


@pytest.mark.parametrize("fit", [None, replace(FIT, models=None)])
def test_models_that_are_not_told_apart_are_not_judged(fit: MadeCall | None) -> None:
    assert isinstance(check(fit=fit), NotApplicable)


def test_a_window_is_not_judged() -> None:
    part = replace(PHASES, whole=False, missing="only its window was traced")
    assert applied(tuning_loop, part, RunCalls(())) == NotApplicable(reason="only its window was traced")


def test_growth_although_the_session_is_cleared_is_a_note() -> None:
    calls = "keras.src.backend.common.global_state.clear_session"
    line = RunLine(phase=Phase.UNNAMED, at=Location("tune.py", 28), ms=90.0, samples=2, calls=calls)
    finding = as_finding(check(phases=replace(PHASES, lines=(line,)), limit=3e9))
    assert finding.severity is Severity.NOTE
    assert "process of its own" in finding.remedies[0].action


KEPT = KeptResult(Location("tune.py", 35), "runs", "run", KeptValue.HISTORY, fits=True, each=True)


@pytest.mark.parametrize("what", [KeptValue.HISTORY, KeptValue.MODEL])
def test_the_statement_that_keeps_each_model_is_changed_first(what: KeptValue) -> None:
    finding = as_finding(check(kept=KeptResults((replace(KEPT, what=what),))))
    assert finding.at == KEPT.at
    assert "; tune.py:35 adds run" in finding.summary
    assert ("its History" in finding.remedies[0].action) is (what is KeptValue.HISTORY)
    assert finding.remedies[1].action == tuning_loop.FORGET


def test_the_change_that_saves_time_stays_before_it() -> None:
    again = replace(STEP, ms=30e3, alike_ms=20e3)
    finding = as_finding(check(step=again, kept=KeptResults((KEPT,))))
    assert [remedy.at for remedy in finding.remedies[:2]] == [FIT.at, KEPT.at]
    assert "Build and compile models of the same" in finding.remedies[0].action
    assert finding.run_effects


def test_where_memory_does_not_grow_nothing_is_said_of_what_is_kept() -> None:
    again = replace(STEP, ms=30e3, alike_ms=20e3)
    kept = KeptResults((KEPT,))
    assert check(resident=None, step=again, kept=kept) == check(resident=None, step=again)
    flat = replace(RESIDENT, steady=False)
    assert check(resident=flat, kept=kept) == check(resident=flat)


@pytest.mark.parametrize(
    "statements", [(KEPT, replace(KEPT, container="more")), (replace(KEPT, what=KeptValue.OTHER),)]
)
def test_several_or_uncertain_statements_are_no_place(statements: tuple[KeptResult, ...]) -> None:
    finding = as_finding(check(kept=KeptResults(statements)))
    assert finding.at == FIT.at
    assert "adds" not in finding.summary


@pytest.mark.parametrize(("ran_out", "failure"), [(True, RunFailure.AHEAD), (False, RunFailure.NONE)])
def test_a_search_that_ran_out_of_memory_comes_before_savings(
    ran_out: bool,  # noqa: FBT001
    failure: RunFailure,
) -> None:
    assert as_finding(check(ran_out=ran_out)).failure is failure
