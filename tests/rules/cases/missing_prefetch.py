"""The cases of missing-prefetch: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.missing_prefetch import check


def example(*stages: StageTime, wait: float = 10.0, cores: Cores | None = Cores(4.0, busy=1.0)) -> Verdict:
    """A map of 10 ms runs right before the training loop, without prefetch."""
    pipeline = InputPipeline.of(*(stages or [StageTime.of("Root::Map", 10.0)]))
    return check(pipeline, Breakdown.of(input=wait, device=30.0 - wait), cores)


sick = example


def healthy() -> Verdict:
    """The same map, with a prefetch that tf.data adds by itself."""
    ahead = StageTime.of("Root::Prefetch", name="inject/prefetch_MapDataset/_3")
    return example(ahead, StageTime.of("Root::Prefetch::Map", 10.0), wait=0.0, cores=None)
