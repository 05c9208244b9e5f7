"""Budgets: what is measured, what an interval shows of a limit, and what is unknown."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report import diagnoses
from tfdoctor.compare.budgets import FIGURES, checked, state
from tfdoctor.diagnosis import Conditions, Diagnosis
from tfdoctor.diagnosis.gates import BudgetCheck, BudgetState
from tfdoctor.diagnosis.step import StepRow, StepsSummary
from tfdoctor.diagnosis.work import PhaseRow, RunAccount
from tfdoctor.report.sections import budget_state, budget_told, budget_verdict
from tfdoctor.rulebook.config import Budget, BudgetLimit
from tfdoctor.rulebook.config.budget import BUDGET_KEYS
from tfdoctor.terms.kinds import DeviceKind, Phase
from tfdoctor.terms.run_time import SlowStepsSummary
from tfdoctor.terms.units import examples_rate, ms, nbytes, ratio

UNITS = {
    "step-ms": ms,
    "input-wait": ratio,
    "examples-per-second": examples_rate,
    "matrix-unit": ratio,
    "roofline": ratio,
    "memory-gb": nbytes,
    "run-s": ms,
    "run-start-s": ms,
    "run-preparation-s": ms,
    "epoch-boundary-s": ms,
    "memory-peak-gb": nbytes,
}
ORDER = (BudgetState.EXCEEDED, BudgetState.UNCLEAR, BudgetState.MET)

CONDITIONS = Conditions(batch_size=32, host_bytes=3e9, device_bytes=5e9, matrix_unit=0.4, least_ms=13.0)


ACCOUNT = RunAccount(
    total_ms=131_000.0,
    rows=(
        PhaseRow(phase=Phase.START, ms=1_100.0),
        PhaseRow(phase=Phase.IMPORTS, ms=5_000.0),
        PhaseRow(phase=Phase.PREPARING, ms=21_400.0),
        PhaseRow(phase=Phase.STEPS, ms=86_200.0),
        PhaseRow(phase=Phase.BOUNDARIES, ms=17_300.0),
    ),
    epochs=10,
    peak_bytes=6e9,
)


def run(**changes: Any) -> Diagnosis:
    return replace(diagnoses.full(), conditions=replace(CONDITIONS, **changes), run=ACCOUNT)


def check(diagnosis: Diagnosis, key: str, value: float) -> BudgetCheck:
    (result,) = checked(diagnosis, Budget((BudgetLimit(key, UNITS[key](value)),))).budgets
    return result


def with_steps(**changes: Any) -> Diagnosis:
    return replace(run(), steps=replace(run().steps, **changes))


def value(found: float | None) -> float:
    assert found is not None
    return found


def test_every_budget_has_a_figure() -> None:
    assert set(FIGURES) == set(BUDGET_KEYS) == set(UNITS)


# The figures are those of the report


def test_the_step_is_that_of_the_report() -> None:
    step = check(run(), "step-ms", 60)
    assert value(step.value) == 52.0
    assert value(step.low) < 52.0 < value(step.high)


def test_the_step_without_the_profilers_cost_is_the_one_that_is_checked() -> None:
    diagnosis = with_steps(untraced_ms=30.0, untraced_breakdown_ms={"input": 3, "device": 27})
    assert value(check(diagnosis, "step-ms", 60).value) == 30.0
    assert value(check(diagnosis, "input-wait", 0.05).value) == 0.1
    stalled = with_steps(stalled=2, step_ms=58.0)  # the mean is checked
    assert value(check(stalled, "step-ms", 60).value) == 58.0


def test_all_steps_are_checked_where_slow_ones_take_most_of_the_time() -> None:
    rows = tuple(
        StepRow(number=at, total_ms=90.0 if at % 5 == 4 else 10.0, parts_ms={}, steady=at % 5 != 4)
        for at in range(60)
    )
    slow = SlowStepsSummary(number=12, ms=1080.0, timed=60, timed_ms=1560.0)
    step = check(with_steps(rows=rows, median_ms=10.0, step_ms=10.0, slow=slow), "step-ms", 15)
    assert value(step.value) == pytest.approx(26.0, rel=0.05)
    assert step.state is BudgetState.EXCEEDED


def test_examples_are_those_of_a_batch_over_the_step() -> None:
    rate, step = check(run(), "examples-per-second", 1), check(run(), "step-ms", 1)
    assert value(rate.value) == pytest.approx(32 / 0.052)
    assert value(rate.low) == pytest.approx(32_000 / value(step.high))
    assert value(rate.high) == pytest.approx(32_000 / value(step.low))


@pytest.mark.parametrize(("device", "used"), [(DeviceKind.GPU, 5e9), (DeviceKind.TPU, 5e9), (DeviceKind.CPU, 3e9)])
def test_memory_is_that_of_the_device(device: DeviceKind, used: float) -> None:
    diagnosis = replace(run(), subject=replace(run().subject, device=device))
    memory = check(diagnosis, "memory-gb", 8e9)
    assert (value(memory.value), memory.low, memory.state) == (used, None, BudgetState.MET)


def test_the_matrix_unit_has_one_figure() -> None:
    unit = check(run(), "matrix-unit", 0.4)
    assert (value(unit.value), unit.low, unit.state) == (0.4, None, BudgetState.MET)
    assert check(run(), "matrix-unit", 0.41).state is BudgetState.EXCEEDED


# The whole run


@pytest.mark.parametrize(
    ("key", "measured"),
    [
        ("run-s", 131_000.0),
        ("run-start-s", 6_100.0),
        ("run-preparation-s", 21_400.0),
        ("epoch-boundary-s", 1_730.0),
        ("memory-peak-gb", 6e9),
    ],
)
def test_a_figure_of_the_run_is_measured_once(key: str, measured: float) -> None:
    met, exceeded = check(run(), key, measured * 1.01), check(run(), key, measured * 0.99)
    assert value(met.value) == pytest.approx(measured)
    assert (met.low, met.high) == (None, None)
    assert (met.state, exceeded.state) == (BudgetState.MET, BudgetState.EXCEEDED)


@pytest.mark.parametrize(
    ("key", "account", "why"),
    [
        ("run-s", None, "the run outside of the traced steps was not recorded"),
        ("run-start-s", replace(ACCOUNT, whole=False, missing="only a trace is known"), "only a"),
        ("run-s", replace(ACCOUNT, finished=False), "the end of the run"),
        ("epoch-boundary-s", replace(ACCOUNT, epochs=0), "no epochs"),
        ("memory-peak-gb", replace(ACCOUNT, peak_bytes=None), "the memory of the run"),
    ],
)
def test_a_figure_of_a_run_that_is_not_known(key: str, account: RunAccount | None, why: str) -> None:
    result = check(replace(run(), run=account), key, 10.0)
    assert (result.state, result.value) == (BudgetState.UNKNOWN, None)
    assert why in result.why


def test_a_phase_that_took_no_time_meets_its_budget() -> None:
    rows = tuple(row for row in ACCOUNT.rows if row.phase is not Phase.PREPARING)
    unprepared = replace(run(), run=replace(ACCOUNT, rows=rows))
    assert check(unprepared, "run-preparation-s", 1.0).state is BudgetState.MET


# The distance to the hardware


def test_the_least_time_of_the_operations_is_compared_with_the_step() -> None:
    """13 of 52 ms are a quarter; the interval is that of the step."""
    found, step = check(run(), "roofline", 0.2), check(run(), "step-ms", 60)
    assert value(found.value) == 0.25
    assert value(found.low) == pytest.approx(13.0 / value(step.high))
    assert value(found.high) == pytest.approx(13.0 / value(step.low))


@pytest.mark.parametrize(
    ("limit", "state"), [(0.15, BudgetState.MET), (0.4, BudgetState.UNCLEAR), (0.9, BudgetState.EXCEEDED)]
)
def test_operations_of_unknown_least_time_need_between_none_and_all_of_theirs(
    limit: float, state: BudgetState
) -> None:
    """13 ms are needed, and at most 26 ms more: 25 to 75 % of the step, wider by the step's interval."""
    why = {"open_ms": "peak FLOP/s unknown"}
    found = check(run(open_ms=26.0, missing=why), "roofline", limit)
    assert (found.state, found.value) == (state, None)
    assert value(found.low) < 0.25
    assert 0.75 < value(found.high) < 0.9
    assert found.why == ("the least time is unknown of operations that take 50 % of the step (peak FLOP/s unknown)")


def test_a_share_that_the_interval_decides_is_not_called_undecided_for_its_unknown_part() -> None:
    undecided = check(run(open_ms=26.0), "roofline", 0.4)
    told = budget_told(undecided)
    assert "95 %" not in told  # nothing was drawn from a sample
    assert " (between these for certain), at least" in told
    assert told.endswith(
        "at least 40 %; the interval contains the limit (exit code 4), because the least time is unknown of "
        "operations that take 50 % of the step"
    )


def test_a_small_rest_of_unknown_operations_is_not_worth_a_word() -> None:
    found = check(run(open_ms=0.2), "roofline", 0.2)
    assert (found.why, value(found.value)) == ("", 0.25)
    assert value(found.high) > 13.2 / 52


# What may have made the run slow does not fail it


def test_steps_outside_of_the_traced_window_widen_the_interval() -> None:
    """The profiler alone can make a traced step longer than its budget."""
    assert check(run(), "step-ms", 40).state is BudgetState.EXCEEDED
    assert check(run(untraced_ms=39.0), "step-ms", 40).state is BudgetState.UNCLEAR


def test_load_of_other_programs_widens_the_interval() -> None:
    busy = run(cores_usable=2.0, cores_run=1.0, cores_other=1.0)
    assert check(busy, "step-ms", 40).state is BudgetState.UNCLEAR
    idle = run(cores_usable=8.0, cores_run=1.0, cores_other=1.0)
    assert check(idle, "step-ms", 40).state is BudgetState.EXCEEDED
    shares = [check(one, "input-wait", 0.5) for one in (busy, idle)]
    assert value(shares[0].low) < value(shares[1].low)
    assert value(shares[0].high) > value(shares[1].high)


def test_a_step_of_twice_its_budget_exceeds_it_though_some_steps_were_slow() -> None:
    """A burst of slow steps, while other programs took two fifths of the cores: the interval was 44 to 172 ms."""
    times = 113.0 * np.random.default_rng(0).normal(1.0, 0.01, 40)
    times[7:14] *= 2.2
    base = run(cores_usable=2.0, cores_run=1.2, cores_other=0.8)
    rows = tuple(StepRow(number=n, total_ms=ms, parts_ms={}, steady=True) for n, ms in enumerate(times))
    steps = StepsSummary(source=base.steps.source, rows=rows, count=40, median_ms=113.0, step_ms=113.0)
    found = check(replace(base, steps=steps), "step-ms", 50)
    assert (found.state, found.state.failed) == (BudgetState.EXCEEDED, True)
    assert 60 < value(found.low) < 113


def test_an_undecided_budget_is_never_shown_as_a_pass() -> None:
    found = check(run(untraced_ms=39.0), "step-ms", 40)
    assert budget_verdict([found]) == "One budget is undecided: step-ms."
    assert (budget_state(found), found.state) == ("undecided", BudgetState.UNCLEAR)
    assert "pass" not in budget_told(found)
    assert not found.state.failed


# What is not measured fails, and says why


def test_few_steps_are_unknown() -> None:
    few = with_steps(rows=run().steps.rows[:7])
    for key in ("step-ms", "input-wait", "examples-per-second"):
        unknown = check(few, key, 1e6 if key == "step-ms" else 0.5)
        assert (unknown.state, unknown.state.failed) == (BudgetState.UNKNOWN, True)
        assert "an interval needs at least 8" in unknown.why


def test_no_steps_are_unknown_for_the_reason_of_the_report() -> None:
    none = diagnoses.no_steps()
    assert check(none, "step-ms", 20).why == none.steps.missing


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("examples-per-second", "batch_size"),
        ("memory-gb", "device_bytes"),
        ("matrix-unit", "matrix_unit"),
        ("roofline", "least_ms"),
    ],
)
def test_a_missing_figure_is_unknown_because_of_its_reason(key: str, field: str) -> None:
    unknown = check(run(**{field: None, "missing": {field: "it was not recorded"}}), key, 1.0)
    assert (unknown.state, unknown.value) == (BudgetState.UNKNOWN, None)
    assert unknown.why == "it was not recorded"
    assert check(run(**{field: None}), key, 1.0).why


def test_an_input_that_the_trace_does_not_show_is_no_input_wait_of_zero() -> None:
    unseen = run(missing={"input": "JAX reads its input outside of the trace"})
    assert check(unseen, "input-wait", 0.5).state is BudgetState.UNKNOWN


# Which budgets apply


COMMON, GPU = BudgetLimit("step-ms", ms(20)), BudgetLimit("step-ms", ms(10), DeviceKind.GPU)


def test_the_table_of_a_device_goes_before_the_common_one() -> None:
    budget = Budget((GPU, COMMON, BudgetLimit("memory-gb", nbytes(1), DeviceKind.CPU)))
    assert budget.of(DeviceKind.GPU) == (GPU,)
    assert [limit.limit for limit in budget.of(DeviceKind.CPU)] == [ms(20), nbytes(1)]
    assert budget.of(DeviceKind.TPU) == (COMMON,)


def test_of_an_unknown_device_no_budget_passes_unseen() -> None:
    diagnosis = replace(run(), subject=replace(run().subject, device=None))
    (result,) = checked(diagnosis, Budget((COMMON, GPU))).budgets
    assert result.state is BudgetState.UNKNOWN
    assert result.why.startswith("the device of the run is unknown")


# The algebra of limits


AMOUNTS = st.floats(1e-3, 1e6)
FIGURES_OF = st.lists(AMOUNTS, min_size=3, max_size=3).map(sorted)
"""A figure between the ends of its interval."""


@given(FIGURES_OF, st.lists(AMOUNTS, min_size=2, max_size=2).map(sorted), st.booleans())
def test_a_looser_limit_never_judges_worse(figure: list[float], limits: list[float], at_least: bool) -> None:  # noqa: FBT001 - a case
    low, _, high = figure
    tight, loose = reversed(limits) if at_least else limits
    states = [state(limit, low, high, at_least=at_least) for limit in (tight, loose)]
    assert ORDER.index(states[0]) <= ORDER.index(states[1])


@given(FIGURES_OF, st.booleans())
def test_a_budget_at_the_measured_value_is_never_exceeded(figure: list[float], at_least: bool) -> None:  # noqa: FBT001 - a case
    low, middle, high = figure
    assert state(middle, low, high, at_least=at_least) is not BudgetState.EXCEEDED


@pytest.mark.parametrize("key", BUDGET_KEYS)
def test_so_it_is_for_each_figure(key: str) -> None:
    measured = value(check(run(), key, 1.0).value)
    assert not check(run(), key, measured).state.failed


@given(FIGURES_OF, AMOUNTS)
def test_limits_from_above_and_below_mirror_each_other(figure: list[float], limit: float) -> None:
    low, _, high = figure
    above = state(limit, low, high, at_least=False)
    assert above is state(-limit, -high, -low, at_least=True)
