"""The cases of cache-order: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.input.cacheable import RepeatedWork
from tfdoctor.rules.input.cache_order import check


def example(
    *stages: Dataset,
    passes: float | None = 10.0,
    work: float = 40.0,
    calls: float = 0.0,
    wait: float = 30.0,
    crowded: bool = False,
    remade: bool = False,
) -> Verdict:
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
    return check(
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
