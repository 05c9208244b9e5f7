"""The program without its parts: by steps or by whole runs, and never as a saving."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.diagnoses import full
from tests.rules.verdicts import as_finding
from tests.trial.made import Machine, Program, Tick, stage_of
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.diagnosis.trials import Difference, Trials
from tfdoctor.facts.run_work.run_parts import RunPart
from tfdoctor.terms.kinds import Part
from tfdoctor.terms.verdict import Edit, Location, Remedy
from tfdoctor.trial import taking_out
from tfdoctor.trial.of_recording import Request
from tfdoctor.trial.program import AS_IS, Variant
from tfdoctor.trial.rounds import AROUND
from tfdoctor.trial.statistics import FEWEST_ROUNDS
from tfdoctor.trial.taking_out import LEAST_STEPS, Length

LONG, SHORT = (3600.0, 10_000), (20.0, 500)
HERE = Location("train.py", 9)


def part(name: str, *, in_step: bool | None = True, share: float = 0.3, **changes: Any) -> Variant:
    taken = RunPart(**{"part": Part.CALLBACK, "name": name, "ms": 900.0, "at": HERE, "in_step": in_step, **changes})
    return Variant(name, without=taken, share=share)


def taken_out(machine: Any, *variants: Variant, recorded: Length = LONG) -> Trials:
    """Take parts out of a program, of which no more is asked than to run."""
    before = Trials(rows=(), runs=3, rounds=1, minutes=2.0)
    return taking_out.conduct(stage_of(machine), variants, recorded, 60.0, lambda _: None, before)


class FailsAtTheEnd(Machine):
    """A run of steps ends before the script asks for what the part has left."""

    def run(self, variant: Variant, enough: Any) -> Any:
        run = super().run(variant, enough)
        fails = enough.seconds > 1e6 and variant.name == "part"
        return replace(run, error="ValueError: min() of nothing") if fails else run


@pytest.mark.parametrize(
    ("machine", "in_step", "recorded", "of_run"),
    [
        (Machine({"part": 0.6}), True, LONG, False),
        (Program({"part": 0.6}), False, LONG, True),  # it comes between epochs
        (FailsAtTheEnd({"part": 0.6}), None, SHORT, False),
    ],
)
def test_a_part_is_measured_by_steps_or_by_whole_runs(
    clock: Tick, machine: Any, recorded: Length, *, in_step: bool | None, of_run: bool
) -> None:
    """It is added to a trial, and to none of its savings."""
    machine.tick = clock
    found = taken_out(machine, part("part", in_step=in_step), recorded=recorded)
    (row,) = found.parts
    assert row.measured is not None
    assert row.measured.low < 0.4 < row.measured.high
    assert (row.measured.of_run, row.measured.difference, row.share) == (of_run, Difference.SAVES, 0.3)
    assert row.as_is_ms is not None
    assert row.without_ms == pytest.approx(0.6 * row.as_is_ms, rel=0.02)
    assert (found.rows, found.together) == ((), "")
    if recorded is LONG:
        assert found.runs == 3 + len(machine.order)
        assert found.rounds == 1 + len(row.measured.rounds)


ERROR = "ValueError: min() of nothing"


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        ("Curve", [f"the program fails without it ({ERROR})"]),
        (
            AS_IS,
            [f"from its start to its end as it is ({ERROR})", f"program failed when it ran as it is ({ERROR})"],
        ),
    ],
)
def test_what_cannot_be_timed_has_a_row_that_says_why(clock: Tick, failing: str, said: list[str]) -> None:
    parts = [part("Curve", in_step=False), part("Step")][: len(said)]
    found = taken_out(Program({}, errors={failing: ERROR}, tick=clock), *parts)
    for row, words in zip(found.parts, said, strict=True):
        assert row.measured is None
        assert words in row.missing


PARTS = st.lists(st.sampled_from([True, False, None]), max_size=6).map(
    lambda many: [part(f"part {n}", in_step=one) for n, one in enumerate(many)]
)


@given(PARTS, st.floats(1, 1e5), st.integers(0, 1000), st.floats(0.5, 100))
def test_each_part_is_measured_in_one_way(
    variants: list[Variant], seconds: float, steps: int, minutes: float
) -> None:
    of_runs, of_steps = taking_out.divided(variants, (seconds, steps), minutes)
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
    first = next(one for one in diagnosis.results if one.finding)
    rule = replace(first.rule, topic=topic)
    edit = Remedy("x", edit=Edit(at, before="a", after="b"))
    outcome = replace(as_finding(first.outcome), remedies=(edit,), evidence=())
    return replace(diagnosis, results=(replace(first, rule=rule, outcome=outcome, fallbacks=()),))


NOTHING = replace(full(), results=())
ELSEWHERE = Location("other.py", 1)


@pytest.mark.parametrize(
    ("variant", "diagnosis", "tried"),
    [
        (part("a", share=0.2), NOTHING, True),
        (part("a", share=0.1), NOTHING, False),  # it is small
        (part("a"), with_edit(Topic.RUN, HERE), False),  # an edit at its line, or for its input
        (part("a", part=Part.INPUT, at=None), with_edit(Topic.INPUT, ELSEWHERE), False),
        (part("a"), with_edit(Topic.INPUT, ELSEWHERE), True),  # it mends another part
    ],
)
def test_a_large_part_that_no_finding_mends_is_tried(
    variant: Variant, diagnosis: Diagnosis, *, tried: bool
) -> None:
    assert taking_out.unexplained([variant], diagnosis) == ([variant] if tried else [])


def test_the_bound_of_the_input_is_that_of_its_rule() -> None:
    bound = taking_out.bound_of(full())
    assert bound is not None
    assert bound.rule.name == taking_out.BOUND
    assert taking_out.bound_of(NOTHING) is None


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
