"""between-steps: what passes between two calls, less tracing and batches, and where it was seen."""

import pytest

from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.facts.time.retracing import Retracing
from tfdoctor.facts.time.stack_samples import SampledLine, StackSamples
from tfdoctor.rules import between_steps
from tfdoctor.verdict import Bound, Finding, Healthy, Location, Table, Verdict

LOGS, MAKES = Location("train.py", 40), Location("train.py", 12)


def check(
    between: float,
    *places: SampledLine,
    step: float = 20.0,
    retracing: Retracing | None = None,
    anew: tuple[tuple[int, ...], ...] = (),
) -> Verdict:
    return between_steps.check(
        Breakdown.of(between=between, device=step - between),
        StackSamples(places, anew=anew) if places else None,
        retracing,
    )


@pytest.mark.parametrize(
    ("between", "step", "kind"),
    [(1.0, 20.0, Finding), (0.99, 20.0, Healthy), (0.5, 2.0, Finding), (0.49, 2.0, Healthy)],
)
def test_a_share_of_the_step_and_more_than_keras_takes(
    between: float, step: float, kind: type
) -> None:
    assert isinstance(check(between, step=step), kind)


def test_unseen_time_is_found_without_a_name_and_as_a_ceiling() -> None:
    found = check(10.0)
    assert isinstance(found, Finding)
    assert found.summary == "10.0 ms pass between two steps"
    assert found.effects[0].bound is Bound.AT_MOST
    assert found.effects[0].of is not None
    assert found.effects[0].of.value == pytest.approx(10.0)


def test_a_callback_is_named_over_all_of_its_lines() -> None:
    other = Location("train.py", 41)
    found = check(
        10.0,
        SampledLine(LOGS, 4, "Log.on_batch_end"),
        SampledLine(other, 3, "Log.on_batch_end"),
        SampledLine(MAKES, 6),
    )
    assert isinstance(found, Finding)
    assert "most of it in Log.on_batch_end" in found.summary
    assert found.remedies[0].at == LOGS


def test_what_takes_less_than_half_is_not_named_in_the_summary() -> None:
    found = check(10.0, *(SampledLine(Location("train.py", n), 2) for n in (1, 2, 3)))
    assert isinstance(found, Finding)
    assert "most of it" not in found.summary
    assert any(isinstance(one, Table) and len(one.rows) == 3 for one in found.evidence)


def test_few_looks_name_nothing() -> None:
    found = check(10.0, SampledLine(LOGS, 4))
    assert isinstance(found, Finding)
    assert found.remedies[0].at is None


def test_making_batches_is_not_its_business() -> None:
    """Trap: 90 % of the looks fell on the lines that make the arguments."""
    places = SampledLine(MAKES, 18, makes=True), SampledLine(LOGS, 2, makes=False)
    assert isinstance(check(8.0, *places, anew=((128, 32),)), Healthy)
    assert isinstance(check(12.0, *places, anew=((128, 32),)), Finding)


def test_lines_that_make_what_stays_the_same_make_no_batch() -> None:
    assert isinstance(check(8.0, SampledLine(MAKES, 18, makes=True)), Finding)


def test_tracing_and_tensorflow_s_own_way_into_a_function_are_not_its_business() -> None:
    """Trap: a marked call begins within the tf.function, after Python has found or made its graph."""
    assert isinstance(check(10.0, retracing=Retracing((), 0.0, 9.5)), Healthy)
    assert isinstance(check(1.2, retracing=Retracing((), calling_ms=0.3)), Healthy)


def test_a_named_callback_leaves_a_hundredth_and_what_else_ran() -> None:
    found = check(10.0, SampledLine(LOGS, 8, "Log.on_batch_end"), SampledLine(MAKES, 2))
    assert isinstance(found, Finding)
    assert found.effects[0].bound is Bound.EXPECTED
    assert found.effects[0].scales == pytest.approx(1.0 - 0.99 * 0.8)
