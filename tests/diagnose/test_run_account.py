"""The account of the run holds what the facts say: phases, lines, long steps, memory, epochs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.diagnose.run_charts import phases_of, run_chart, steps_of
from tests.rules.run_facts import run_line
from tfdoctor.diagnose.summary.account import run_account
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import LongLine, LongSteps, RunLongLines
from tfdoctor.terms.kinds import Phase, RunWork
from tfdoctor.terms.run_time import PhaseSegment
from tfdoctor.terms.verdict import Location

AT = Location("train.py", 12)


def test_without_phases_there_is_no_account() -> None:
    assert run_account(run_chart(None)) is None


@given(st.dictionaries(st.sampled_from(Phase), st.floats(0.0, 1e9), min_size=1))
def test_rows_are_in_the_order_of_phases_and_sum_to_the_run(times: dict[Phase, float]) -> None:
    account = run_account(run_chart(phases_of(times)))
    assert account
    assert sum(row.ms for row in account.rows) == pytest.approx(account.total_ms)
    order = [row.phase for row in account.rows]
    assert order == sorted(order, key=list(Phase).index)
    assert all(row.ms > 0 for row in account.rows)


def test_a_line_is_named_by_enough_samples_only() -> None:
    lines = tuple(
        RunLine(phase=Phase.PREPARING, at=AT, ms=ms, samples=samples, calls=calls)
        for ms, samples, calls in ((900.0, 18, "pandas.DataFrame.iterrows"), (200.0, 4, "json.loads"))
    )
    phases = RunPhases(total_ms=1100.0, times={Phase.PREPARING: 1100.0}, lines=lines)
    account = run_account(run_chart(phases))
    assert account
    assert [line.calls for line in account.rows[0].lines] == ["pandas.DataFrame.iterrows"]


def epochs(asked: int | None, calls: RunCalls | None) -> int | None:
    more = () if calls is None else (calls,)
    account = run_account(run_chart(phases_of({Phase.STEPS: 1.0}), None, None, *more), asked)
    assert account
    return account.for_epochs


def test_a_run_is_extrapolated_to_the_epochs_asked_for_or_planned() -> None:
    assert epochs(90, RunCalls((), epochs=2)) == 90
    assert epochs(90, RunCalls((), epochs=2, planned_epochs=30)) == 90
    assert epochs(None, RunCalls((), epochs=2, planned_epochs=30)) == 30
    assert epochs(None, RunCalls((), epochs=30, planned_epochs=30)) is None
    assert epochs(None, RunCalls((), epochs=2)) is None


@pytest.mark.parametrize(("early", "times"), [(True, 12 * 80 / 32), (False, 12.0)])
def test_of_an_epoch_that_was_ended_early_the_steps_count(*, early: bool, times: float) -> None:
    phases = replace(phases_of({Phase.STEPS: 1.0}), ended_early=early)
    calls = RunCalls((), epochs=1, planned_epochs=12, epoch_steps=80)
    account = run_account(run_chart(phases, steps_of(32, 10.0), None, calls))
    assert account
    assert (account.for_epochs, account.for_times) == (12, times)


def test_without_an_epoch_nothing_is_extrapolated() -> None:
    assert epochs(90, None) is None
    assert epochs(90, RunCalls((), epochs=0)) is None


@pytest.mark.parametrize(("process", "machine", "peak"), [(3e9, 2e9, 3e9), (None, 2e9, 2e9), (None, None, None)])
def test_the_peak_of_memory_is_the_most_that_was_seen(
    process: float | None, machine: float | None, peak: float | None
) -> None:
    ending = RunEnding(kind=EndKind.EXIT, peak_bytes=process)
    seen = (ending, Samples(4, run_bytes=machine))
    account = run_account(run_chart(phases_of({Phase.STEPS: 1.0}), None, None, *seen))
    assert account
    assert account.peak_bytes == peak


def long_account(*lines: LongLine, wait_longer: bool = False) -> tuple[float, float, list[float]]:
    long = LongSteps(count=10, ms=12_000.0, beyond_ms=10_000.0)
    steps = replace(steps_of(100, 20.0, long), wait_longer=wait_longer)
    more = (RunLongLines(lines),) if lines else ()
    account = run_account(run_chart(phases_of({Phase.STEPS: 12_000.0}), steps, None, *more))
    assert account
    assert account.long_steps
    told = account.long_steps
    return told.beyond_ms, told.unknown_ms, [line.ms for line in told.lines]


def test_long_steps_without_samples_have_an_unknown_cause() -> None:
    assert long_account() == (10_000.0, 10_000.0, [])


@given(st.lists(st.tuples(st.floats(1.0, 1e5), st.integers(1, 500), st.sampled_from((AT, None))), min_size=1))
def test_the_time_of_long_steps_has_its_lines_or_an_unknown_cause(
    seen: list[tuple[float, int, Location | None]],
) -> None:
    lines = [LongLine(at=at, ms=ms, samples=samples, work=RunWork.OTHER) for ms, samples, at in seen]
    beyond, unknown, named = long_account(*lines)
    assert sum(named) + unknown == pytest.approx(beyond)
    assert bool(named) == any(line.sure for line in lines)


@pytest.mark.parametrize(("wait_longer", "unknown"), [(True, 0.0), (False, 10_000.0)])
def test_long_steps_where_traced_ones_wait_have_a_cause(unknown: float, *, wait_longer: bool) -> None:
    at = LongLine(at=AT, ms=3_000.0, samples=60, trains=True)
    assert long_account(at, wait_longer=wait_longer)[1] == unknown


@pytest.mark.parametrize(("evaluated_s", "told"), [(3.0, 9_000.0), (9.0, 0.0)])
def test_lines_of_other_phases_between_training_steps_are_the_cause(evaluated_s: float, told: float) -> None:
    """100 steps take 12 s, of which 3 s are the phase of steps; an evaluation after them is no cause."""
    spans = [PhaseSegment(Phase.STEPS, at, at + 1.0, AT) for at in (0.0, 4.0, 8.0)]
    evaluation = PhaseSegment(Phase.EVALUATION, evaluated_s, evaluated_s + 1.0, AT)
    line = run_line(Phase.EVALUATION, AT, 10_500.0)
    phases = phases_of({Phase.STEPS: 3_000.0, Phase.EVALUATION: 10_500.0})
    long = LongSteps(count=10, ms=12_000.0, beyond_ms=10_000.0)
    run = run_chart(replace(phases, lines=(line,), spans=(*spans, evaluation)), steps_of(100, 20.0, long))
    account = run_account(run)
    assert account
    assert account.long_steps
    assert account.long_steps.unknown_ms == 10_000.0 - told


def test_without_long_steps_none_are_told() -> None:
    account = run_account(run_chart(phases_of({Phase.STEPS: 2_000.0}), steps_of(100, 20.0)))
    assert account
    assert account.long_steps is None
    assert (account.steps, account.step_median_ms) == (100, 20.0)


def test_of_a_window_alone_the_reason_is_told() -> None:
    account = run_account(run_chart(phases_of({Phase.STEPS: 1.0}, whole=False)))
    assert account
    assert not account.whole
    assert account.missing == "only the traced window is known"
