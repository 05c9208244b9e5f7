"""The program without its parts: by steps or by whole runs, and never as a saving."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.diagnoses import full
from tests.trial.made import Machine, stage_of
from tests.trial.test_whole import Program
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.diagnosis.trials import Difference, PartTrial, Trials
from tfdoctor.facts.run_work.run_parts import RunPart
from tfdoctor.terms.kinds import Part
from tfdoctor.terms.verdict import Edit, Finding, Location, Remedy
from tfdoctor.trial import taking_out
from tfdoctor.trial.of_recording import Request
from tfdoctor.trial.program import AS_IS, Variant
from tfdoctor.trial.rounds import AROUND
from tfdoctor.trial.statistics import FEWEST_ROUNDS
from tfdoctor.trial.taking_out import LEAST_STEPS, RecordedRun

LONG = RecordedRun(seconds=3600.0, steps=10_000)
SHORT = RecordedRun(seconds=20.0, steps=500)


HERE = Location("train.py", 9)


def part(
    name: str,
    *,
    in_step: bool | None = True,
    kind: Part = Part.CALLBACK,
    share: float = 0.3,
    at: Location | None = HERE,
) -> Variant:
    taken = RunPart(part=kind, name=name, ms=900.0, at=at, in_step=in_step)
    return Variant(name, without=taken, share=share)


def taken_out(machine: Any, *variants: Variant, recorded: RecordedRun = LONG, minutes: float = 60.0) -> Trials:
    """Take parts out of a program, of which no more is asked than to run."""
    stage = stage_of(machine.run)
    before = Trials(rows=(), runs=3, rounds=1, minutes=2.0)
    return taking_out.conduct(stage, variants, recorded, minutes, lambda _: None, before)


def test_a_part_of_the_step_is_measured_by_steps(clock: Callable[[float], None]) -> None:
    machine = Machine({"Logger": 0.6}, tick=clock)
    row = taken_out(machine, part("Logger")).parts[0]
    assert row.measured is not None
    assert row.measured.low < 0.4 < row.measured.high
    assert not row.measured.of_run
    assert row.share == 0.3
    assert row.as_is_ms is not None
    assert row.without_ms == pytest.approx(0.6 * row.as_is_ms, rel=0.02)


def test_a_part_between_epochs_is_measured_by_whole_runs(clock: Callable[[float], None]) -> None:
    program = Program({"Snapshot": 0.7}, tick=clock)
    row = taken_out(program, part("Snapshot", in_step=False)).parts[0]
    assert row.measured is not None
    assert row.measured.of_run
    assert row.measured.share == pytest.approx(0.3, abs=0.01)


def test_a_part_that_breaks_the_script_has_a_row_that_says_so(clock: Callable[[float], None]) -> None:
    program = Program({}, errors={"Curve": "ValueError: min() of nothing"}, tick=clock)
    row = taken_out(program, part("Curve", in_step=False)).parts[0]
    assert row.measured is None
    assert row.missing == "the program fails without it (ValueError: min() of nothing)"


def test_what_only_the_end_of_the_run_misses_is_measured_by_steps() -> None:
    """Its run of steps ends before the script asks for what the part has left."""

    class Both(Machine):
        def run(self, variant: Variant, enough: Any) -> Any:
            run = super().run(variant, enough)
            fails = enough.seconds > 1e6 and variant.name == "Curve"
            return replace(run, error="ValueError: min() of nothing") if fails else run

    found = taken_out(Both({"Curve": 0.5}), part("Curve", in_step=None), recorded=SHORT)
    (row,) = found.parts
    assert row.measured is not None
    assert row.measured.share == pytest.approx(0.5, abs=0.02)
    assert not row.measured.of_run


def test_a_program_that_cannot_be_timed_says_so_in_each_row() -> None:
    program = Program({}, errors={AS_IS: "SystemExit: 2"})
    found = taken_out(program, part("A"), part("B", in_step=False))
    assert [bool(row.missing) for row in found.parts] == [True, True]
    assert "SystemExit" in found.parts[0].missing


def test_parts_are_added_to_a_trial_and_to_none_of_its_savings() -> None:
    machine = Machine({"Logger": 0.6})
    found = taken_out(machine, part("Logger"))
    assert found.rows == ()
    assert not found.together
    (row,) = found.parts
    assert isinstance(row, PartTrial)
    assert row.measured is not None
    assert row.measured.difference is Difference.SAVES
    assert found.runs == 3 + len(machine.order)
    assert found.rounds == 1 + len(row.measured.rounds)


PARTS = st.lists(st.sampled_from([True, False, None]), max_size=6).map(
    lambda many: [part(f"part {n}", in_step=one) for n, one in enumerate(many)]
)


@given(PARTS, st.floats(1, 1e5), st.integers(0, 1000), st.floats(0.5, 100))
def test_each_part_is_measured_in_one_way(
    variants: list[Variant], seconds: float, steps: int, minutes: float
) -> None:
    recorded = RecordedRun(seconds, steps)
    of_runs, of_steps = taking_out.divided(variants, recorded, minutes)
    assert sorted(one.name for one in (*of_runs, *of_steps)) == [one.name for one in variants]
    known = [one for one in variants if one.without and one.without.in_step is False]
    assert all(one in of_runs for one in known)
    if steps < LEAST_STEPS:
        assert not of_steps
    elif FEWEST_ROUNDS * (AROUND + len(variants)) * seconds > 60 * minutes:
        assert of_runs == known


def with_edit(topic: Topic, at: Location) -> Diagnosis:
    """Return a report whose only finding of the topic has an edit at a line."""
    diagnosis = full()
    first = next(r for r in diagnosis.results if isinstance(r.outcome, Finding))
    assert isinstance(first.outcome, Finding)
    rule = replace(first.rule, topic=topic)
    outcome = replace(first.outcome, remedies=(Remedy("x", edit=Edit(at, before="a", after="b")),), evidence=())
    return replace(diagnosis, results=(replace(first, rule=rule, outcome=outcome, fallbacks=()),))


def test_a_large_part_that_no_finding_mends_is_tried() -> None:
    nothing = replace(full(), results=())
    assert taking_out.unexplained([part("a", share=0.2)], nothing) == [part("a", share=0.2)]
    assert taking_out.unexplained([part("a", share=0.1)], nothing) == []


@pytest.mark.parametrize(
    ("variant", "diagnosis"),
    [
        (part("a", share=0.5), with_edit(Topic.RUN, HERE)),
        (part("a", share=0.5, kind=Part.INPUT, at=None), with_edit(Topic.INPUT, Location("other.py", 1))),
    ],
)
def test_a_part_with_an_edit_at_its_line_or_for_its_input_is_left_to_that(
    variant: Variant, diagnosis: Diagnosis
) -> None:
    assert taking_out.unexplained([variant], diagnosis) == []


def test_an_edit_elsewhere_mends_no_other_part() -> None:
    diagnosis = with_edit(Topic.INPUT, Location("other.py", 1))
    assert taking_out.unexplained([part("a", share=0.5)], diagnosis) == [part("a", share=0.5)]


def test_the_bound_of_the_input_is_that_of_its_rule() -> None:
    bound = taking_out.bound_of(full())
    assert bound is not None
    assert bound.rule.name == taking_out.BOUND
    assert taking_out.bound_of(replace(full(), results=())) is None


@pytest.mark.parametrize(
    ("asked", "edits", "nothing"),
    [
        ({}, True, True),
        ({"parts": True}, False, True),
        ({"parts": True, "only": ("cache-order",)}, True, False),
        ({"environment": ("A=1",)}, True, False),
    ],
)
def test_parts_are_tried_in_place_of_edits_where_they_are_asked_for(
    asked: dict[str, object], *, edits: bool, nothing: bool
) -> None:
    request = Request(consent=lambda _: None, say=print, **asked)  # type: ignore[arg-type]  # its fields
    assert (request.tries_edits, request.names_nothing) == (edits, nothing)
