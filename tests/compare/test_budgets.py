"""Budgets: what is measured, what an interval shows of a limit, and what is unknown."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
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
    "step-ms": ms, "input-wait": ratio, "examples-per-second": examples_rate, "matrix-unit": ratio,
    "roofline": ratio, "memory-gb": nbytes, "run-s": ms, "run-start-s": ms, "run-preparation-s": ms,
    "epoch-boundary-s": ms, "memory-peak-gb": nbytes,
}  # fmt: skip
ORDER = (BudgetState.EXCEEDED, BudgetState.UNCLEAR, BudgetState.MET)
CONDITIONS = Conditions(batch_size=32, host_bytes=3e9, device_bytes=5e9, matrix_unit=0.4, least_ms=13.0)
TIMES = {
    Phase.START: 1_100.0,
    Phase.IMPORTS: 5_000.0,
    Phase.PREPARING: 21_400.0,
    Phase.STEPS: 86_200.0,
    Phase.BOUNDARIES: 17_300.0,
}
ROWS = tuple(PhaseRow(phase=phase, ms=time) for phase, time in TIMES.items())
ACCOUNT = RunAccount(total_ms=131_000.0, rows=ROWS, epochs=10, peak_bytes=6e9)


def run(**changes: Any) -> Diagnosis:
    """Return a report; the changes are of its conditions."""
    return replace(diagnoses.full(), conditions=replace(CONDITIONS, **changes), run=ACCOUNT)


def check(diagnosis: Diagnosis, key: str, value: float) -> BudgetCheck:
    (result,) = checked(diagnosis, Budget((BudgetLimit(key, UNITS[key](value)),))).budgets
    return result


def with_steps(**changes: Any) -> Diagnosis:
    return replace(run(), steps=replace(run().steps, **changes))


def of_account(**changes: Any) -> Diagnosis:
    return replace(run(), run=replace(ACCOUNT, **changes))


def on(device: DeviceKind) -> Diagnosis:
    return replace(run(), subject=replace(run().subject, device=device))


def value(found: float | None) -> float:
    assert found is not None
    return found


def test_every_budget_has_a_figure() -> None:
    assert set(FIGURES) == set(BUDGET_KEYS) == set(UNITS)


UNTRACED = with_steps(untraced_ms=30.0, untraced_breakdown_ms={"input": 3, "device": 27})


@cases(
    (run(), "step-ms", 52.0),  # the figures are those of the report
    (UNTRACED, "step-ms", 30.0),  # without the profiler's cost
    (UNTRACED, "input-wait", 0.1),
    (with_steps(stalled=2, step_ms=58.0), "step-ms", 58.0),  # the mean is checked
    (run(), "examples-per-second", 32 / 0.052),
    (run(), "roofline", 0.25),  # 13 of 52 ms
    # Measured once:
    (on(DeviceKind.GPU), "memory-gb", 5e9),
    (on(DeviceKind.TPU), "memory-gb", 5e9),
    (on(DeviceKind.CPU), "memory-gb", 3e9),
    (run(), "matrix-unit", 0.4),
    (run(), "run-s", 131_000.0),
    (run(), "run-start-s", 6_100.0),
    (run(), "run-preparation-s", 21_400.0),
    (of_account(rows=ROWS[3:]), "run-preparation-s", 0.0),  # a phase that took no time
    (run(), "epoch-boundary-s", 1_730.0),
    (run(), "memory-peak-gb", 6e9),
)
def test_a_figure_is_measured(diagnosis: Diagnosis, key: str, measured: float) -> None:
    found = check(diagnosis, key, measured or 1.0)
    assert value(found.value) == pytest.approx(measured)
    assert not found.state.failed  # a budget at the measured value is never exceeded
    step = check(diagnosis, "step-ms", 60)
    if key == "step-ms":
        assert value(found.low) < measured < value(found.high)
    elif key in {"examples-per-second", "roofline"}:  # the interval is that of the step
        above_step = measured * value(step.value)
        assert (found.low, found.high) == pytest.approx(
            (above_step / value(step.high), above_step / value(step.low))
        )
    elif key != "input-wait":
        assert (found.low, found.high, found.state) == (None, None, BudgetState.MET)
        wrong = check(diagnosis, key, measured * (1.01 if key == "matrix-unit" else 0.99))
        assert wrong.state is (BudgetState.EXCEEDED if measured else BudgetState.MET)


def test_all_steps_are_checked_where_slow_ones_take_most_of_the_time() -> None:
    rows = tuple(
        StepRow(number=at, total_ms=90.0 if at % 5 == 4 else 10.0, parts_ms={}, steady=at % 5 != 4)
        for at in range(60)
    )
    slow = SlowStepsSummary(number=12, ms=1080.0, timed=60, timed_ms=1560.0)
    step = check(with_steps(rows=rows, median_ms=10.0, step_ms=10.0, slow=slow), "step-ms", 15)
    assert value(step.value) == pytest.approx(26.0, rel=0.05)
    assert step.state is BudgetState.EXCEEDED


# The distance to the hardware


@cases((0.15, BudgetState.MET), (0.4, BudgetState.UNCLEAR), (0.9, BudgetState.EXCEEDED))
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


FEW = with_steps(rows=run().steps.rows[:7])
NO_STEPS, REASON = diagnoses.no_steps(), "it was not recorded"
UNSEEN = {"input": "JAX reads its input outside of the trace"}


@cases(
    *((FEW, key, "an interval needs at least 8") for key in ("step-ms", "input-wait", "examples-per-second")),
    (NO_STEPS, "step-ms", NO_STEPS.steps.missing),
    (run(missing=UNSEEN), "input-wait", UNSEEN["input"]),  # no input wait of zero
    *(
        row
        for key, field in (
            ("examples-per-second", "batch_size"),
            ("memory-gb", "device_bytes"),
            ("matrix-unit", "matrix_unit"),
            ("roofline", "least_ms"),
        )
        for row in (
            (run(**{field: None, "missing": {field: REASON}}), key, REASON),
            (run(**{field: None}), key, "the recording does not contain it"),
        )
    ),
    (replace(run(), run=None), "run-s", "the run outside of the traced steps was not recorded"),
    (of_account(whole=False, missing="only a trace is known"), "run-start-s", "only a trace is known"),
    (of_account(finished=False), "run-s", "the end of the run"),
    (of_account(epochs=0), "epoch-boundary-s", "no epochs"),
    (of_account(peak_bytes=None), "memory-peak-gb", "the memory of the run"),
)
def test_a_figure_that_is_missing_is_unknown_because_of_its_reason(
    diagnosis: Diagnosis, key: str, why: str
) -> None:
    unknown = check(diagnosis, key, 0.5)
    assert (unknown.state, unknown.state.failed, unknown.value) == (BudgetState.UNKNOWN, True, None)
    assert why in unknown.why


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


@given(FIGURES_OF, AMOUNTS)
def test_limits_from_above_and_below_mirror_each_other(figure: list[float], limit: float) -> None:
    low, _, high = figure
    above = state(limit, low, high, at_least=False)
    assert above is state(-limit, -high, -low, at_least=True)
