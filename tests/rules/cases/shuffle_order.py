"""The cases of shuffle-order: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.shuffle_order import check


def example(*stages: Dataset, passes: float | None = None) -> Verdict:
    """Batches of 32 examples are shuffled as a whole."""
    chain = stages or (SOURCE, BATCH, SHUFFLE)
    return check(DatasetProperties(chained(*chain), passes))


SOURCE = dataset_of("TensorSlice", cardinality=5000)


BATCH = dataset_of("Batch", cardinality=5000, parameters=DatasetParameters(batch_size=32))


SHUFFLE = dataset_of("Shuffle", cardinality=5000, parameters=DatasetParameters(buffer_size=1000))


sick = example


def healthy() -> Verdict:
    """Examples are shuffled, then batched."""
    return example(SOURCE, SHUFFLE, BATCH)
