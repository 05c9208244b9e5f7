"""cache-order: caches that are never complete, and caches that keep random draws."""

from typing import Any

import pytest

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.input.repeated_work import RepeatedWork
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.run.program import Dataset, DatasetParameters
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules import cache_order
from tfdoctor.verdict import (
    Bound,
    Finding,
    Healthy,
    Location,
    NotApplicable,
    Severity,
    Stage,
    Verdict,
)

Step = tuple[str, dict[str, Any]]

SPEC = "TensorSpec(shape=(250,), dtype=tf.float32, name=None)"
SOURCE: Step = ("TensorSlice", {"cardinality": 1000})
REPEAT: Step = ("Repeat", {"cardinality": -1, "parameters": DatasetParameters(count=-1)})
CACHE: Step = ("Cache", {"cardinality": 1000, "element": SPEC})
ENDLESS: Step = ("Cache", {"cardinality": -1, "element": SPEC})
SHUFFLE: Step = ("Shuffle", {"cardinality": 1000})
BATCH: Step = ("Batch", {"parameters": DatasetParameters(batch_size=10), "cardinality": 100})


def mapped(*types: str, name: str = "decode", cardinality: int | None = 1000) -> Step:
    more = {
        "function": name,
        "function_at": Location("train.py", 9),
        "types": frozenset(types),
        "stateful": frozenset(kind for kind in types if "Random" in kind),
        "cardinality": cardinality,
        "element": SPEC,
    }
    return ("Map", more)


DECODE, FLIP = mapped("DecodePng"), mapped("RandomUniform", name="flip")


def take(count: int) -> Step:
    return ("Take", {"parameters": DatasetParameters(count=count), "cardinality": count})


def check(
    *steps: Step,
    passes: float | None = 4.0,
    wait: float = 30.0,
    crowded: bool = False,
    remade: bool = False,
) -> Verdict:
    """The source stands first, on line 10; each stage with a function works for 10 ms."""
    chain = [
        Dataset(
            id=at,
            kind=f"_{kind}Dataset",
            inputs=(at - 1,) if at else (),
            at=Location("train.py", 10 + at),
            **more,
        )
        for at, (kind, more) in enumerate(steps)
    ]
    properties = DatasetProperties(tuple(reversed(chain)), passes, remade)
    cacheable = Cacheable.measure(properties)
    pipeline = InputPipeline.of(
        StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True),
        *(
            StageTime(
                path=f"Root::Prefetch::{stage.id}",
                kind="Map",
                work_ms=10.0 if stage.function else 0.0,
                wall_ms=10.0 if stage.function else 0.0,
                calls=10.0,
                dataset=stage,
            )
            for stage in chain
        ),
    )
    return cache_order.check(
        cacheable,
        properties,
        RepeatedWork.measure(cacheable, properties, pipeline),
        pipeline,
        Breakdown.of(input=wait, device=40.0 - wait),
        CpuContention(crowded=crowded, compute_ms=30.0, cores=2.0),
    )


def finding(*steps: Step, **more: Any) -> Finding:
    verdict = check(*steps, **more)
    assert isinstance(verdict, Finding)
    return verdict


@pytest.mark.parametrize(
    "steps",
    [
        (SOURCE, DECODE),
        (SOURCE, DECODE, CACHE, SHUFFLE, REPEAT),
        (SOURCE, DECODE, CACHE, FLIP, BATCH),  # before the random crop: right
        (SOURCE, DECODE, SHUFFLE, CACHE),  # a wanted order
        (SOURCE, DECODE, take(9), CACHE),
        (SOURCE, DECODE, CACHE, take(1000)),
        (SOURCE, DECODE, CACHE, ("Repeat", {"cardinality": -1}), take(9)),
        (("Generator", {"cardinality": -1}), ENDLESS),  # data without an end
    ],
)  # fmt: skip
def test_the_right_orders_are_healthy(steps: tuple[Step, ...]) -> None:
    assert isinstance(check(*steps), Healthy)


def test_a_cache_after_repeat_costs_all_work_before_it() -> None:
    verdict = finding(SOURCE, DECODE, REPEAT, ENDLESS, SHUFFLE)
    (effect,) = verdict.effects
    assert (effect.scales, effect.bound) == (0.0, Bound.EXPECTED)
    assert verdict.severity is None
    assert verdict.remedies[0].edit_id == "cache-before-repeat"
    assert verdict.remedies[0].at == Location("train.py", 13)
    assert any(
        getattr(item, "label", "") == "memory added to the cache per step"
        for item in verdict.evidence
    )


def test_only_what_is_the_same_in_every_pass_is_priced() -> None:
    verdict = finding(SOURCE, DECODE, FLIP, REPEAT, ENDLESS)
    assert [effect.subject for effect in verdict.effects] == ["Root::Prefetch::1"]
    assert "before flip" in verdict.remedies[0].action
    assert not verdict.remedies[0].edit_id


def test_a_function_between_repeat_and_cache_needs_a_hand() -> None:
    endless = mapped("DecodePng", cardinality=-1)
    assert not finding(SOURCE, REPEAT, endless, ENDLESS).remedies[0].edit_id


def test_a_step_that_does_not_wait_still_grows() -> None:
    verdict = finding(SOURCE, DECODE, REPEAT, ENDLESS, wait=0.0)
    assert not verdict.effects
    assert verdict.severity is Severity.NOTE


def test_work_on_crowded_cores_counts_without_a_wait() -> None:
    verdict = finding(SOURCE, DECODE, REPEAT, ENDLESS, wait=0.0, crowded=True)
    assert [effect.stage for effect in verdict.effects] == [Stage.DEVICE]


@pytest.mark.parametrize(
    ("passes", "kind"), [(1.0, Healthy), (1.9, Healthy), (2.0, Finding), (None, Finding)]
)
def test_a_single_pass_reads_no_cache(passes: float | None, kind: type) -> None:
    assert isinstance(check(SOURCE, DECODE, REPEAT, ENDLESS, passes=passes), kind)


def test_unknown_passes_make_an_upper_bound() -> None:
    verdict = finding(SOURCE, DECODE, REPEAT, ENDLESS, passes=None)
    assert {effect.bound for effect in verdict.effects} == {Bound.AT_MOST}


def test_a_shorter_take_discards_the_cache() -> None:
    verdict = finding(SOURCE, DECODE, CACHE, take(999))
    assert "take(999)" in verdict.summary
    assert len(verdict.effects) == 1


@pytest.mark.parametrize(
    ("passes", "kind"), [(None, NotApplicable), (1.9, Healthy), (2.0, Finding)]
)
def test_a_cache_that_keeps_random_draws(passes: float | None, kind: type) -> None:
    verdict = check(SOURCE, DECODE, FLIP, CACHE, passes=passes)
    assert isinstance(verdict, kind)
    if isinstance(verdict, Finding):
        assert not verdict.effects
        assert "flip" in verdict.summary


def test_a_function_that_is_not_understood_is_not_called_right() -> None:
    kind, more = mapped("PyFunc", name="load")
    verdict = check(SOURCE, (kind, more | {"python": True}), CACHE)
    assert isinstance(verdict, NotApplicable)
    assert "load" in verdict.reason


def test_a_dataset_that_is_rebuilt_discards_its_cache() -> None:
    assert isinstance(check(SOURCE, DECODE, CACHE, remade=True), NotApplicable)


def test_without_a_trace_the_order_is_judged_all_the_same() -> None:
    chain = [Dataset(id=0, kind="_RepeatDataset", cardinality=-1)]
    chain += [Dataset(id=1, kind="CacheDataset", inputs=(0,), cardinality=-1)]
    properties = DatasetProperties(tuple(reversed(chain)))
    cacheable, missing = Cacheable.measure(properties), Unavailable("no trace")
    verdict = cache_order.check(cacheable, properties, missing, None, None, None)
    assert isinstance(verdict, Finding)
    assert verdict.severity is Severity.NOTE
