"""input-bound: an exposed wait from 5 % of the step and 0.2 ms on."""

from tests.rules.kit import *
from tfdoctor.rules.input import input_bound

AHEAD = stage_time("Root::Prefetch", name="inject/p/_1")


def example(
    breakdown: Breakdown | None = None, *stages: StageTime, cacheable: Cacheable | None = None,
    steps: Steps | None = None, cost: TracingCost | None = None,
) -> Verdict:  # fmt: skip
    """Steps of 52 ms wait 43 ms for a sequential map."""
    waits = Breakdown.of(input=43.0, host=0.5, device=8.5)
    slow = (PREFETCH, stage_time("Root::Prefetch::Map", 50.0))
    made = stages if breakdown else slow
    pipeline, at_next = (
        InputPipeline.of(*made) if made else None,
        at_line(Phase.STEPS, 74, 900.0, "Iterator.__next__"),
    )
    phases = RunPhases(total_ms=1e4, times={}, lines=(at_next,))
    return input_bound.check(breakdown or waits, pipeline, cacheable, steps, cost, phases)


def check(wait_ms: float, step_ms: float = 100.0, *stages: StageTime, **more: Any) -> Verdict:
    ahead = (AHEAD, *stages) if stages else ()
    return example(Breakdown.of(input=wait_ms, device=step_ms - wait_ms), *ahead, **more)


def stage(kind: str, work: float = 50.0, **more: Any) -> StageTime:
    return stage_time(f"Root::Prefetch::{kind}", work, **more)


def made(wait_ms: float, work_ms: float, *, stalls: bool | None = None) -> Verdict:
    even = None if stalls is None else even_steps(20, 100.0)
    steps = replace(even, stalled=(True,) * 20) if even and stalls else even
    return check(wait_ms, 100.0, stage("Map", work_ms), steps=steps)


def traced(events: int) -> Verdict:
    breakdown = Breakdown.of(input=0.5, device=1.5)
    cost = TracingCost.of(breakdown.median, {Stage.INPUT: events}, 2.0 / (2.0 - 0.0011 * events))
    assert (cost.untraced[Stage.INPUT] < 0.2) == (events == 300)
    return example(breakdown, cost=cost)


sick = example
healthy = described("Steps of 9 ms wait 0.1 ms.", example, Breakdown.of(input=0.1, host=0.5, device=8.4))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["without a known pipeline: find the slow part"] = check(40)
    told["a twentieth of the step, and less"] = check(5.0), check(4.9)
    told["0.2 ms, and less, for handing over a batch that is ready"] = check(0.2, 1.0), check(0.19, 1.0)
    told["0.2 of 100 ms, and none"] = check(0.2), check(0.0)
    told["a batch made in time"] = [made(*ms) for ms in ((24.0, 25.0), (24.0, 26.0), (25.0, 25.0), (24.0, 0.0))]
    told["stalls again and again are not in time"] = [made(20.0, 20.0, stalls=stalls) for stalls in (False, True)]
    told["work while it waits"] = example(Breakdown.of(input=10.0, device=90.0), stage_time("Root::Map", 10.0))
    told["a wait that is mostly the profiler's is none"] = traced(200), traced(300)
    made_by: dict[str, Any] = {"function": "decode", "function_at": Location("t.py", 3), "at": Location("t.py", 9)}
    written = Dataset(id=1, kind="_MapDataset", **made_by)
    told["the stage that limits the input is named with its line"] = check(40, 100, stage("Map", dataset=written))
    told["a stage needs several threads, TensorFlow operations, or cheaper work"] = [
        check(40, 100, limiting) for limiting in (stage("Map"), stage("Map", python_ms=40.0), stage("BatchV2"))
    ]
    told["the trace has only the root"] = example(Breakdown.of(input=43.0, device=8.5), stage_time("Root", 50.0))
    crop = Dataset(id=1, kind="_MapDataset", function="crop", function_at=Location("t.py", 3))
    told["a cache after a random function freezes its draws; it is for what is identical in every pass"] = [
        check(40, 100, stage("ParallelMapV2", dataset=crop), cacheable=cacheable)
        for cacheable in (
            None,
            Cacheable(why="crop draws random numbers"),
            Cacheable((CacheablePart(crop, (crop,)),)),
        )
    ]
    even = Breakdown.of(input=50.0, device=50.0)
    told["one, two and three steps"] = [example(Breakdown(even.steps[:1] * n, even.median)) for n in (1, 2, 3)]
    starts = [0, *range(500, 600, 10)]  # ten steps of 10 ms after one of half a second
    steps = [*(marker(n, at, at + 9) for n, at in enumerate(starts)), ("tfdoctor_end", 600, 600)]
    waits = line("tf_data_iterator_get_next/1", wait(0, 490), *(wait(at, at + 0.1) for at in starts))
    kernels = line("Stream #1", *(("k", at + 1, at + 9) for at in starts[1:]))
    facts = chart(trace([line("python", *steps), waits], gpus=[v100(kernels)]))
    shuffled = Dataset(id=1, kind="Shuffle", parameters=DatasetParameters(buffer_size=2_000))
    for name, made_of in (
        ("next(iter(dataset)) fills the buffer anew", 6_196.0),
        ("as many come in as go out", 200.0),
    ):
        parts = stage("Shuffle", 383.0, calls=196.0, dataset=shuffled), stage("Shuffle::Map", 640.0, calls=made_of)
        told[name] = check(952.0, 1_050.0, *parts)
    told["a first step that filled a shuffle buffer is no waiting"] = examined(input_bound, facts).outcome
