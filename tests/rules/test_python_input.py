"""python-input: the interpreter takes a tenth of what limits a pipeline that is waited for."""

import pytest

from tfdoctor.facts.breakdown import Breakdown
from tfdoctor.facts.input_pipeline import InputPipeline, StageTime
from tfdoctor.rules import python_input
from tfdoctor.verdict import Bound, Finding, Healthy, Verdict

AHEAD = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)


def stage(kind: str, work: float, python: float) -> StageTime:
    return StageTime(
        path=f"Root::Prefetch::{kind}", kind=kind, work_ms=work, wall_ms=work, python_ms=python
    )


def check(*stages: StageTime, wait: float = 30.0, fed_by: str = "") -> Verdict:
    return python_input.check(
        InputPipeline.of(AHEAD, *stages, python_kind=fed_by),
        Breakdown.of(input=wait, device=40.0 - wait),
    )


@pytest.mark.parametrize(("python", "kind"), [(4.0, Finding), (3.9, Healthy), (0.0, Healthy)])
def test_a_tenth_of_the_slowest_segment(python: float, kind: type) -> None:
    assert isinstance(check(stage("Map", 40.0, python)), kind)


@pytest.mark.parametrize(("wait", "kind"), [(2.0, Finding), (1.9, Healthy)])
def test_only_a_step_that_waits(wait: float, kind: type) -> None:
    assert isinstance(check(stage("Map", 40.0, 38.0), wait=wait), kind)


def test_replacing_the_python_leaves_the_rest_of_the_stage() -> None:
    found = check(stage("Map", 40.0, 30.0))
    assert isinstance(found, Finding)
    (effect,) = found.effects
    assert effect.scales == pytest.approx(0.25)
    assert effect.subject == "Root::Prefetch::Map"
    assert effect.bound is Bound.AT_MOST


def test_python_on_another_thread_than_the_slowest_does_not_count() -> None:
    """The slowest segment is a native map; a generator elsewhere keeps up."""
    slow = StageTime(
        path="Root::Prefetch::ParallelMapV2",
        kind="ParallelMapV2",
        work_ms=90.0,
        wall_ms=45.0,
        asynchronous=True,
    )
    quick = StageTime(
        path="Root::Prefetch::ParallelMapV2::Generator",
        kind="Generator",
        work_ms=10.0,
        wall_ms=10.0,
        python_ms=10.0,
    )
    assert isinstance(check(slow, quick), Healthy)


@pytest.mark.parametrize(
    ("kind", "fed_by", "words"),
    [
        ("Map", "", "TensorFlow operations"),
        ("Generator", "", "tf.data instead of a generator"),
        ("Generator", "generator", "tf.data instead of a generator"),
        ("Generator", "PyDataset", "several processes"),
    ],
)
def test_the_remedy_follows_what_makes_the_batches(kind: str, fed_by: str, words: str) -> None:
    found = check(stage(kind, 40.0, 40.0), fed_by=fed_by)
    assert isinstance(found, Finding)
    assert words in found.remedies[0].action


def test_a_pipeline_without_work_is_healthy() -> None:
    assert isinstance(check(), Healthy)
