"""Budgets: what is measured, what an interval shows of a limit, and what is unknown."""

from tests.compare.kit import *
from tfdoctor.compare.budgets import FIGURES, checked, state
from tfdoctor.diagnosis import Conditions
from tfdoctor.report.sections import budget_state, budget_told, budget_verdict
from tfdoctor.rulebook.config import Budget, BudgetLimit
from tfdoctor.rulebook.config.budget import BUDGET_KEYS
from tfdoctor.terms.run_time import SlowStepsSummary
from tfdoctor.terms.units import examples_rate, ms, nbytes, ratio

UNITS = {
    "step-ms": ms, "input-wait": ratio, "examples-per-second": examples_rate, "matrix-unit": ratio,
    "roofline": ratio, "memory-gb": nbytes, "run-s": ms, "run-start-s": ms, "run-preparation-s": ms,
    "epoch-boundary-s": ms, "memory-peak-gb": nbytes,
}  # fmt: skip
ORDER = (BudgetState.EXCEEDED, BudgetState.UNCLEAR, BudgetState.MET)
CONDITIONS = Conditions(batch_size=32, host_bytes=3e9, device_bytes=5e9, matrix_unit=0.4, least_ms=13.0)
TIMES = {"START": 1_100.0, "IMPORTS": 5_000.0, "PREPARING": 21_400.0, "STEPS": 86_200.0, "BOUNDARIES": 17_300.0}
ROWS = tuple(PhaseRow(phase=Phase[phase], ms=time) for phase, time in TIMES.items())
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


def on(device: DeviceKind | None) -> Diagnosis:
    return replace(run(), subject=replace(run().subject, device=device))


def test_every_budget_has_a_figure() -> None:
    assert set(FIGURES) == set(BUDGET_KEYS) == set(UNITS)


TOLD = Told()
UNTRACED = with_steps(untraced_ms=30.0, untraced_breakdown_ms={"input": 3, "device": 27})


def told(diagnosis: Diagnosis, key: str, *limits: float) -> dict[str, object]:
    """Return what is said of a figure, and what fails a job."""
    found = {limit: check(diagnosis, key, limit) for limit in limits}
    return {
        f"{key}, limit {limit}": {
            "": f"{one.state}{' (fails)' * one.state.failed}",
            "figure": (one.low, one.value, one.high),
            "why": one.why,
            "told": budget_told(one),
            "shown": budget_state(one),
        }
        for limit, one in found.items()
    }


# A budget at the measured value is never exceeded; a little below, one that is measured once is.
TOLD[told] = {
    "the step of the report": (run(), "step-ms", 52.0),
    "a step without the profiler's cost": (UNTRACED, "step-ms", 30.0),
    "input waits of it": (UNTRACED, "input-wait", 0.1),
    "the mean of steps that stall": (with_steps(stalled=2, step_ms=58.0), "step-ms", 58.0),
    "examples, by the interval of the step": (run(), "examples-per-second", 32 / 0.052),
    "the least time: 13 of 52 ms": (run(), "roofline", 0.25),
    "memory of a GPU": (on(DeviceKind.GPU), "memory-gb", 5e9, 4.95e9),
    "memory of a TPU": (on(DeviceKind.TPU), "memory-gb", 5e9, 4.95e9),
    "memory of the host": (on(DeviceKind.CPU), "memory-gb", 3e9, 2.97e9),
    "the matrix unit": (run(), "matrix-unit", 0.4, 0.404),
    "the whole run": (run(), "run-s", 131_000.0, 129_690.0),
    "the start of the run": (run(), "run-start-s", 6_100.0, 6_039.0),
    "the preparation of data": (run(), "run-preparation-s", 21_400.0, 21_186.0),
    "a phase that took no time": (of_account(rows=ROWS[3:]), "run-preparation-s", 1.0, 0.0),
    "between epochs": (run(), "epoch-boundary-s", 1_730.0, 1_712.7),
    "the largest memory": (run(), "memory-peak-gb", 6e9, 5.94e9),
    # 13 ms are needed, and at most 26 ms more: 25 to 75 % of the step, wider by the step's interval.
    "operations of unknown least time": (
        *(run(open_ms=26.0, missing={"open_ms": "peak FLOP/s unknown"}), "roofline"),
        *(0.15, 0.4, 0.9),
    ),
    # Not undecided by a sample: nothing was drawn.
    "operations of unknown least time, without a reason": (run(open_ms=26.0), "roofline", 0.4),
    "a small rest of them is not worth a word": (run(open_ms=0.2), "roofline", 0.2),
}

# What may have made the run slow does not fail it: the profiler alone can make a traced step longer than allowed.

LOADED, SPARE = (run(cores_usable=cores, cores_run=1.0, cores_other=1.0) for cores in (2.0, 8.0))


def with_slow_steps() -> Diagnosis:
    """All steps count where slow ones take most of the time."""
    rows = tuple(
        StepRow(number=at, total_ms=90.0 if at % 5 == 4 else 10.0, parts_ms={}, steady=at % 5 != 4)
        for at in range(60)
    )
    slow = SlowStepsSummary(number=12, ms=1080.0, timed=60, timed_ms=1560.0)
    return with_steps(rows=rows, median_ms=10.0, step_ms=10.0, slow=slow)


def with_burst() -> Diagnosis:
    """A burst of slow steps, while other programs took two fifths of the cores: the interval was 44 to 172 ms."""
    times = 113.0 * np.random.default_rng(0).normal(1.0, 0.01, 40)
    times[7:14] *= 2.2
    base = run(cores_usable=2.0, cores_run=1.2, cores_other=0.8)
    rows = tuple(StepRow(number=n, total_ms=ms, parts_ms={}, steady=True) for n, ms in enumerate(times))
    steps = StepsSummary(source=base.steps.source, rows=rows, count=40, median_ms=113.0, step_ms=113.0)
    return replace(base, steps=steps)


TOLD[told] = {
    "traced steps over the budget": (run(), "step-ms", 40),
    "other steps within it": (run(untraced_ms=39.0), "step-ms", 40),
    "other programs": (LOADED, "step-ms", 40),
    "other programs beside idle cores": (SPARE, "step-ms", 40),
    "input waits beside other programs": (LOADED, "input-wait", 0.5),
    "input waits beside idle cores": (SPARE, "input-wait", 0.5),
    "slow steps take most of the time": (with_slow_steps(), "step-ms", 15),
    "a step of twice its budget, though some steps were slow": (with_burst(), "step-ms", 50),
}


@TOLD
def an_undecided_budget_is_never_shown_as_a_pass() -> object:
    return budget_verdict([check(run(untraced_ms=39.0), "step-ms", 40)])


# What is not measured fails, and says why

FEW = with_steps(rows=run().steps.rows[:7])
UNSEEN = {"input": "JAX reads its input outside of the trace"}  # no input wait of zero
FIELDS = {
    "examples-per-second": "batch_size", "memory-gb": "device_bytes", "matrix-unit": "matrix_unit",
    "roofline": "least_ms",
}  # fmt: skip

TOLD[lambda *asked: told(*asked, 0.5)] = {
    **{f"few steps: {key}": (FEW, key) for key in ("step-ms", "input-wait", "examples-per-second")},
    "no steps": (diagnoses.no_steps(), "step-ms"),
    "no input waits": (run(missing=UNSEEN), "input-wait"),
    **{f"no {field}": (run(**{field: None}), key) for key, field in FIELDS.items()},
    **{
        f"no {field}, for a reason": (run(**{field: None, "missing": {field: "it was not recorded"}}), key)
        for key, field in FIELDS.items()
    },
    "no whole run": (replace(run(), run=None), "run-s"),
    "no whole run, for a reason": (of_account(whole=False, missing="only a trace is known"), "run-start-s"),
    "no end of the run": (of_account(finished=False), "run-s"),
    "no epochs": (of_account(epochs=0), "epoch-boundary-s"),
    "no memory of the run": (of_account(peak_bytes=None), "memory-peak-gb"),
}

# Which budgets apply: the table of a device goes before the common one

COMMON, GPU = BudgetLimit("step-ms", ms(20)), BudgetLimit("step-ms", ms(10), DeviceKind.GPU)
TOLD[Budget((GPU, COMMON, BudgetLimit("memory-gb", nbytes(1), DeviceKind.CPU))).of] = {
    f"budgets on a {device}": device for device in (DeviceKind.GPU, DeviceKind.CPU, DeviceKind.TPU)
}


@TOLD
def of_an_unknown_device_no_budget_passes_unseen() -> object:
    (result,) = checked(on(None), Budget((COMMON, GPU))).budgets
    return result.state, result.why


test_budgets = TOLD.test("budgets")

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
    assert state(limit, low, high, at_least=False) is state(-limit, -high, -low, at_least=True)
