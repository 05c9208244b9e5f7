"""shuffle-order: shuffles that mix examples only partly; usual orders are healthy."""

from tests.rules.kit import *
from tfdoctor.rules.input.shuffle_order import check

SOURCE = dataset_of("TensorSlice", cardinality=5000)
BATCH = dataset_of("Batch", cardinality=5000, parameters=DatasetParameters(batch_size=32))
SHUFFLE = dataset_of("Shuffle", cardinality=5000, parameters=DatasetParameters(buffer_size=1000))
REPEAT = dataset_of("Repeat", parameters=DatasetParameters(count=-1), cardinality=-1)
MAP = dataset_of("ParallelMap", function="f", function_at=Location("t.py", 3), cardinality=5000)
TUNED = dataset_of("Prefetch", parameters=DatasetParameters(buffer_size=-1), cardinality=5000)
CACHE = dataset_of("Cache", cardinality=5000)


def example(*stages: Dataset, passes: float | None = None) -> Verdict:
    """Batches of 32 examples are shuffled as a whole."""
    chain = stages or (SOURCE, BATCH, SHUFFLE)
    return check(DatasetProperties(chained(*chain), passes))


def of_buffer(size: int, **more: Any) -> Dataset:
    return replace(SHUFFLE, parameters=DatasetParameters(buffer_size=size), **more)


sick = example
healthy = described("Examples are shuffled, then batched.", example, SOURCE, SHUFFLE, BATCH)


@golden_cases
def test_verdicts(told: Cases) -> None:
    # A pipeline without a shuffle is not told to have one; sequences that a batch cut are examples, as in the guide
    # on text generation: batch(length + 1), split, shuffle, batch(64); so is a batch of one
    usual = (
        (SOURCE, SHUFFLE, BATCH, TUNED),
        (SOURCE, SHUFFLE, REPEAT, MAP, BATCH, TUNED),
        (SOURCE, MAP, CACHE, SHUFFLE, BATCH, REPEAT, TUNED),
        (SOURCE, SHUFFLE, MAP, BATCH, MAP),
        (dataset_of("TextLine"), replace(SHUFFLE, cardinality=None)),
        (SOURCE, BATCH),
        (SOURCE, BATCH, MAP, SHUFFLE, BATCH, TUNED),
        (SOURCE, replace(BATCH, parameters=DatasetParameters(batch_size=1)), SHUFFLE),
    )
    told["the usual orders"] = [example(*steps) for steps in usual]
    told["other stages around them"] = example(SOURCE, MAP, BATCH, SHUFFLE, TUNED)
    told["batches of a repetition differ in each epoch"] = example(SOURCE, REPEAT, BATCH, SHUFFLE)
    told["epochs that overlap"] = example(SOURCE, MAP, REPEAT, SHUFFLE, BATCH)
    told["a single pass overlaps with no other"] = [
        example(SOURCE, REPEAT, SHUFFLE, BATCH, passes=passes) for passes in (1.01, 1.0, None)
    ]
    for count in (1, 2):
        repeat = replace(REPEAT, parameters=DatasetParameters(count=count), cardinality=5000)
        told[f"repeat({count})"] = example(SOURCE, repeat, SHUFFLE, BATCH)
    told["a buffer of less than a hundredth, and as much"] = example(SOURCE, of_buffer(49), BATCH)
    told[...] = example(SOURCE, of_buffer(50), BATCH)
    element = "TensorSpec(shape=(25,), dtype=tf.float32, name=None)"
    told["the memory of a full buffer is evidence if it is known"] = example(SOURCE, of_buffer(5, element=element))
    told["a shuffle before the batch as well"] = example(SOURCE, SHUFFLE, BATCH, SHUFFLE)
    interleave = dataset_of("ParallelInterleave", function="f")
    told["an interleave may mix"] = example(SOURCE, interleave, BATCH, SHUFFLE)
    told["a generator may mix"] = example(dataset_of("FlatMap", function="generator"), BATCH, SHUFFLE)
    told["batches that are taken apart"] = example(SOURCE, BATCH, SHUFFLE, dataset_of("Unbatch"))
    load = dataset_of("Map", function="<lambda>", cardinality=5000)
    told["image_dataset_from_directory shuffles names before"] = example(SOURCE, load, of_buffer(8), BATCH)
    pair, shuffle = Dataset(id=2, kind="_ZipDataset", inputs=(0, 1)), of_buffer(1, id=3, inputs=(2,))
    told["sources that meet"] = check(DatasetProperties((shuffle, pair)))
