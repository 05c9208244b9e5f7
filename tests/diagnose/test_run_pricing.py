"""Findings by the run: what they save of it, how severe they are, and their order."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.diagnose.run_charts import phases_of, run_chart, step_model, steps_of
from tfdoctor.diagnose import engine, savings
from tfdoctor.diagnose.rating import RunPricing
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.diagnosis.savings import RunTogether
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.pages import RuleDoc
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import (
    Bound,
    Concern,
    Effect,
    Finding,
    Healthy,
    Measure,
    Recurrence,
    Remedy,
    RunEffect,
    RunFailure,
    Severity,
    Stage,
)

STEP_MS, STEPS = 100.0, 1_000


def states(name: str, *effects: Effect | RunEffect, **more: Any) -> Rule:
    """A rule that finds this fault."""
    general = more.pop("general", False)
    found = Finding(
        summary="Something is slow",
        evidence=(Measure("what was seen", ms(1.0)),),
        remedies=(Remedy("Change it"),),
        effects=tuple(effect for effect in effects if isinstance(effect, Effect)),
        run_effects=tuple(effect for effect in effects if isinstance(effect, RunEffect)),
        **more,
    )
    doc = RuleDoc("A title", {})
    topic = Topic.EXECUTION
    rule = Rule(name, topic, "0.1.0", doc, (), lambda: found, lambda: found, lambda: found)
    return replace(rule, general=general)


def part(saved: float) -> Effect:
    """A change that saves so many ms of the device's work in each step."""
    return Effect(Stage.DEVICE, 0.0, "part", ms(saved))


def of(phase: Phase, time: float, subject: str = "line", **more: Any) -> RunEffect:
    return RunEffect(phase=phase, of=ms(time), subject=subject, **more)


def chart(*more: object, **times: float) -> Chart:
    """A run with 1,000 steps of 100 ms of the device, and other phases."""
    phases = {Phase[name.upper()]: time for name, time in times.items()}
    phases = {Phase.STEPS: STEP_MS * STEPS} | phases
    return run_chart(phases_of(phases), steps_of(STEPS, STEP_MS), step_model(device=STEP_MS), *more)


def priced(of_run: Chart, *rules: Rule, epochs: int | None = None) -> dict[str, Result]:
    pricing = RunPricing.of(of_run, epochs)
    assert pricing
    results = engine.examine(of_run, rules, pricing)
    return {result.rule.name: result for result in results}


def together(of_run: Chart, *rules: Rule, epochs: int | None = None) -> RunTogether | None:
    pricing = RunPricing.of(of_run, epochs)
    assert pricing
    results = engine.examine(of_run, rules, pricing)
    return pricing.together(results, savings.together(of_run, results))


# Savings


def test_a_saving_of_the_step_is_one_of_each_step_of_the_run() -> None:
    found = priced(chart(start=100_000.0), states("slow", part(20.0)))["slow"]
    assert found.run
    assert found.run.ms == pytest.approx(20.0 * STEPS)
    assert found.run.share == pytest.approx(0.1)
    assert found.run.rated_share == pytest.approx(0.2)  # the start does not come again in a longer run
    assert (found.run.recurs, found.run.times) == (Recurrence.PER_STEP, STEPS)
    assert found.run.each_ms == pytest.approx(20.0)
    assert found.run.how == "20.0 ms per step on average, in 1,000 steps of the recorded run."


def test_what_comes_once_is_rated_by_the_whole_run() -> None:
    found = priced(chart(imports=100_000.0), states("slow-start", of(Phase.IMPORTS, 50_000.0)))
    saving = found["slow-start"].run
    assert saving
    assert (saving.recurs, saving.times) == (Recurrence.ONCE, 1)
    assert saving.share == saving.rated_share == pytest.approx(0.25)
    assert found["slow-start"].severity is Severity.CRITICAL


def test_what_comes_with_each_epoch_is_told_by_epoch() -> None:
    effect = of(Phase.BOUNDARIES, 20_000.0, recurs=Recurrence.PER_EPOCH, times=10)
    saving = priced(chart(boundaries=25_000.0), states("epoch-boundary", effect))["epoch-boundary"].run
    assert saving
    assert saving.each_ms == pytest.approx(2_000.0)
    assert saving.times == 10
    assert saving.rated_share == pytest.approx(20_000 / 125_000)
    assert "per epoch on average, in ten epochs" in saving.how


@pytest.mark.parametrize(
    ("own", "severity"), [(None, Severity.WARNING), (Severity.NOTE, Severity.WARNING), (Severity.CRITICAL,) * 2]
)
def test_a_price_is_the_least_severity(own: Severity | None, severity: Severity) -> None:
    """A rule may state that a fault is worse than its time, and not that it is less."""
    effect = of(Phase.BOUNDARIES, 20_000.0, recurs=Recurrence.PER_EPOCH, times=10)
    rule = states("between", effect, severity=own)
    assert priced(chart(boundaries=25_000.0), rule)["between"].severity is severity
    found = priced(chart(), states("in-step", part(10.0), severity=own))["in-step"]
    assert found.severity is severity


def test_a_rule_states_how_severe_time_is_that_comes_once() -> None:
    """A longer run has no more of an import: its price in a short one says little."""
    imports = states("slow-start", of(Phase.IMPORTS, 50_000.0), severity=Severity.NOTE)
    found = priced(chart(imports=100_000.0), imports)["slow-start"]
    assert found.severity is Severity.NOTE


def test_a_finding_of_the_step_and_of_the_run_saves_both() -> None:
    both = states("both", part(10.0), of(Phase.BOUNDARIES, 20_000.0, recurs=Recurrence.PER_EPOCH))
    saving = priced(chart(boundaries=20_000.0), both)["both"].run
    assert saving
    assert saving.ms == pytest.approx(30_000.0)
    assert saving.recurs is Recurrence.PER_EPOCH  # most of it


def test_a_trifle_of_the_step_may_be_much_of_the_run() -> None:
    effect = of(Phase.BOUNDARIES, 20_000.0, recurs=Recurrence.PER_EPOCH)
    found = priced(chart(boundaries=20_000.0), states("both", part(0.1), effect))["both"]
    assert isinstance(found.outcome, Finding)
    assert found.saving is None
    assert found.run
    assert found.run.ms == pytest.approx(20_000.0)
    assert found.severity is Severity.WARNING


def test_a_ceiling_stays_one() -> None:
    effect = of(Phase.PREPARING, 50_000.0, bound=Bound.AT_MOST)
    saving = priced(chart(preparing=50_000.0), states("slow-preparation", effect))["slow-preparation"].run
    assert saving
    assert saving.bound is Bound.AT_MOST


def test_a_trifle_of_the_run_is_healthy_with_its_summary() -> None:
    found = priced(chart(imports=400.0), states("slow-start", of(Phase.IMPORTS, 400.0)))["slow-start"]
    assert isinstance(found.outcome, Healthy)
    assert found.outcome.summary.startswith("Something is slow; fixing it would save less than")
    assert (found.run, found.severity) == (None, None)


def test_little_of_the_run_may_be_much_of_what_recurs() -> None:
    effect = of(Phase.BOUNDARIES, 30.0, recurs=Recurrence.PER_EPOCH)
    phases = phases_of({Phase.IMPORTS: 9_900.0, Phase.STEPS: 70.0, Phase.BOUNDARIES: 30.0})
    found = priced(run_chart(phases), states("epoch-boundary", effect))["epoch-boundary"]
    assert found.severity is Severity.CRITICAL


def test_a_fault_that_states_its_severity_is_no_trifle() -> None:
    grave = states("out-of-memory", of(Phase.END, 1.0), severity=Severity.CRITICAL, concern=Concern.RUN)
    assert priced(chart(end=1.0), grave)["out-of-memory"].severity is Severity.CRITICAL


# Severity


def test_a_step_that_is_little_of_the_run_has_notes_only() -> None:
    """One predict for each example takes 95 % of the run."""
    found = priced(chart(prediction=2_000_000.0), states("slow", part(40.0)))["slow"]
    assert found.severity is Severity.NOTE


def test_a_start_that_dominates_a_short_run_changes_no_severity() -> None:
    found = priced(chart(start=500_000.0, imports=500_000.0), states("slow", part(40.0)), states("less", part(6.0)))
    assert found["slow"].severity is Severity.CRITICAL
    assert found["less"].severity is Severity.WARNING


@pytest.mark.parametrize("concern", [Concern.TYPICAL_STEP, Concern.LONG_STEPS])
def test_a_severity_without_a_saving_is_limited_by_the_share_of_the_steps(concern: Concern) -> None:
    grave = states("grave", severity=Severity.CRITICAL, concern=concern)
    assert priced(chart(), grave)["grave"].severity is Severity.CRITICAL
    assert priced(chart(evaluation=900_000.0), grave)["grave"].severity is Severity.WARNING
    assert priced(chart(evaluation=9_900_000.0), grave)["grave"].severity is Severity.NOTE


def test_tracing_may_be_what_makes_steps_long() -> None:
    grave = states("grave", severity=Severity.CRITICAL, concern=Concern.LONG_STEPS)
    assert priced(chart(tracing=900_000.0), grave)["grave"].severity is Severity.CRITICAL


def test_what_the_run_fails_by_comes_before_what_saves_time() -> None:
    fatal = {"severity": Severity.CRITICAL, "concern": Concern.RUN}
    found = priced(
        chart(),
        states("slow", part(60.0)),
        states("ahead", failure=RunFailure.AHEAD, **fatal),
        states("died", failure=RunFailure.HAPPENED, **fatal),
        states("grave", **fatal),
    )
    assert list(found) == ["died", "ahead", "slow", "grave"]


def test_a_general_finding_states_no_saving_of_the_run() -> None:
    found = priced(chart(evaluation=900_000.0), states("hot", part(40.0), general=True))["hot"]
    assert (found.run, found.severity) == (None, Severity.NOTE)
    assert priced(chart(), states("hot", part(40.0), general=True))["hot"].severity is (Severity.CRITICAL)


def test_a_finding_about_money_stays_as_it_is() -> None:
    cost = states("cost", concern=Concern.MONEY, severity=Severity.WARNING)
    assert priced(chart(evaluation=9_000_000.0), cost)["cost"].severity is Severity.WARNING


def test_a_run_without_steps_has_findings_with_their_severity() -> None:
    """Nothing was traced: no step model, and too few steps for a saving of the step."""
    phases = phases_of({Phase.PREPARING: 9_000.0, Phase.PREDICTION: 1_000.0})
    slow = states("slow-preparation", of(Phase.PREPARING, 8_000.0), concern=Concern.RUN)
    grave = states("out-of-memory", severity=Severity.CRITICAL, concern=Concern.RUN)
    found = priced(run_chart(phases), slow, grave)
    assert found["slow-preparation"].severity is Severity.CRITICAL
    assert found["slow-preparation"].run
    assert found["out-of-memory"].severity is Severity.CRITICAL


def test_a_window_alone_prices_nothing() -> None:
    phases = phases_of({Phase.STEPS: 1_000.0}, whole=False)
    assert RunPricing.of(run_chart(phases)) is None
    assert RunPricing.of(run_chart(None)) is None


# Order


def test_the_list_is_by_severity_and_then_by_time_of_the_run() -> None:
    of_run = chart(imports=60_000.0, boundaries=40_000.0)
    pricing = RunPricing.of(of_run)
    assert pricing
    rules = (
        states("step", part(25.0)),
        states("imports", of(Phase.IMPORTS, 50_000.0)),
        states("epochs", of(Phase.BOUNDARIES, 39_000.0, recurs=Recurrence.PER_EPOCH)),
    )
    order = [result.rule.name for result in pricing.priced(engine.examine(of_run, rules))]
    assert order == ["imports", "epochs", "step"]


# All together


def test_a_cheaper_step_and_a_removed_boundary_add_up() -> None:
    both = together(
        chart(boundaries=100_000.0),
        states("step", part(50.0)),
        states("epochs", of(Phase.BOUNDARIES, 80_000.0, recurs=Recurrence.PER_EPOCH)),
    )
    assert both
    assert both.ms == pytest.approx(130_000.0)
    assert both.share == pytest.approx(0.65)
    assert set(both.rules) == {"step", "epochs"}
    assert both.phases_after_ms["steps"] == pytest.approx(50_000.0)
    assert both.phases_after_ms["epoch boundaries"] == pytest.approx(20_000.0)


def test_two_changes_of_one_line_save_it_once() -> None:
    effect = of(Phase.PREPARING, 80_000.0, "prepare.py:33")
    both = together(chart(preparing=90_000.0), states("a", effect), states("b", effect))
    assert both
    assert both.ms == pytest.approx(80_000.0)


def test_nothing_to_change_saves_nothing() -> None:
    assert together(chart(), states("note", severity=Severity.NOTE)) is None


effects = st.lists(
    st.one_of(
        st.builds(part, st.floats(0.0, 99.0)),
        st.builds(
            of,
            st.sampled_from([Phase.PREPARING, Phase.BOUNDARIES]),
            st.floats(0.0, 50_000.0),
            st.sampled_from(["", "a", "b"]),
            scales=st.floats(0.0, 1.0),
            recurs=st.sampled_from(Recurrence),
        ),
    ),
    min_size=1,
    max_size=4,
)


@given(st.lists(effects, min_size=1, max_size=4))
def test_no_second_is_saved_twice(changes: list[list[Effect | RunEffect]]) -> None:
    of_run = chart(preparing=50_000.0, boundaries=50_000.0)
    rules = [states(f"rule-{n}", *own) for n, own in enumerate(changes)]
    found = [result.run for result in priced(of_run, *rules).values() if result.run]
    assert all(saving.share <= saving.rated_share <= 1.0 for saving in found)
    assert all(saving.each_ms <= saving.ms * (1 + 1e-9) for saving in found)
    whole = together(of_run, *rules)
    if whole:
        assert whole.ms <= sum(saving.ms for saving in found) * (1 + 1e-9)
        assert whole.ms <= 200_000.0
        assert sum(whole.phases_after_ms.values()) + whole.ms == pytest.approx(200_000.0)


# A run of more epochs


def test_a_longer_run_has_more_of_what_recurs() -> None:
    """Two epochs of 50 s after a start of 100 s: of 90 epochs the start is little."""
    of_run = chart(RunCalls((), epochs=2), start=100_000.0)
    found = priced(of_run, states("step", part(20.0)), states("start", of(Phase.START, 50_000.0)), epochs=90)
    step, start = found["step"].run, found["start"].run
    assert step
    assert start
    whole = 100_000 + 45 * 100_000
    assert step.extrapolated_share == pytest.approx(45 * 20_000 / whole)
    assert start.extrapolated_share == pytest.approx(50_000 / whole)
    assert start.rated_share == start.extrapolated_share  # a quarter of the recorded run, little of the real one
    assert found["start"].severity is Severity.NOTE
    assert step.rated_share == pytest.approx(0.2)
    both = together(of_run, states("step", part(20.0)), states("start", of(Phase.START, 50_000.0)), epochs=90)
    assert both
    assert both.extrapolated_share == pytest.approx((45 * 20_000 + 50_000) / whole)


def test_without_more_epochs_nothing_is_extrapolated() -> None:
    found = priced(chart(RunCalls((), epochs=2)), states("step", part(20.0)))["step"]
    assert found.run
    assert found.run.extrapolated_share is None
