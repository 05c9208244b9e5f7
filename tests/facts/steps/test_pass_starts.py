"""Long first steps of passes over the data, outside of the traced steps."""

import pytest

from tests.builders import manifest, recording
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import Dataset, Program
from tfdoctor.facts.steps.untraced_pace import PassStarts
from tfdoctor.recording.agent import StepsSeen, UntracedSteps

FED = Program(datasets=(Dataset(id=1, kind="_BatchDataset", cardinality=30),), feeds=1)
FILLS = ((30, 400.0), (59, 150.0), (60, 390.0), (89, 150.0), (90, 380.0))


def starts(
    *long: tuple[int, float], source: str = "keras-fit", seen: int = 110, program: Program = FED
) -> PassStarts:
    untraced = UntracedSteps(100, 30.0, "steps", total_ms=5000.0, long=long)
    steps = StepsSeen(source=source, seen=seen, untraced=untraced)
    return PassStarts.measure(recording(manifest=manifest(steps=steps)), program)


def test_the_first_steps_of_passes_are_told_from_the_last() -> None:
    found = starts(*FILLS)
    assert (found.number, found.pass_steps) == (3, 30)
    assert (found.long_ms, found.usual_ms) == (390.0, 30.0)
    assert found.share == pytest.approx(3 * 360.0 / 5000.0)
    assert found.each_step_ms == pytest.approx(10.8)


def test_one_extreme_step_does_not_raise_the_share() -> None:
    """Other programs delay a step now and then."""
    assert starts((30, 3000.0), *FILLS[1:]).share == pytest.approx(3 * 360.0 / 5000.0)


@pytest.mark.parametrize(
    ("long", "seen"),
    [
        ((FILLS[1], FILLS[3]), 110),  # the ends of passes: a validation
        (FILLS[:1], 50),  # once
        ((FILLS[0], FILLS[2]), 121),  # two of four passes
        (((0, 900.0), FILLS[0]), 50),  # the first step of the run
    ],
)
def test_steps_that_do_not_recur_at_the_begin_of_passes_are_none(
    long: tuple[tuple[int, float], ...], seen: int
) -> None:
    with pytest.raises(Unavailable, match="again and again"):
        starts(*long, seen=seen)


def test_loops_whose_step_begins_after_its_batch_are_not_judged() -> None:
    """The wait for a batch is in the step before, as is what the script does at the end of an epoch."""
    with pytest.raises(Unavailable, match="was not recorded"):
        starts(*FILLS, source="repeated-call")


def test_the_steps_of_a_pass_must_be_known() -> None:
    with pytest.raises(Unavailable, match="was not recorded"):
        starts(*FILLS, program=Program(datasets=(Dataset(id=1, kind="_BatchDataset"),), feeds=1))
