"""cache-order: caches that are never complete, and caches that keep random draws."""

from tests.rules.kit import *
from tfdoctor.facts.input.cacheable import RepeatedWork
from tfdoctor.rules.input import cache_order


def example(
    *stages: Dataset, passes: float | None = 10.0, work: float = 40.0, calls: float = 0.0, wait: float = 30.0,
    crowded: bool = False, remade: bool = False,
) -> Verdict:  # fmt: skip
    """A decode of 40 ms per step is repeated for ever, because the cache stands after repeat()."""
    chain = chained(*(stages or (SOURCE, DECODE, REPEAT, ENDLESS)), first=19)
    properties = DatasetProperties(chain, passes, remade)
    cacheable = Cacheable.measure(properties)
    ran = [(one, work if one.function else 0.0) for one in chain if one.function or calls]
    times = [
        StageTime.of(f"Root::Prefetch::{one.id}", taken, kind="Map", dataset=one, calls=calls or 1.0)
        for one, taken in ran
    ]
    pipeline = InputPipeline.of(StageTime.of("Root::Prefetch"), *times)
    return cache_order.check(
        cacheable,
        properties,
        RepeatedWork.measure(cacheable, properties, pipeline),
        pipeline,
        Breakdown.of(input=wait, device=40.0 - wait),
        CpuContention(crowded=crowded, compute_ms=30.0, cores=2.0),
    )


def mapped(*types: str, name: str = "decode", cardinality: int = 1000) -> Dataset:
    """Build a map whose function runs operations of these types."""
    return dataset_of(
        "Map",
        function=name,
        function_at=Location("train.py", 9),
        types=frozenset(types),
        stateful=frozenset(kind for kind in types if "Random" in kind),
        cardinality=cardinality,
        element=ELEMENT,
    )


ELEMENT = "TensorSpec(shape=(2000,), dtype=tf.float32, name=None)"

SOURCE = dataset_of("TensorSlice", cardinality=1000)

DECODE = mapped("DecodePng")

REPEAT = dataset_of("Repeat", cardinality=-1, parameters=DatasetParameters(count=-1))

CACHE = dataset_of("Cache", cardinality=1000, element=ELEMENT)

ENDLESS = replace(CACHE, cardinality=-1)

sick = example


def healthy() -> Verdict:
    """The cache stands before repeat()."""
    return example(SOURCE, DECODE, CACHE, REPEAT)


FLIP = mapped("RandomUniform", name="flip")
SHUFFLE = dataset_of("Shuffle", cardinality=1000)
BATCH = dataset_of("Batch", parameters=DatasetParameters(batch_size=10), cardinality=100)
check = partial(example, work=10.0, calls=10.0, passes=4.0)


def take(count: int) -> Dataset:
    return dataset_of("Take", parameters=DatasetParameters(count=count), cardinality=count)


def finding(*steps: Dataset, **more: Any) -> Finding:
    return as_finding(check(*steps, **more))


LOAD = replace(mapped("PyFunc", name="load"), python=True)
LATE, RANDOM = (SOURCE, DECODE, REPEAT, ENDLESS), (SOURCE, DECODE, FLIP, CACHE)

test_the_order_and_the_passes_decide = each_is(
    (check(SOURCE, DECODE), Healthy),
    (check(SOURCE, DECODE, CACHE, SHUFFLE, REPEAT), Healthy),
    (check(SOURCE, DECODE, CACHE, FLIP, BATCH), Healthy),  # before the random crop: right
    (check(SOURCE, DECODE, SHUFFLE, CACHE), Healthy),  # a wanted order
    (check(SOURCE, DECODE, take(9), CACHE), Healthy),
    (check(SOURCE, DECODE, CACHE, take(1000)), Healthy),
    (check(SOURCE, DECODE, CACHE, dataset_of("Repeat", cardinality=-1), take(9)), Healthy),
    (check(dataset_of("Generator", cardinality=-1), ENDLESS), Healthy),  # data without an end
    (check(*LATE, passes=1.0), Healthy),  # a single pass reads no cache
    (check(*LATE, passes=1.9), Healthy),
    (check(*LATE, passes=2.0), Finding),
    (check(*LATE, passes=None), Finding),
    (check(*RANDOM, passes=None), NotApplicable),
    (check(*RANDOM, passes=1.9), Healthy),
    (check(*RANDOM, passes=2.0), Finding),
    (check(SOURCE, LOAD, CACHE), NotApplicable, "load"),  # a function that is not understood
    (check(SOURCE, DECODE, CACHE, remade=True), NotApplicable),  # rebuilt: its cache is discarded
)


def test_a_cache_after_repeat_costs_all_work_before_it() -> None:
    verdict = finding(SOURCE, DECODE, REPEAT, ENDLESS, SHUFFLE)
    (effect,) = verdict.effects
    assert (effect.scales, effect.bound) == (0.0, Bound.EXPECTED)
    assert verdict.severity is None
    assert verdict.remedies[0].edit_id == "cache-before-repeat"
    assert verdict.remedies[0].at == Location("train.py", 22)
    assert figures(verdict, "memory added to the cache per step")


def test_only_what_is_the_same_in_every_pass_is_priced() -> None:
    verdict = finding(SOURCE, DECODE, FLIP, REPEAT, ENDLESS)
    assert [effect.subject for effect in verdict.effects] == ["Root::Prefetch::1"]
    assert "before flip" in verdict.remedies[0].action
    assert not verdict.remedies[0].edit_id
    between = mapped("DecodePng", cardinality=-1)  # a function between repeat and cache needs a hand, too
    assert not finding(SOURCE, REPEAT, between, ENDLESS).remedies[0].edit_id


def test_a_step_that_does_not_wait_still_grows() -> None:
    verdict = finding(*LATE, wait=0.0)
    assert not verdict.effects
    assert verdict.severity is Severity.NOTE
    crowded = finding(*LATE, wait=0.0, crowded=True)
    assert [effect.stage for effect in crowded.effects] == [Stage.DEVICE]


def test_a_shorter_take_discards_the_cache() -> None:
    verdict = finding(SOURCE, DECODE, CACHE, take(999))
    assert "take(999)" in verdict.summary
    assert len(verdict.effects) == 1


def test_a_cache_that_keeps_random_draws_has_no_price_and_unknown_passes_a_ceiling() -> None:
    verdict = finding(*RANDOM)
    assert not verdict.effects
    assert "flip" in verdict.summary
    assert {effect.bound for effect in finding(*LATE, passes=None).effects} == {Bound.AT_MOST}


def test_without_a_trace_the_order_is_judged_all_the_same() -> None:
    properties = DatasetProperties(chained(REPEAT, ENDLESS))
    cacheable, missing = Cacheable.measure(properties), Unavailable("no trace")
    verdict = as_finding(cache_order.check(cacheable, properties, missing, None, None, None))
    assert verdict.severity is Severity.NOTE
