"""cache-order: caches that are never complete, and caches that keep random draws."""

from tests.rules.kit import *
from tfdoctor.rules.input import cache_order

ELEMENT = "TensorSpec(shape=(2000,), dtype=tf.float32, name=None)"
SOURCE = dataset_of("TensorSlice", cardinality=1000)
REPEAT = dataset_of("Repeat", cardinality=-1, parameters=DatasetParameters(count=-1))
CACHE = dataset_of("Cache", cardinality=1000, element=ELEMENT)
ENDLESS = replace(CACHE, cardinality=-1)
SHUFFLE = dataset_of("Shuffle", cardinality=1000)
BATCH = dataset_of("Batch", parameters=DatasetParameters(batch_size=10), cardinality=100)


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
        stage_time(f"Root::Prefetch::{one.id}", taken, kind="Map", dataset=one, calls=calls or 1.0)
        for one, taken in ran
    ]
    pipeline = InputPipeline.of(PREFETCH, *times)
    repeated = RepeatedWork.measure(cacheable, properties, pipeline)
    step, contention = Breakdown.of(input=wait, device=40.0 - wait), CpuContention(crowded, 2.0, 30.0)
    return cache_order.check(cacheable, properties, repeated, pipeline, step, contention)


def mapped(*types: str, name: str = "decode", cardinality: int = 1000) -> Dataset:
    """Build a map whose function runs operations of these types."""
    kinds = {"types": frozenset(types), "stateful": frozenset(kind for kind in types if "Random" in kind)}
    more = {"cardinality": cardinality, "element": ELEMENT, "function_at": script(9)}
    return dataset_of("Map", function=name, **kinds, **more)


def take(count: int) -> Dataset:
    return dataset_of("Take", parameters=DatasetParameters(count=count), cardinality=count)


DECODE = mapped("DecodePng")
sick = example
healthy = described("The cache stands before repeat().", example, SOURCE, DECODE, CACHE, REPEAT)
FLIP = mapped("RandomUniform", name="flip")
check = partial(example, work=10.0, calls=10.0, passes=4.0)
LOAD = replace(mapped("PyFunc", name="load"), python=True)
LATE, RANDOM = (SOURCE, DECODE, REPEAT, ENDLESS), (SOURCE, DECODE, FLIP, CACHE)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a cache after repeat costs all work before it"] = check(SOURCE, DECODE, REPEAT, ENDLESS, SHUFFLE)
    told["no cache"] = check(SOURCE, DECODE)
    told["a cache before shuffle and crop, and after shuffle"] = check(SOURCE, DECODE, CACHE, SHUFFLE, REPEAT)
    told[...] = check(SOURCE, DECODE, CACHE, FLIP, BATCH), check(SOURCE, DECODE, SHUFFLE, CACHE)
    told["take before the cache, of all elements, and after repeat"] = check(SOURCE, DECODE, take(9), CACHE)
    told[...] = check(SOURCE, DECODE, CACHE, take(1000))
    told[...] = check(SOURCE, DECODE, CACHE, dataset_of("Repeat", cardinality=-1), take(9))
    told["a shorter take discards the cache"] = check(SOURCE, DECODE, CACHE, take(999))
    told["data without an end"] = check(dataset_of("Generator", cardinality=-1), ENDLESS)
    told["a late cache: one pass, two, and unknown"] = [
        check(*LATE, passes=passes) for passes in (1.0, 1.9, 2.0, None)
    ]
    told["a cache that keeps random draws has no price"] = [check(*RANDOM, passes=n) for n in (1.9, 2.0, None)]
    told["a function that is not understood"] = check(SOURCE, LOAD, CACHE)
    told["a dataset that is made anew, whose cache is discarded"] = check(SOURCE, DECODE, CACHE, remade=True)
    told["only what is the same in every pass is priced"] = check(SOURCE, DECODE, FLIP, REPEAT, ENDLESS)
    between = mapped("DecodePng", cardinality=-1)
    told["a function between repeat and cache needs a hand"] = check(SOURCE, REPEAT, between, ENDLESS)
    told["a step that does not wait still grows, and the cores are crowded"] = check(*LATE, wait=0.0, crowded=False)
    told[...] = check(*LATE, wait=0.0, crowded=True)
    properties = DatasetProperties(chained(REPEAT, ENDLESS))
    cacheable, missing = Cacheable.measure(properties), Unavailable("no trace")
    told["without a trace the order counts"] = cache_order.check(cacheable, properties, missing, None, None, None)
