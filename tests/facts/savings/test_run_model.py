"""What effects save of the run: never a ms twice, never more than a phase takes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.savings.run_model import RunModel
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.terms.kinds import DeviceKind, Phase
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, RunEffect, Stage

TIMES = {Phase.PREPARING: 20_000.0, Phase.STEPS: 60_000.0, Phase.BOUNDARIES: 10_000.0}
PARTS = {stage.value: 0.0 for stage in Stage} | {"device": 60.0, "host": 40.0, "unknown": 0.0}
HALF_STEP = Effect(Stage.DEVICE, scales=1 / 6)
"""Saves 50 of 100 ms."""


def steps(count: int = 600, window_share: float | None = 1.0, mean_ms: float = 100.0) -> RunSteps:
    return RunSteps(
        at=None,
        source="repeated-call",
        count=count,
        total_ms=count * mean_ms,
        mean_ms=mean_ms,
        median_ms=mean_ms,
        p10_ms=mean_ms,
        p90_ms=mean_ms,
        window_share=window_share,
    )


def model(of: RunSteps | None = None) -> RunModel:
    step = StepModel(device=DeviceKind.CPU, exposed=PARTS)
    return RunModel(RunPhases(total_ms=90_000.0, times=TIMES), of or steps(), step)


def effect(phase: Phase, of: float, subject: str = "", scales: float = 0.0) -> RunEffect:
    return RunEffect(phase=phase, of=ms(of), subject=subject, scales=scales)


def test_a_cheaper_step_saves_in_each_step_of_the_run() -> None:
    assert model().saving_ms([HALF_STEP], []) == pytest.approx(30_000)


def test_steps_unlike_the_traced_ones_save_nothing() -> None:
    assert model(steps(window_share=0.2)).saving_ms([HALF_STEP], []) == pytest.approx(6_000)


def test_steps_that_are_faster_without_the_profiler_save_their_share() -> None:
    """Of 60 s in 1,000 steps, where a traced one takes 100 ms."""
    assert model(steps(1000, mean_ms=60.0)).saving_ms([HALF_STEP], []) == pytest.approx(30_000)


@pytest.mark.parametrize(("account_ms", "saved"), [(40_000.0, 40_000.0), (20_000.0, 30_000.0)])
def test_the_account_of_the_same_work_is_the_least_that_steps_save(account_ms: float, saved: float) -> None:
    """Trap: a file that grows is written in each step, and the traced ones are among the first."""
    written = Effect(Stage.DEVICE, 0.0, "writing", ms(50.0))
    run = effect(Phase.STEPS, account_ms, "writing")
    assert model().saving_ms([written], [run]) == pytest.approx(saved)
    assert model().saving_ms([], [run]) == pytest.approx(account_ms)


def test_few_slow_steps_save_no_more_than_the_model_saves_of_each() -> None:
    assert model(steps(100, mean_ms=600.0)).saving_ms([HALF_STEP], []) == pytest.approx(5_000)


@pytest.mark.parametrize(
    ("bound", "wait_longer", "saved"),
    [(Bound.AT_MOST, True, 30_000), (Bound.AT_MOST, False, 5_000), (Bound.EXPECTED, True, 5_000)],
)
def test_steps_that_wait_longer_are_in_the_bound_of_less_waiting(
    bound: Bound, saved: float, *, wait_longer: bool
) -> None:
    """100 steps of 600 ms; a traced one took 100 ms, half of them a wait for input."""
    parts = PARTS | {"input": 50.0, "device": 50.0, "host": 0.0}
    step = StepModel(device=DeviceKind.GPU, exposed=parts)
    slow = replace(steps(100, mean_ms=600.0), wait_longer=wait_longer)
    run = RunModel(RunPhases(total_ms=90_000.0, times=TIMES), slow, step)
    effect = Effect(Stage.INPUT, scales=0.0, bound=bound)
    assert run.saving_ms([effect], []) == pytest.approx(saved)


def test_a_slower_step_costs_time() -> None:
    assert model().saving_ms([Effect(Stage.DEVICE, scales=2.0)], []) == pytest.approx(-36_000)


def test_a_run_without_traced_steps_saves_in_its_phases() -> None:
    run = RunModel(RunPhases(total_ms=90_000.0, times=TIMES), None, None)

    assert run.saving_ms([HALF_STEP], [effect(Phase.PREPARING, 8_000, "a.py:3")]) == 8_000


def test_effects_on_one_subject_are_about_the_same_time() -> None:
    same = [effect(Phase.PREPARING, 8_000, "a.py:3"), effect(Phase.PREPARING, 6_000, "a.py:3")]
    other = effect(Phase.PREPARING, 5_000, "a.py:9")

    assert model().saving_ms([], same) == pytest.approx(8_000)
    assert model().saving_ms([], [*same, other]) == pytest.approx(13_000)


def test_an_effect_on_a_phase_is_about_its_subjects_too() -> None:
    whole = effect(Phase.PREPARING, 20_000, scales=0.5)
    part = effect(Phase.PREPARING, 8_000, "a.py:3")

    assert model().saving_ms([], [whole, part]) == pytest.approx(10_000 + 4_000)


def test_a_cheaper_step_and_a_removed_boundary_are_not_counted_twice() -> None:
    boundary = effect(Phase.BOUNDARIES, 10_000)
    of_steps = effect(Phase.STEPS, 60_000, "growing", scales=0.5)

    assert model().saving_ms([HALF_STEP], [boundary]) == pytest.approx(40_000)
    assert model().saving_ms([HALF_STEP], [of_steps]) == pytest.approx(45_000)


def test_a_phase_that_the_run_does_not_have_saves_nothing() -> None:
    assert model().saving_ms([], [effect(Phase.SAVING, 5_000)]) == 0


RUN_EFFECTS = st.lists(
    st.builds(
        effect,
        st.sampled_from([*TIMES, Phase.SAVING]),
        st.floats(0, 100_000),
        st.sampled_from(["", "a.py:1", "a.py:2", "f"]),
        st.floats(0, 1),
    ),
    max_size=6,
)
EFFECTS = st.lists(st.builds(Effect, st.sampled_from([Stage.DEVICE, Stage.HOST]), st.floats(0, 1)), max_size=3)


@given(EFFECTS, RUN_EFFECTS, RUN_EFFECTS)
def test_more_effects_save_more_but_never_the_same_time_twice(
    of_step: list[Effect], some: list[RunEffect], others: list[RunEffect]
) -> None:
    run = model()
    together = run.saving_ms(of_step, [*some, *others])
    first, second = run.saving_ms(of_step, some), run.saving_ms([], others)

    assert -1e-6 <= first <= together + 1e-6
    assert together <= first + second + 1e-6
    after = run.after_ms(of_step, [*some, *others])
    assert all(0 <= after[phase] <= time + 1e-6 for phase, time in TIMES.items())
    assert together == pytest.approx(sum(TIMES.values()) - sum(after.values()))


@given(EFFECTS, RUN_EFFECTS, st.permutations(range(6)))
def test_the_order_does_not_matter(of_step: list[Effect], some: list[RunEffect], order: list[int]) -> None:
    shuffled = [some[at] for at in order if at < len(some)]

    assert model().saving_ms(of_step, shuffled) == pytest.approx(model().saving_ms(of_step, some))
