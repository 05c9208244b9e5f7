"""Findings by the run: what they save of it, how severe they are, and their order."""

from tests.diagnose.kit import *

STEP_MS, STEPS = 100.0, 1_000


def of(phase: Phase, time: float, subject: str = "line", **more: Any) -> RunEffect:
    return RunEffect(phase=phase, of=ms(time), subject=subject, **more)


def at_boundaries(time: float, **more: Any) -> RunEffect:
    return of(Phase.BOUNDARIES, time, recurs=Recurrence.PER_EPOCH, **more)


def chart(*more: object, **times: float) -> Chart:
    """A run with 1,000 steps of 100 ms of the device, and other phases."""
    phases = {Phase[name.upper()]: time for name, time in times.items()}
    phases = {Phase.STEPS: STEP_MS * STEPS} | phases
    return run_chart(phases_of(phases), steps_of(STEPS, STEP_MS), chart_of(device=STEP_MS).fact(StepModel), *more)


def examined(of_run: Chart, *rules: Rule, epochs: int | None = None) -> tuple[RunPricing, tuple[Result, ...]]:
    pricing = sure(RunPricing.of(of_run, epochs))
    return pricing, tuple(engine.examine(of_run, rules, pricing))


def priced(of_run: Chart, *rules: Rule, epochs: int | None = None) -> dict[str, Result]:
    return {result.rule.name: result for result in examined(of_run, *rules, epochs=epochs)[1]}


def only(of_run: Chart, *effects: Effect | RunEffect, **more: Any) -> Result:
    return priced(of_run, states("only", *effects, **more))["only"]


def saved(of_run: Chart, *effects: Effect | RunEffect) -> RunSaving:
    return sure(only(of_run, *effects).run)


def together(of_run: Chart, *rules: Rule, epochs: int | None = None) -> RunTogether | None:
    pricing, results = examined(of_run, *rules, epochs=epochs)
    return pricing.together(results, savings.together(of_run, results))


# Savings


def test_a_saving_of_the_step_is_one_of_each_step_of_the_run() -> None:
    found = saved(chart(start=100_000.0), part(20.0))
    assert (found.ms, found.share, found.each_ms) == pytest.approx((20.0 * STEPS, 0.1, 20.0))
    assert found.rated_share == pytest.approx(0.2)  # the start does not come again in a longer run
    assert (found.recurs, found.times) == (Recurrence.PER_STEP, STEPS)
    assert found.how == "20.0 ms per step on average, in 1,000 steps of the recorded run."


def test_what_comes_once_is_rated_by_the_whole_run() -> None:
    run, imports = chart(imports=100_000.0), of(Phase.IMPORTS, 50_000.0)
    saving = saved(run, imports)
    assert (saving.recurs, saving.times) == (Recurrence.ONCE, 1)
    assert saving.share == saving.rated_share == pytest.approx(0.25)
    assert only(run, imports).severity is Severity.CRITICAL
    # A longer run has no more of an import: its price in a short one says little, and the rule may say so.
    assert only(run, imports, severity=Severity.NOTE).severity is Severity.NOTE


def test_what_comes_with_each_epoch_is_told_by_epoch() -> None:
    saving = saved(chart(boundaries=25_000.0), at_boundaries(20_000.0, times=10))
    assert (saving.each_ms, saving.rated_share) == pytest.approx((2_000.0, 20_000 / 125_000))
    assert saving.times == 10
    assert "per epoch on average, in ten epochs" in saving.how


@pytest.mark.parametrize(
    ("own", "severity"), [(None, Severity.WARNING), (Severity.NOTE, Severity.WARNING), (Severity.CRITICAL,) * 2]
)
def test_a_price_is_the_least_severity(own: Severity | None, severity: Severity) -> None:
    """A rule may state that a fault is worse than its time, and not that it is less."""
    between = only(chart(boundaries=25_000.0), at_boundaries(20_000.0, times=10), severity=own)
    assert between.severity is severity
    assert only(chart(), part(10.0), severity=own).severity is severity


def test_a_finding_of_the_step_and_of_the_run_saves_both() -> None:
    saving = saved(chart(boundaries=20_000.0), part(10.0), at_boundaries(20_000.0))
    assert saving.ms == pytest.approx(30_000.0)
    assert saving.recurs is Recurrence.PER_EPOCH  # most of it


def test_a_trifle_of_the_step_may_be_much_of_the_run() -> None:
    found = only(chart(boundaries=20_000.0), part(0.1), at_boundaries(20_000.0))
    assert isinstance(found.outcome, Finding)
    assert sure(found.run).ms == pytest.approx(20_000.0)
    assert (found.saving, found.severity) == (None, Severity.WARNING)


def test_a_trifle_of_the_run_is_healthy_with_its_summary() -> None:
    found = only(chart(imports=400.0), of(Phase.IMPORTS, 400.0))
    assert as_healthy(found.outcome).summary.startswith("Something is slow; fixing it would save less than")
    assert (found.run, found.severity) == (None, None)


def test_little_of_the_run_may_be_much_of_what_recurs() -> None:
    phases = phases_of({Phase.IMPORTS: 9_900.0, Phase.STEPS: 70.0, Phase.BOUNDARIES: 30.0})
    assert only(run_chart(phases), at_boundaries(30.0)).severity is Severity.CRITICAL


# Severity


@pytest.mark.parametrize(
    ("times", "rule", "severity"),
    [
        ({"prediction": 2_000_000.0}, {"effects": [part(40.0)]}, Severity.NOTE),  # 95 % of the run
        # A start that dominates a short run changes no severity.
        ({"start": 500_000.0, "imports": 500_000.0}, {"effects": [part(40.0)]}, Severity.CRITICAL),
        ({"start": 500_000.0, "imports": 500_000.0}, {"effects": [part(6.0)]}, Severity.WARNING),
        # Without a saving, it is limited by the share of the steps, or of tracing, which may make steps long.
        ({}, {"concern": Concern.TYPICAL_STEP}, Severity.CRITICAL),
        ({"evaluation": 900_000.0}, {"concern": Concern.TYPICAL_STEP}, Severity.WARNING),
        ({"evaluation": 9_900_000.0}, {"concern": Concern.TYPICAL_STEP}, Severity.NOTE),
        ({}, {"concern": Concern.LONG_STEPS}, Severity.CRITICAL),
        ({"evaluation": 900_000.0}, {"concern": Concern.LONG_STEPS}, Severity.WARNING),
        ({"evaluation": 9_900_000.0}, {"concern": Concern.LONG_STEPS}, Severity.NOTE),
        ({"tracing": 900_000.0}, {"concern": Concern.LONG_STEPS}, Severity.CRITICAL),
        # A finding about money stays as it is, and a fault of the run that takes no time is no trifle.
        ({"evaluation": 9_000_000.0}, {"concern": Concern.MONEY}, Severity.CRITICAL),
        ({"end": 1.0}, {"concern": Concern.RUN, "effects": [of(Phase.END, 1.0)]}, Severity.CRITICAL),
    ],
)
def test_a_finding_is_as_severe_as_its_part_of_the_run(
    times: dict[str, float], rule: dict[str, Any], severity: Severity
) -> None:
    effects = rule.get("effects", [])
    stated = {"severity": Severity.CRITICAL, "concern": rule["concern"]} if "concern" in rule else {}
    assert only(chart(**times), *effects, **stated).severity is severity


def test_what_the_run_fails_by_comes_before_what_saves_time() -> None:
    fatal: dict[str, Any] = {"severity": Severity.CRITICAL, "concern": Concern.RUN}
    found = priced(
        chart(),
        states("slow", part(60.0)),
        states("ahead", failure=RunFailure.AHEAD, **fatal),
        states("died", failure=RunFailure.HAPPENED, **fatal),
        states("grave", **fatal),
    )
    assert list(found) == ["died", "ahead", "slow", "grave"]


def test_a_general_finding_states_no_saving_of_the_run() -> None:
    found = only(chart(evaluation=900_000.0), part(40.0), general=True)
    assert (found.run, found.severity) == (None, Severity.NOTE)
    assert only(chart(), part(40.0), general=True).severity is Severity.CRITICAL


def test_a_run_without_steps_has_findings_with_their_severity() -> None:
    """Nothing was traced: no step model, and too few steps for a saving of the step."""
    phases = phases_of({Phase.PREPARING: 9_000.0, Phase.PREDICTION: 1_000.0})
    slow = states("slow-preparation", of(Phase.PREPARING, 8_000.0), concern=Concern.RUN)
    grave = states("out-of-memory", severity=Severity.CRITICAL, concern=Concern.RUN)
    found = priced(run_chart(phases), slow, grave)
    assert {result.severity for result in found.values()} == {Severity.CRITICAL}
    assert found["slow-preparation"].run


def test_a_window_alone_prices_nothing() -> None:
    phases = phases_of({Phase.STEPS: 1_000.0}, whole=False)
    assert (RunPricing.of(run_chart(phases)), RunPricing.of(run_chart(None))) == (None, None)


# Order


def test_the_list_is_by_severity_and_then_by_time_of_the_run() -> None:
    of_run = chart(imports=60_000.0, boundaries=40_000.0)
    imports, epochs = of(Phase.IMPORTS, 50_000.0), at_boundaries(39_000.0)
    rules = (states("step", part(25.0)), states("imports", imports), states("epochs", epochs))
    order = [result.rule.name for result in sure(RunPricing.of(of_run)).priced(engine.examine(of_run, rules))]
    assert order == ["imports", "epochs", "step"]


# All together


def test_a_cheaper_step_and_a_removed_boundary_add_up() -> None:
    rules = (states("step", part(50.0)), states("epochs", at_boundaries(80_000.0)))
    both = sure(together(chart(boundaries=100_000.0), *rules))
    assert (both.ms, both.share) == pytest.approx((130_000.0, 0.65))
    assert set(both.rules) == {"step", "epochs"}
    assert both.phases_after_ms["steps"] == pytest.approx(50_000.0)
    assert both.phases_after_ms["epoch boundaries"] == pytest.approx(20_000.0)


def test_two_changes_of_one_line_save_it_once() -> None:
    effect = of(Phase.PREPARING, 80_000.0, "prepare.py:33", bound=Bound.AT_MOST)
    both = sure(together(chart(preparing=90_000.0), states("a", effect), states("b", effect)))
    assert (both.ms, both.bound) == (near(80_000.0), Bound.AT_MOST)
    assert saved(chart(preparing=90_000.0), effect).bound is Bound.AT_MOST


def test_nothing_to_change_saves_nothing() -> None:
    assert together(chart(), states("note", severity=Severity.NOTE)) is None


own_effects = st.lists(
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


@given(st.lists(own_effects, min_size=1, max_size=4))
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
    rules = (states("step", part(20.0)), states("start", of(Phase.START, 50_000.0)))
    found, both = priced(of_run, *rules, epochs=90), sure(together(of_run, *rules, epochs=90))
    step, start = sure(found["step"].run), sure(found["start"].run)
    whole = 100_000 + 45 * 100_000
    assert step.extrapolated_share == pytest.approx(45 * 20_000 / whole)
    assert start.extrapolated_share == pytest.approx(50_000 / whole)
    assert start.rated_share == start.extrapolated_share  # a quarter of the recorded run, little of the real one
    assert found["start"].severity is Severity.NOTE
    assert step.rated_share == pytest.approx(0.2)
    assert both.extrapolated_share == pytest.approx((45 * 20_000 + 50_000) / whole)


def test_without_more_epochs_nothing_is_extrapolated() -> None:
    assert saved(chart(RunCalls((), epochs=2)), part(20.0)).extrapolated_share is None
