"""shuffle-order: shuffles that mix examples only partly; usual orders are healthy."""

from tests.rules.kit import *
from tfdoctor.rules.input import shuffle_order
from tfdoctor.rules.input.shuffle_order import check
from tfdoctor.terms.units import nbytes


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


REPEAT = dataset_of("Repeat", parameters=DatasetParameters(count=-1), cardinality=-1)
MAP = dataset_of("ParallelMap", function="f", function_at=Location("t.py", 3), cardinality=5000)
PREFETCH = dataset_of("Prefetch", parameters=DatasetParameters(buffer_size=-1), cardinality=5000)
CACHE = dataset_of("Cache", cardinality=5000)


def finding(*steps: Dataset, passes: float | None = None) -> Finding:
    return as_finding(example(*steps, passes=passes))


def of_buffer(size: int, **more: Any) -> Dataset:
    return replace(SHUFFLE, parameters=DatasetParameters(buffer_size=size), **more)


def test_the_usual_orders_are_healthy() -> None:
    """A pipeline without a shuffle is not told to have one; sequences that a batch cut are examples, as in the
    guide on text generation: batch(length + 1), split, shuffle, batch(64); so is a batch of one."""
    one = replace(BATCH, parameters=DatasetParameters(batch_size=1))
    for steps in (
        (SOURCE, SHUFFLE, BATCH, PREFETCH),
        (SOURCE, SHUFFLE, REPEAT, MAP, BATCH, PREFETCH),
        (SOURCE, MAP, CACHE, SHUFFLE, BATCH, REPEAT, PREFETCH),
        (SOURCE, SHUFFLE, MAP, BATCH, MAP),
        (dataset_of("TextLine"), replace(SHUFFLE, cardinality=None)),
        (SOURCE, BATCH),
        (SOURCE, BATCH, MAP, SHUFFLE, BATCH, PREFETCH),
        (SOURCE, one, SHUFFLE),
    ):
        assert isinstance(example(*steps), Healthy)


def test_batches_shuffled_as_a_whole_are_found() -> None:
    verdict = finding(SOURCE, MAP, BATCH, SHUFFLE, PREFETCH)
    assert "after batch(32)" in verdict.summary
    assert "the same 32 examples" in verdict.summary
    (remedy, *_) = verdict.remedies
    assert (remedy.code, remedy.at) == ("dataset = dataset.shuffle(5000).batch(32)", Location("train.py", 23))
    assert (verdict.severity, verdict.effects) == (Severity.NOTE, ())  # it promises no time
    assert "the same" not in finding(SOURCE, REPEAT, BATCH, SHUFFLE).summary


def test_epochs_that_overlap_are_found() -> None:
    verdict = finding(SOURCE, MAP, REPEAT, SHUFFLE, BATCH)
    assert "after repeat()" in verdict.summary
    assert first_code(verdict) == "dataset = dataset.shuffle(1000).repeat()"


def test_a_single_pass_overlaps_with_no_other() -> None:
    found = [example(SOURCE, REPEAT, SHUFFLE, BATCH, passes=passes) for passes in (1.01, 1.0, None)]
    assert kinds(*found) == [Finding, Healthy, Finding]
    repeats = (replace(REPEAT, parameters=DatasetParameters(count=n), cardinality=5000) for n in (1, 2))
    assert kinds(*(example(SOURCE, repeat, SHUFFLE, BATCH) for repeat in repeats)) == [Healthy, Finding]


def test_a_buffer_of_less_than_a_hundredth() -> None:
    assert [type(example(SOURCE, of_buffer(size), BATCH)) for size in (49, 50)] == [Finding, Healthy]


def test_the_memory_of_a_full_buffer_is_evidence_if_it_is_known() -> None:
    element = "TensorSpec(shape=(25,), dtype=tf.float32, name=None)"
    verdict = finding(SOURCE, of_buffer(5, element=element))
    measures = [item for item in verdict.evidence if isinstance(item, Measure)]

    assert [measure.value for measure in measures] == [ratio(0.001), nbytes(100.0 * 5000)]


def test_what_other_stages_may_mix_is_not_judged() -> None:
    """A library's either: image_dataset_from_directory has file names in random order before its small shuffle."""
    load = dataset_of("Map", function="<lambda>", cardinality=5000)
    for steps in (
        (SOURCE, SHUFFLE, BATCH, SHUFFLE),
        (SOURCE, dataset_of("ParallelInterleave", function="f"), BATCH, SHUFFLE),
        (dataset_of("FlatMap", function="generator"), BATCH, SHUFFLE),
        (SOURCE, BATCH, SHUFFLE, dataset_of("Unbatch")),
        (SOURCE, load, of_buffer(8), BATCH),
    ):
        assert isinstance(example(*steps), NotApplicable)
    pair, shuffle = Dataset(id=2, kind="_ZipDataset", inputs=(0, 1)), of_buffer(1, id=3, inputs=(2,))
    assert isinstance(shuffle_order.check(DatasetProperties((shuffle, pair))), NotApplicable)  # sources that meet
