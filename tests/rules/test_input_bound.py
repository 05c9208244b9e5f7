"""input-bound: an exposed wait from 5 % of the step and 0.2 ms on."""

import pytest

from tests.builders import Row, chart, line, marker, trace, v100, wait
from tfdoctor.diagnose import engine
from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.rule import Rule
from tfdoctor.rules import input_bound
from tfdoctor.verdict import Bound, Finding, Healthy, Location, Remedy, Stage, Table, Verdict

AHEAD = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True, name="inject/p/_1")


def check(
    wait_ms: float,
    step_ms: float = 100.0,
    *stages: StageTime,
    cacheable: Cacheable | None = None,
) -> Verdict:
    pipeline = InputPipeline.of(AHEAD, *stages) if stages else None
    return input_bound.check(
        Breakdown.of(input=wait_ms, device=step_ms - wait_ms), pipeline, cacheable
    )


def stage(kind: str, work: float = 50.0, **more: object) -> StageTime:
    return StageTime(
        path=f"Root::Prefetch::{kind}",
        kind=kind,
        work_ms=work,
        wall_ms=work,
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("wait_ms", "step_ms", "kind"),
    [
        (5.0, 100.0, Finding),
        (4.9, 100.0, Healthy),
        (0.2, 1.0, Finding),
        (0.19, 1.0, Healthy),
        (0.0, 100.0, Healthy),
    ],
)
def test_both_limits(wait_ms: float, step_ms: float, kind: type) -> None:
    assert isinstance(check(wait_ms, step_ms), kind)


def test_at_most_the_whole_wait_can_be_saved() -> None:
    found = check(40)
    assert isinstance(found, Finding)
    (effect,) = found.effects
    assert (effect.stage, effect.scales, effect.bound) == (Stage.INPUT, 0.0, Bound.AT_MOST)


def test_the_stage_that_limits_the_pipeline_is_named_with_its_line() -> None:
    written = Dataset(
        id=1,
        kind="_MapDataset",
        function="decode",
        function_at=Location("t.py", 3),
        at=Location("t.py", 9),
    )
    found = check(40, 100, stage("Map", dataset=written))
    assert isinstance(found, Finding)
    assert "Map(decode)" in found.summary
    assert found.remedies[0].at == Location("t.py", 9)
    (table,) = [one for one in found.evidence if isinstance(one, Table)]
    assert [row[:2] for row in table.rows] == [
        ("Prefetch", "added by tf.data"),
        ("Map(decode)", Location("t.py", 9)),
    ]


@pytest.mark.parametrize(
    ("limiting", "words"),
    [
        (stage("Map"), "several threads"),
        (stage("Map", python_ms=40.0), "Replace the Python"),
        (stage("BatchV2"), "cheaper"),
    ],
)
def test_the_remedy_follows_the_limiting_stage(limiting: StageTime, words: str) -> None:
    found = check(40, 100, limiting)
    assert isinstance(found, Finding)
    assert words in found.remedies[0].action


def test_without_a_known_pipeline_it_is_said_how_to_find_out() -> None:
    found = check(40)
    assert isinstance(found, Finding)
    assert "Find out" in found.remedies[0].action


def test_a_first_step_that_filled_a_shuffle_buffer_is_no_waiting() -> None:
    """Ten steps of 10 ms after one of half a second."""
    starts = [0, *range(500, 600, 10)]
    steps: list[Row] = [marker(n, at, at + 9) for n, at in enumerate(starts)]
    steps += [("tfdoctor_end", 600, 600)]
    waits = line(
        "tf_data_iterator_get_next/1", wait(0, 490), *(wait(at, at + 0.1) for at in starts)
    )
    kernels = line("Stream #1", *(("k", at + 1, at + 9) for at in starts[1:]))
    facts = chart(trace([line("python", *steps), waits], gpus=[v100(kernels)]))
    (result,) = engine.examine(facts, [Rule.from_module(input_bound)])
    assert isinstance(result.outcome, Healthy)


def test_tf_datas_own_handle_is_not_what_to_mend() -> None:
    """A trace may hold the pipeline's root alone: which stage is slow, it does not tell then."""
    root = StageTime(path="Root", kind="Root", work_ms=50.0, wall_ms=50.0)
    found = input_bound.check(Breakdown.of(input=43.0, device=8.5), InputPipeline.of(root), None)
    assert isinstance(found, Finding)
    assert "Root" not in found.summary + found.remedies[0].action
    assert found.remedies[0].action.startswith("Find out")


def test_only_what_is_the_same_in_every_pass_is_to_be_done_once() -> None:
    """Trap: a cache behind a random function freezes its draws."""
    crop = Dataset(id=1, kind="_MapDataset", function="crop", function_at=Location("t.py", 3))
    slow = stage("ParallelMapV2", dataset=crop)
    for known in (None, Cacheable(why="crop draws random numbers")):
        (remedy,) = remedies(check(40, 100, slow, cacheable=known))
        assert remedy.action == "Make ParallelMapV2(crop) cheaper"
        assert "cache" not in remedy.code
    (remedy,) = remedies(check(40, 100, slow, cacheable=Cacheable(last=crop, kept=(crop,))))
    assert "or do it once" in remedy.action
    assert "cache()" in remedy.code


def remedies(found: Verdict) -> tuple[Remedy, ...]:
    assert isinstance(found, Finding)
    return found.remedies
