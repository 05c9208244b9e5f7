"""input-bound: an exposed wait from 5 % of the step and 0.2 ms on."""

import pytest

from tests.builders import Row, line, wait
from tests.rules.kit import *
from tfdoctor.facts.input.cacheable import CacheablePart
from tfdoctor.rules.input import input_bound


def example(
    breakdown: Breakdown | None = None, *stages: StageTime, cacheable: Cacheable | None = None,
    steps: Steps | None = None, cost: TracingCost | None = None,
) -> Verdict:  # fmt: skip
    """Steps of 52 ms wait 43 ms for a sequential map."""
    waits = Breakdown.of(input=43.0, host=0.5, device=8.5)
    slow = (StageTime.of("Root::Prefetch"), StageTime.of("Root::Prefetch::Map", 50.0))
    made = stages if breakdown else slow
    return input_bound.check(breakdown or waits, InputPipeline.of(*made) if made else None, cacheable, steps, cost)


sick = example


def healthy() -> Verdict:
    """Steps of 9 ms wait 0.1 ms."""
    return example(Breakdown.of(input=0.1, host=0.5, device=8.4))


AHEAD = StageTime.of("Root::Prefetch", name="inject/p/_1")


def check(wait_ms: float, step_ms: float = 100.0, *stages: StageTime, **more: Any) -> Verdict:
    ahead = (AHEAD, *stages) if stages else ()
    return example(Breakdown.of(input=wait_ms, device=step_ms - wait_ms), *ahead, **more)


def stage(kind: str, work: float = 50.0, **more: Any) -> StageTime:
    return StageTime.of(f"Root::Prefetch::{kind}", work, **more)


def made(wait_ms: float, work_ms: float, *, stalls: bool | None = None) -> Verdict:
    even = None if stalls is None else Steps.uniform(20, 100.0)
    steps = replace(even, stalled=(True,) * 20) if even and stalls else even
    return check(wait_ms, 100.0, stage("Map", work_ms), steps=steps)


test_both_sides_of_each_limit = each_is(
    (check(5.0, 100.0), Finding),
    (check(4.9, 100.0), Healthy),
    (check(0.2, 1.0), Finding),
    (check(0.19, 1.0), Healthy),
    (check(0.0, 100.0), Healthy),
    (made(24.0, 25.0), Healthy),  # a short wait for a batch that is made in time
    (made(24.0, 26.0), Finding),
    (made(25.0, 25.0), Finding),
    (made(24.0, 0.0), Finding),
    (made(20.0, 20.0, stalls=False), Healthy),
    (made(20.0, 20.0, stalls=True), Finding),  # again and again: not in time
    # A pipeline that works while the trainer waits is not in time
    (example(Breakdown.of(input=10.0, device=90.0), StageTime.of("Root::Map", 10.0)), Finding),
)


def traced(events: int) -> Verdict:
    breakdown = Breakdown.of(input=0.5, device=1.5)
    cost = TracingCost.of(breakdown.median, {Stage.INPUT: events}, 2.0 / (2.0 - 0.0011 * events))
    assert (cost.untraced[Stage.INPUT] < 0.2) == (events == 300)
    return example(breakdown, cost=cost)


test_a_wait_that_is_mostly_the_profilers_is_none = each_is((traced(200), Finding), (traced(300), Healthy))


def test_at_most_the_whole_wait_can_be_saved() -> None:
    verdict = as_finding(check(40))
    assert "dataset.take" in verdict.remedies[0].code  # without a known pipeline: find the slow part
    (effect,) = verdict.effects
    assert (effect.stage, effect.scales, effect.bound) == (Stage.INPUT, 0.0, Bound.AT_MOST)


def test_the_stage_that_limits_the_pipeline_is_named_with_its_line() -> None:
    written = Dataset(
        id=1, kind="_MapDataset", function="decode", function_at=Location("t.py", 3), at=Location("t.py", 9)
    )
    verdict = as_finding(check(40, 100, stage("Map", dataset=written)))
    assert "Map(decode)" in verdict.summary
    assert verdict.remedies[0].at == Location("t.py", 9)
    rows = [row[:2] for row in table(verdict).rows]
    assert rows == [("Prefetch", "added by tf.data"), ("Map(decode)", Location("t.py", 9))]


@pytest.mark.parametrize(
    ("limiting", "words"),
    [
        (stage("Map"), "several threads"),
        (stage("Map", python_ms=40.0), "TensorFlow operations"),
        (stage("BatchV2"), "cheaper"),
    ],
)
def test_the_remedy_follows_the_limiting_stage(limiting: StageTime, words: str) -> None:
    assert words in as_finding(check(40, 100, limiting)).remedies[0].action


def test_a_first_step_that_filled_a_shuffle_buffer_is_no_waiting() -> None:
    """Ten steps of 10 ms after one of half a second."""
    starts = [0, *range(500, 600, 10)]
    steps: list[Row] = [marker(n, at, at + 9) for n, at in enumerate(starts)]
    steps += [("tfdoctor_end", 600, 600)]
    waits = line("tf_data_iterator_get_next/1", wait(0, 490), *(wait(at, at + 0.1) for at in starts))
    kernels = line("Stream #1", *(("k", at + 1, at + 9) for at in starts[1:]))
    facts = chart(trace([line("python", *steps), waits], gpus=[v100(kernels)]))
    (result,) = engine.examine(facts, [Rule.from_module(input_bound)])
    assert isinstance(result.outcome, Healthy)


def test_the_root_of_the_pipeline_is_not_named() -> None:
    """A trace may hold only the pipeline's root; which stage is slow is unknown then."""
    verdict = as_finding(example(Breakdown.of(input=43.0, device=8.5), StageTime.of("Root", 50.0)))
    assert "Root" not in verdict.summary + verdict.remedies[0].action
    assert "dataset.take" in verdict.remedies[0].code


def test_a_cache_is_advised_only_for_what_is_identical_in_every_pass() -> None:
    """A cache after a random function freezes its draws."""
    crop = Dataset(id=1, kind="_MapDataset", function="crop", function_at=Location("t.py", 3))
    slow = stage("ParallelMapV2", dataset=crop)
    for known in (None, Cacheable(why="crop draws random numbers")):
        (remedy,) = as_finding(check(40, 100, slow, cacheable=known)).remedies
        assert "ParallelMapV2(crop)" in remedy.action
        assert "cache" not in remedy.code
    same = Cacheable((CacheablePart(crop, (crop,)),))
    (remedy,) = as_finding(check(40, 100, slow, cacheable=same)).remedies
    assert "cache()" in remedy.code


def test_handing_over_a_batch_that_is_ready_is_necessary() -> None:
    assert [time.part for time in as_healthy(check(0.19, 1.0)).necessary] == [Stage.INPUT]
    assert not as_healthy(check(0.2, 100.0)).necessary


@pytest.mark.parametrize("number", [1, 2, 3])
def test_one_or_two_steps_are_not_called_each_step(number: int) -> None:
    even = Breakdown.of(input=50.0, device=50.0)
    few = Breakdown(even.steps[:1] * number, even.median)
    finding = as_finding(example(few))
    which = ("The traced step", "Each of the two traced steps", "Each step")[number - 1]
    assert finding.summary.startswith(f"{which} waits 50.0 ms of its 100 ms")
