"""Which parts are taken out, and which of them without being asked for."""

from dataclasses import replace

import pytest

from tests.report.diagnoses import full
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.facts.run_work.run_parts import RunPart
from tfdoctor.terms.kinds import Part
from tfdoctor.terms.verdict import Edit, Finding, Location, Remedy
from tfdoctor.trial import parts
from tfdoctor.trial.of_recording import Request
from tfdoctor.trial.variants import Variant

HERE = Location("train.py", 1234)


def part(share: float, kind: Part = Part.CALLBACK, at: Location | None = HERE) -> Variant:
    taken = RunPart(part=kind, name="Snapshot", ms=100.0, at=at)
    return Variant("without it", without=taken, share=share)


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
    assert parts.unexplained([part(0.2)], nothing) == [part(0.2)]
    assert parts.unexplained([part(0.1)], nothing) == []


@pytest.mark.parametrize(
    ("variant", "diagnosis"),
    [
        (part(0.5), with_edit(Topic.RUN, HERE)),
        (part(0.5, Part.INPUT, at=None), with_edit(Topic.INPUT, Location("other.py", 1))),
    ],
)
def test_a_part_with_an_edit_at_its_line_or_for_its_input_is_left_to_that(
    variant: Variant, diagnosis: Diagnosis
) -> None:
    assert parts.unexplained([variant], diagnosis) == []


def test_an_edit_elsewhere_mends_no_other_part() -> None:
    diagnosis = with_edit(Topic.INPUT, Location("other.py", 1))
    assert parts.unexplained([part(0.5)], diagnosis) == [part(0.5)]


def test_the_bound_of_the_input_is_that_of_its_rule() -> None:
    bound = parts.bound_of(full())
    assert bound is not None
    assert bound.rule.name == parts.BOUND
    assert parts.bound_of(replace(full(), results=())) is None


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
