"""The cases of uncached-preprocessing: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.input.cacheable import Cacheable, RepeatedWork
from tfdoctor.rules.input.uncached_preprocessing import RepeatablePrefix, RepeatablePrefixes, check

DECODE = Dataset(
    id=1, kind="_MapDataset", inputs=(0,), function="decode", function_at=Location("train.py", 9),
    at=Location("train.py", 20), cardinality=1000, types=frozenset(("DecodePng",)), stateful=frozenset(),
    element="TensorSpec(shape=(2000,), dtype=tf.float32, name=None)",
)  # fmt: skip


SOURCE = dataset_of("TensorSlice", cardinality=1000)


def example(  # noqa: PLR0913 - what the rule takes
    *datasets: Dataset,
    passes: float | None = 10.0,
    work: float = 40.0,
    wait: float = 30.0,
    memory: HostMemory | Unavailable = HostMemory(total=16e9, used=4e9),
    contention: CpuContention = CpuContention(crowded=False),
    fit_at: Location | None = None,
    prefixes: tuple[RepeatablePrefix, ...] = (),
    idle: tuple[Dataset, ...] = (),
    starts: PassStarts | None = None,
) -> Verdict:
    """Decoding 8 MB of images takes 40 ms per step, in each of ten epochs."""
    chain = tuple(reversed(datasets or (SOURCE, DECODE)))
    properties = DatasetProperties(chain, passes, fit_at=fit_at)
    stages = (
        StageTime.of(f"Root::Prefetch::{made.id}", work, kind="Map", dataset=made)
        for made in reversed(chain)
        if made.function and made not in idle
    )
    pipeline = InputPipeline.of(StageTime.of("Root::Prefetch"), *stages)
    pipeline, cacheable = replace(pipeline, idle=idle), Cacheable.measure(properties)
    repeated = RepeatedWork.measure(cacheable, properties, pipeline)
    step = Breakdown.of(input=wait, device=40.0 - wait)
    facts = (cacheable, properties, pipeline, repeated, RepeatablePrefixes(prefixes), step)
    return check(*facts, memory, contention, starts)


sick = example


def healthy() -> Verdict:
    """The same pipeline in a run of a single epoch."""
    return example(passes=1.0)
