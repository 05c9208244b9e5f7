"""shuffle-order: shuffles that mix examples only partly; usual orders are healthy."""

import pytest

from tests.rules.cases.shuffle_order import BATCH, SHUFFLE, SOURCE, example
from tests.rules.kit import *
from tfdoctor.rules import shuffle_order
from tfdoctor.terms.units import nbytes

REPEAT = dataset_of("Repeat", parameters=DatasetParameters(count=-1), cardinality=-1)
MAP = dataset_of("ParallelMap", function="f", function_at=Location("t.py", 3), cardinality=5000)
PREFETCH = dataset_of("Prefetch", parameters=DatasetParameters(buffer_size=-1), cardinality=5000)
CACHE = dataset_of("Cache", cardinality=5000)


def finding(*steps: Dataset, passes: float | None = None) -> Finding:
    return as_finding(example(*steps, passes=passes))


def of_buffer(size: int, **more: Any) -> Dataset:
    return replace(SHUFFLE, parameters=DatasetParameters(buffer_size=size), **more)


@pytest.mark.parametrize(
    "steps",
    [
        (SOURCE, SHUFFLE, BATCH, PREFETCH),
        (SOURCE, SHUFFLE, REPEAT, MAP, BATCH, PREFETCH),
        (SOURCE, MAP, CACHE, SHUFFLE, BATCH, REPEAT, PREFETCH),
        (SOURCE, SHUFFLE, MAP, BATCH, MAP),
        (dataset_of("TextLine"), replace(SHUFFLE, cardinality=None)),
    ],
)  # fmt: skip
def test_the_usual_orders_are_healthy(steps: tuple[Dataset, ...]) -> None:
    assert isinstance(example(*steps), Healthy)


def test_batches_shuffled_as_a_whole_are_found() -> None:
    verdict = finding(SOURCE, MAP, BATCH, SHUFFLE, PREFETCH)

    assert "after batch(32)" in verdict.summary
    assert "the same 32 examples" in verdict.summary
    assert verdict.remedies[0].code == "dataset = dataset.shuffle(5000).batch(32)"
    assert verdict.remedies[0].at == Location("train.py", 23)


def test_batches_of_repeated_data_need_not_be_the_same() -> None:
    assert "the same" not in finding(SOURCE, REPEAT, BATCH, SHUFFLE).summary


def test_sequences_that_were_cut_by_a_batch_are_examples() -> None:
    """As in the guide on text generation: batch(length + 1), split, shuffle, batch(64)."""
    assert isinstance(example(SOURCE, BATCH, MAP, SHUFFLE, BATCH, PREFETCH), Healthy)


def test_a_batch_of_one_example_is_an_example() -> None:
    one = replace(BATCH, parameters=DatasetParameters(batch_size=1))
    assert isinstance(example(SOURCE, one, SHUFFLE), Healthy)


def test_epochs_that_overlap_are_found() -> None:
    verdict = finding(SOURCE, MAP, REPEAT, SHUFFLE, BATCH)

    assert "after repeat()" in verdict.summary
    assert verdict.remedies[0].code == "dataset = dataset.shuffle(1000).repeat()"


@pytest.mark.parametrize(("passes", "kind"), [(1.01, Finding), (1.0, Healthy), (None, Finding)])
def test_a_single_pass_overlaps_with_no_other(passes: float | None, kind: type) -> None:
    assert isinstance(example(SOURCE, REPEAT, SHUFFLE, BATCH, passes=passes), kind)


@pytest.mark.parametrize(("times", "kind"), [(1, Healthy), (2, Finding)])
def test_a_repetition_of_one_is_none(times: int, kind: type) -> None:
    repeat = replace(REPEAT, parameters=DatasetParameters(count=times), cardinality=5000)
    assert isinstance(example(SOURCE, repeat, SHUFFLE, BATCH), kind)


def test_a_buffer_of_less_than_a_hundredth() -> None:
    assert [type(example(SOURCE, of_buffer(size), BATCH)) for size in (49, 50)] == [Finding, Healthy]


def test_the_memory_of_a_full_buffer_is_evidence_if_it_is_known() -> None:
    element = "TensorSpec(shape=(25,), dtype=tf.float32, name=None)"
    verdict = finding(SOURCE, of_buffer(5, element=element))
    measures = [item for item in verdict.evidence if isinstance(item, Measure)]

    assert [measure.value for measure in measures] == [ratio(0.001), nbytes(100.0 * 5000)]


@pytest.mark.parametrize(
    "steps",
    [
        (SOURCE, SHUFFLE, BATCH, SHUFFLE),
        (SOURCE, dataset_of("ParallelInterleave", function="f"), BATCH, SHUFFLE),
        (dataset_of("FlatMap", function="generator"), BATCH, SHUFFLE),
        (SOURCE, BATCH, SHUFFLE, dataset_of("Unbatch")),
    ],
)
def test_what_other_stages_may_mix_is_not_judged(steps: tuple[Dataset, ...]) -> None:
    assert isinstance(example(*steps), NotApplicable)


def test_pipelines_that_a_library_builds_are_not_judged() -> None:
    """image_dataset_from_directory has the file names in random order before its small shuffle."""
    load = dataset_of("Map", function="<lambda>", cardinality=5000)
    assert isinstance(example(SOURCE, load, of_buffer(8), BATCH), NotApplicable)


def test_sources_that_meet_are_not_judged() -> None:
    pair = Dataset(id=2, kind="_ZipDataset", inputs=(0, 1))
    shuffle = of_buffer(1, id=3, inputs=(2,))
    assert isinstance(shuffle_order.check(DatasetProperties((shuffle, pair))), NotApplicable)


def test_a_pipeline_without_a_shuffle_is_not_told_to_have_one() -> None:
    assert isinstance(example(SOURCE, BATCH), Healthy)


def test_it_is_a_note_and_promises_no_time() -> None:
    verdict = finding(SOURCE, BATCH, SHUFFLE)
    assert verdict.severity is Severity.NOTE
    assert not verdict.effects
