"""The step now, as predicted and as measured, on one scale."""

from dataclasses import replace

import pytest

from tests.report import diagnoses
from tests.report.diagnoses import HELPS, HURTS, trial
from tfdoctor.diagnosis.trials import Trial, Trials
from tfdoctor.report.pictures.step_bars import step_bars
from tfdoctor.terms.verdict import Bound


def test_the_predicted_step_stands_below_the_step_now() -> None:
    now, after = step_bars(diagnoses.full())
    assert (now.label, now.time) == ("now", "52.0 ms")
    assert (after.label, after.time) == ("predicted", "9.00 ms")
    assert sum(piece.width for piece in now.pieces) == pytest.approx(1, abs=0.02)
    assert sum(piece.width for piece in after.pieces) == pytest.approx(9 / 52, abs=0.01)
    assert [piece.words for piece in after.pieces][:2] == ["host 0.50 ms", "device 7.70 ms"]


def test_beside_an_untraced_step_the_prediction_is_a_share() -> None:
    """Of a traced step of 52 ms, 9 ms are left; the headline's step takes 40 ms."""
    base = diagnoses.full()
    conditions = replace(base.conditions, untraced_ms=40.0)
    traced, after = step_bars(replace(base, conditions=conditions))
    assert (traced.label, traced.time) == ("traced", "52.0 ms")
    assert (after.label, after.time) == ("predicted", "83 % shorter")
    assert base.together is not None
    most = replace(base.together, bound=Bound.AT_MOST)
    _, after = step_bars(replace(base, conditions=conditions, together=most))
    assert after.time == "at most 83 % shorter"


def test_the_measured_step_is_as_much_shorter_as_the_changes_that_help_made_it() -> None:
    rows = (trial("a", HELPS, kept=True), trial("b", HURTS))
    bars = step_bars(replace(diagnoses.full(), trials=Trials(rows=rows)))
    assert (bars[2].label, bars[2].time) == ("measured", "31 % shorter")
    assert bars[2].pieces[0].width == pytest.approx(0.69)


@pytest.mark.parametrize("rows", [(), (trial("b", HURTS),), (replace(trial("a", HELPS, kept=True), examples=2.0),)])
def test_a_trial_without_a_shorter_step_has_no_bar(rows: tuple[Trial, ...]) -> None:
    """Trap: with a larger batch the saving is one per example, and the step itself is longer."""
    bars = step_bars(replace(diagnoses.full(), trials=Trials(rows=rows)))
    assert [bar.label for bar in bars] == ["now", "predicted"]


def test_a_run_without_steps_has_no_bars() -> None:
    assert step_bars(diagnoses.no_steps()) == ()
    assert step_bars(diagnoses.unknown_numbers()) == ()


def test_changes_that_do_not_shorten_the_step_have_no_bar() -> None:
    full = diagnoses.full()
    assert full.together
    longer = replace(full.together, after_ms={"device": 60.0})
    assert [bar.label for bar in step_bars(replace(full, together=longer))] == ["now"]
