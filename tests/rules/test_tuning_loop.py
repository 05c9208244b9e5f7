"""tuning-loop: models one after another whose memory stays, or whose tracing takes much of the run."""

from tests.rules.kit import *
from tfdoctor.rules.run import tuning_loop

EXAMPLE_FIT = made_call(
    RunCall.FIT, Location("tune.py", 31), 12, 55e3 / 12, name="Sequential.fit", looped=True, models=12
)  # fmt: skip


EXAMPLE_RESIDENT = Trend(
    what=Grows.RESIDENT, first=0.9e9, last=2.0e9, slope=1.8e7, low=1.7e7, high=1.9e7, steady=True, points=60
)  # fmt: skip


EXAMPLE_STEP = TracedDefinition(
    name="one_step_on_iterator", at=EXAMPLE_FIT.at, tracings=12, ms=6e3, first_ms=500.0, made=12
)


EXAMPLE_PHASES = RunPhases(total_ms=70e3, times={Phase.STEPS: 50e3, Phase.TRACING: 6e3, Phase.IMPORTS: 14e3})


def example(  # noqa: PLR0913 - what the verdict depends on
    *others: MadeCall, fit: MadeCall | None = EXAMPLE_FIT, resident: Trend | None = EXAMPLE_RESIDENT,
    counts: tuple[Trend, ...] = (), step: TracedDefinition = EXAMPLE_STEP, phases: RunPhases = EXAMPLE_PHASES,
    limit: float | None = 32e9, kept: KeptResults | None = None, ran_out: bool = False,
) -> Verdict:  # fmt: skip
    """Judge 12 models that are fitted one after another."""
    filling = FillingMemory(trend=resident, limit=limit, ran_out=ran_out) if resident else None
    return tuning_loop.check(
        phases,
        RunCalls((*([fit] if fit else []), *others), fits=12),
        MemoryTrends((filling,)) if filling else None,
        RunGrowth((resident, *counts), 60.0) if resident else None,
        RunTraces((step,)),
        kept,
    )


def sick() -> Verdict:
    """Each of 12 models leaves 90 MB and 900 operations."""
    graph = replace(EXAMPLE_RESIDENT, what=Grows.GRAPH, first=900, last=10_800)
    return example(counts=(graph,))


def healthy() -> Verdict:
    """The session is cleared, and memory stays as it is after the first models."""
    return example(resident=replace(EXAMPLE_RESIDENT, last=0.91e9, steady=False))


FIT = MadeCall(
    call=RunCall.FIT, name="Sequential.fit", at=Location("tune.py", 31), count=8, ms=50e3, looped=True, models=8
)

RESIDENT = Trend(what=Grows.RESIDENT, first=0.9e9, last=1.9e9, slope=4e6, low=3e6, high=5e6, steady=True, points=60)

STEP = TracedDefinition(name="step", at=FIT.at, tracings=8, ms=4_500.0, first_ms=1_000.0, made=8)

PHASES = RunPhases(total_ms=70e3, times={Phase.STEPS: 60e3, Phase.IMPORTS: 10e3})


check = partial(example, fit=FIT, resident=RESIDENT, step=STEP, phases=PHASES)


def test_both_sides_of_each_limit() -> None:
    for models, megabytes, kind in (
        (8, 1000, Finding),
        (3, 1000, Finding),
        (2, 1000, Healthy),
        (8, 64, Finding),
        (8, 63, Healthy),
        (20, 159, Healthy),  # 8 MB of each training stay in the allocator
        (20, 161, Finding),
    ):
        fit = replace(FIT, count=models, models=models)
        assert isinstance(check(fit=fit, resident=replace(RESIDENT, last=0.9e9 + 1e6 * megabytes)), kind)


def test_memory_that_stays_is_found_with_the_line_of_fit() -> None:
    finding = as_finding(check())
    assert (finding.at, finding.remedies[0].action) == (FIT.at, tuning_loop.FORGET)
    assert "resident memory grew by about 125 MB with each, so about 200 more fit" in finding.summary
    assert (finding.severity, finding.concern) == (Severity.WARNING, Concern.RUN)
    assert not finding.run_effects
    assert not as_finding(check(step=replace(STEP, ms=30e3))).run_effects  # a cleared session saves no time


def test_the_severity_follows_how_many_more_models_fit() -> None:
    """14.4 GB are exactly 100 more."""
    limits = (14.4e9, 14.3e9, 126e9, 127e9, None)
    found = [as_finding(check(limit=limit)).severity for limit in limits]
    assert found == [Severity.WARNING, Severity.CRITICAL, Severity.WARNING, Severity.NOTE, Severity.NOTE]


def test_memory_that_only_warms_up_is_healthy() -> None:
    for resident in (replace(RESIDENT, steady=False), replace(RESIDENT, low=-1.0)):
        assert "eight models one after another" in as_healthy(check(resident=resident)).summary


def test_building_the_same_graphs_again_is_priced() -> None:
    again, less = (
        check(resident=None, step=replace(STEP, ms=ms + 1_000.0, alike_ms=ms, alike=7)) for ms in (7_001.0, 6_999.0)
    )
    (effect,) = as_finding(again).run_effects
    assert (effect.of.value, effect.times, effect.bound) == (7_001.0, 7, Bound.AT_MOST)
    assert as_finding(again).severity is None  # that of its saving
    assert "Build and compile models of the same" in first_action(again)
    assert isinstance(less, Healthy)


def test_the_line_in_the_loop_that_has_the_model_built_is_the_one_to_change() -> None:
    compiled = made_call(
        RunCall.COMPILE, Location("tune.py", 14), 8, 11.0, name="Sequential.compile", function="build"
    )
    called: dict[str, Any] = {"function": "build", "caller": Location("tune.py", 30)}
    line = RunLine(phase=Phase.BUILDING, at=Location("tune.py", 9), ms=700.0, samples=14, **called)
    made = partial(check, compiled, resident=None, step=replace(STEP, alike_ms=9e3))
    assert as_finding(made(phases=replace(PHASES, lines=(line,)))).at == line.caller
    assert as_finding(made()).at == compiled.at


def test_graphs_of_other_models_are_necessary() -> None:
    """And functions that are made once are none of the models."""
    for step in (replace(STEP, ms=30_000.0), replace(STEP, ms=30e3, alike_ms=30e3, made=1)):
        assert isinstance(check(resident=None, step=step), Healthy)


def test_models_that_are_not_told_apart_are_not_judged() -> None:
    assert kinds(check(fit=None), check(fit=replace(FIT, models=None))) == [NotApplicable, NotApplicable]


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


def test_the_statement_that_keeps_each_model_is_changed_first() -> None:
    for what in (KeptValue.HISTORY, KeptValue.MODEL):
        finding = as_finding(check(kept=KeptResults((replace(KEPT, what=what),))))
        assert (finding.at, finding.remedies[1].action) == (KEPT.at, tuning_loop.FORGET)
        assert "; tune.py:35 adds run" in finding.summary
        assert ("its History" in finding.remedies[0].action) is (what is KeptValue.HISTORY)


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


def test_several_or_uncertain_statements_are_no_place() -> None:
    for statements in ((KEPT, replace(KEPT, container="more")), (replace(KEPT, what=KeptValue.OTHER),)):
        finding = as_finding(check(kept=KeptResults(statements)))
        assert finding.at == FIT.at
        assert "adds" not in finding.summary


def test_a_search_that_ran_out_of_memory_comes_before_savings() -> None:
    found = [as_finding(check(ran_out=ran_out)).failure for ran_out in (True, False)]
    assert found == [RunFailure.AHEAD, RunFailure.NONE]
