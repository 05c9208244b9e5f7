"""uncached-preprocessing: identical work in every epoch, whose output a cache could store."""

import pytest

from tests.rules.cases.uncached_preprocessing import SOURCE, example
from tests.rules.kit import *
from tfdoctor.facts.input.cacheable import Cacheable, CacheablePart
from tfdoctor.facts.input.map_functions import FunctionGraphs
from tfdoctor.recording.program import RecordedGraph, RecordedOperation
from tfdoctor.rules.uncached_preprocessing import RepeatablePrefix, RepeatablePrefixes

SPEC = "TensorSpec(shape=(250,), dtype=tf.float32, name=None)"


def stage(number: int, kind: str, **more: Any) -> Dataset:
    return dataset_of(kind, **{"id": number, "inputs": (number - 1,), **more})


def mapped(number: int, *types: str, name: str = "decode", **more: Any) -> Dataset:
    parts = {
        "function": name,
        "function_at": Location("train.py", 9),
        "at": Location("train.py", 20 + number),
        "element": SPEC,
        "types": frozenset(types),
        "stateful": frozenset(name for name in types if "Random" in name),
    }
    return stage(number, "Map", **(parts | more))


CROWDED = CpuContention(crowded=True, cores=1.0, compute_ms=38.0, beside=0.95)
ALONE, UNKNOWN = CpuContention(crowded=False), CpuContention(crowded=None)
check = partial(example, passes=4.0, work=10.0, memory=HostMemory(total=10e6, used=6e6))


def subjects(verdict: Verdict) -> list[str]:
    assert isinstance(verdict, Finding)
    return [effect.subject.rpartition("::")[2] for effect in verdict.effects]


def test_a_function_that_gives_the_same_is_found() -> None:
    verdict = as_finding(check(SOURCE, mapped(1, "DecodePng")))
    assert verdict.remedies[0].at == Location("train.py", 21)
    assert verdict.remedies[0].edit_id == "cache"
    assert "map(decode," in verdict.remedies[0].code


def test_only_what_comes_before_a_random_function() -> None:
    verdict = check(SOURCE, mapped(1, "DecodePng"), mapped(2, "RandomUniform", name="flip"))
    assert subjects(verdict) == ["1"]


def test_a_cache_after_a_random_function_is_not_advised() -> None:
    """It would freeze the augmentation."""
    verdict = as_healthy(check(SOURCE, mapped(1, "RandomUniform", name="flip"), mapped(2, "DecodePng")))
    assert "flip" in verdict.summary


def test_work_before_an_existing_cache_is_healthy() -> None:
    assert isinstance(check(SOURCE, mapped(1, "DecodePng"), stage(2, "Cache")), Healthy)


def test_a_cache_that_froze_the_augmentation_is_mentioned() -> None:
    random = mapped(1, "RandomUniform", name="flip")
    assert "flip" in as_healthy(check(SOURCE, random, stage(2, "Cache"))).summary


def test_work_after_a_cache_is_found() -> None:
    verdict = check(SOURCE, mapped(1, "Mul"), stage(2, "Cache"), mapped(3, "DecodePng"))
    assert subjects(verdict) == ["3"]


@pytest.mark.parametrize("kind", ["Shuffle", "Repeat"])
def test_a_shuffle_or_repetition_before_must_move_behind(kind: str) -> None:
    verdict = as_finding(check(SOURCE, stage(1, kind), mapped(2, "DecodePng")))
    assert kind.lower() in verdict.remedies[0].action
    assert f".{kind.lower()}(" in verdict.remedies[0].code
    assert verdict.remedies[0].edit_id == "cache"


@pytest.mark.parametrize(("kind", "of"), [("Shuffle", Healthy), ("Prefetch", Finding)])
def test_batches_of_shuffled_elements_differ_each_time(kind: str, of: type) -> None:
    batch = stage(2, "Batch", parameters=DatasetParameters(batch_size=10), cardinality=100)
    assert isinstance(check(SOURCE, stage(1, kind), batch, mapped(3, "DecodePng")), of)


def test_a_shuffle_that_is_the_same_each_time_may_stay() -> None:
    fixed = stage(1, "Shuffle", parameters=DatasetParameters(reshuffle_each_iteration=False))
    verdict = as_finding(check(SOURCE, fixed, mapped(2, "DecodePng")))
    assert "shuffle" not in verdict.remedies[0].code


def test_one_pass_gains_nothing() -> None:
    kinds = [type(check(SOURCE, mapped(1, "DecodePng"), passes=passes)) for passes in (None, 1.0, 1.9, 2.0)]
    assert kinds == [NotApplicable, Healthy, Healthy, Finding]


@pytest.mark.parametrize(("used", "kind"), [(8e6, Finding), (8.1e6, Healthy)])
def test_a_megabyte_must_fit_into_half_of_the_free_memory(used: float, kind: type) -> None:
    memory = HostMemory(total=10e6, used=used)
    assert isinstance(check(SOURCE, mapped(1, "DecodePng"), memory=memory), kind)


def test_unknown_memory_is_no_room() -> None:
    verdict = as_not_applicable(check(SOURCE, mapped(1, "DecodePng"), memory=Unavailable("no memory was sampled")))
    assert "no memory was sampled" in verdict.reason


@pytest.mark.parametrize(
    "more",
    [
        {"element": "TensorSpec(shape=(None, 3), dtype=tf.uint8, name=None)"},
        {"types": None},
        {"python": True},
        {"types": frozenset(("ReadVariableOp",)), "stateful": frozenset(("ReadVariableOp",))},
    ],
)
def test_what_is_not_known_is_not_advised(more: dict[str, Any]) -> None:
    assert isinstance(check(SOURCE, mapped(1, "DecodePng", **more)), NotApplicable)


def test_files_of_unknown_length_are_not_advised() -> None:
    assert isinstance(check(replace(SOURCE, cardinality=None), mapped(1, "DecodePng")), NotApplicable)


def test_only_a_step_that_waits() -> None:
    assert [type(check(SOURCE, mapped(1, "DecodePng"), wait=wait)) for wait in (2.0, 1.9)] == [Finding, Healthy]


def test_pipelines_that_meet_must_all_give_the_same() -> None:
    labels = Dataset(id=9, kind="_TensorSliceDataset", cardinality=1000)
    shuffled = Dataset(id=8, kind="_ShuffleDataset", inputs=(9,))
    both = Dataset(id=1, kind="_ZipDataset", inputs=(0, 9), cardinality=1000)
    other = Dataset(id=1, kind="_ZipDataset", inputs=(0, 8), cardinality=1000)

    assert isinstance(check(labels, SOURCE, both, mapped(2, "DecodePng")), Finding)
    assert isinstance(check(labels, shuffled, SOURCE, other, mapped(2, "DecodePng")), Healthy)


def test_pipelines_of_keras_fit_are_not_judged() -> None:
    """The user cannot put a cache into the pipeline that fit makes of arrays."""
    assert isinstance(check(SOURCE, mapped(1, "DecodePng", function_at=None), fit_at=FIT), Healthy)


def test_a_function_of_the_users_on_the_line_of_fit_is_judged() -> None:
    assert isinstance(check(SOURCE, mapped(1, "DecodePng"), fit_at=FIT), Finding)


FIT = Location("train.py", 21)


def library(number: int, kind: str, **more: Any) -> Dataset:
    """A stage that image_dataset_from_directory makes on line 21."""
    return stage(number, kind, at=FIT, made_by="image_dataset_from_directory", **more)


def test_what_a_library_returns_is_cached_as_a_whole() -> None:
    batch = library(2, "Batch", parameters=DatasetParameters(batch_size=10))
    decode = mapped(1, "DecodePng", function_at=None, made_by="image_dataset_from_directory")
    verdict = as_finding(check(SOURCE, decode, batch))
    (remedy,) = verdict.remedies
    assert (remedy.at, remedy.edit_id) == (FIT, "cache")
    assert "image_dataset_from_directory()" in verdict.summary
    assert remedy.code.startswith("dataset = image_dataset_from_directory(...)\ndataset = dataset.cache()")


def test_a_library_that_shuffles_must_return_single_examples() -> None:
    batch = library(3, "Batch", parameters=DatasetParameters(batch_size=10))
    decode = mapped(1, "DecodePng", function_at=None, made_by="image_dataset_from_directory")
    verdict = as_finding(check(SOURCE, decode, library(2, "Shuffle"), batch))
    (remedy,) = verdict.remedies
    assert "batch_size=None" in remedy.code
    assert not remedy.edit_id


def test_a_layer_that_the_user_maps_is_the_users() -> None:
    verdict = as_finding(check(SOURCE, mapped(1, "Mul", function_at=None, made_by="map")))
    assert "map(function," in verdict.remedies[0].code


def test_pipelines_that_are_mixed_at_random_are_judged_by_themselves() -> None:
    """sample_from_datasets draws which of them gives the next element."""
    one, other = mapped(1, "DecodePng"), mapped(3, "DecodePng", name="other", inputs=(2,))
    mixed = Dataset(id=4, kind="_DirectedInterleaveDataset", inputs=(1, 3))
    verdict = check(SOURCE, one, replace(SOURCE, id=2), other, mixed, mapped(5, "Mul"))
    assert subjects(verdict) == ["1", "3"]
    assert isinstance(verdict, Finding)
    assert [remedy.at for remedy in verdict.remedies] == [Location("train.py", 21), Location("train.py", 23)]


def test_a_random_branch_leaves_the_others() -> None:
    one, other = mapped(1, "DecodePng"), mapped(3, "RandomUniform", name="noise", inputs=(2,))
    both = Dataset(id=4, kind="_ZipDataset", inputs=(1, 3), cardinality=1000)
    assert subjects(check(SOURCE, one, replace(SOURCE, id=2), other, both)) == ["1"]


def test_the_shorter_side_of_a_zip_may_be_repeated() -> None:
    """timeseries_dataset_from_array repeats the whole series beside the positions in it."""
    series = Dataset(id=7, kind="_TensorDataset", cardinality=1)
    repeated = Dataset(id=8, kind="_RepeatDataset", inputs=(7,), cardinality=-1)
    both = Dataset(id=1, kind="_ZipDataset", inputs=(0, 8), cardinality=1000)
    verdict = as_finding(check(series, repeated, SOURCE, both, mapped(2, "GatherV2", cardinality=1000)))
    assert verdict.remedies[0].edit_id == "cache"


def test_a_branch_that_is_cached_costs_nothing() -> None:
    cached = Dataset(id=8, kind="CacheDataset", inputs=(1,))
    both = Dataset(id=9, kind="_ZipDataset", inputs=(8, 0), cardinality=1000)
    verdict = check(SOURCE, mapped(1, "DecodePng"), cached, both, mapped(2, "Mul", inputs=(9,)))
    assert subjects(verdict) == ["2"]


def test_a_cache_that_is_never_complete_is_another_rules() -> None:
    repeated = stage(2, "Repeat", cardinality=-1)
    cache = stage(3, "Cache", cardinality=-1)
    verdict = as_not_applicable(check(SOURCE, mapped(1, "DecodePng"), repeated, cache))
    assert "cache-order" in verdict.reason


@pytest.mark.parametrize(("contention", "of"), [(CROWDED, Finding), (ALONE, Healthy), (UNKNOWN, NotApplicable)])
def test_work_that_keeps_the_compute_from_the_cores_counts_without_a_wait(
    contention: CpuContention, of: type
) -> None:
    """A CPU computes and makes batches: a step may be slow for work that it never waits for."""
    verdict = check(SOURCE, mapped(1, "DecodePng"), wait=0.0, contention=contention)
    assert isinstance(verdict, of)
    if isinstance(verdict, Finding):
        _, relief = verdict.effects
        assert (relief.stage, relief.bound) == (Stage.DEVICE, Bound.AT_MOST)
        assert relief.scales == pytest.approx(1 - 10.0 * 0.95 / 38.0)


@pytest.mark.parametrize(("cores", "kind"), [(1.3, NotApplicable), (5.2, Healthy), (1.2, Finding)])
def test_between_little_and_a_fifth_of_the_step_only_a_trial_tells(cores: float, kind: type) -> None:
    """Measured: 8 to 13 % of the step in theory saved 15, 3 and -6 % in trials."""
    some = CpuContention(crowded=True, cores=cores, compute_ms=40.0)
    verdict = check(SOURCE, mapped(1, "DecodePng"), wait=0.0, contention=some)
    assert isinstance(verdict, kind)


def prefix(share: float, nbytes: int | None = 1000, **more: Any) -> RepeatablePrefix:
    dataset = mapped(1, "DecodePng", "RandomUniform", name="load", **more)
    work = StageTime(path="Root::Prefetch::1", kind="Map", work_ms=10.0, dataset=dataset)
    return RepeatablePrefix(CacheablePart(dataset, ()), work, share, nbytes, ("DecodePng",))


@pytest.mark.parametrize(("share", "kind"), [(0.5, Finding), (0.49, Healthy)])
def test_most_of_a_random_function_may_come_before_its_first_draw(share: float, kind: type) -> None:
    found = prefix(share)
    verdict = check(SOURCE, found.part.last, prefixes=(found,))
    assert isinstance(verdict, kind)
    if isinstance(verdict, Finding):
        assert verdict.effects[0].scales == 1.0 - share
        assert "load_random" in verdict.remedies[0].code


def test_a_function_is_not_divided_for_cores_alone() -> None:
    """How much the compute gains is a ceiling: a trial that divided such a function gained little."""
    found = prefix(0.99)
    verdict = as_not_applicable(check(SOURCE, found.part.last, prefixes=(found,), wait=0.5, contention=CROWDED))
    assert "only a trial" in verdict.reason


def test_a_division_without_known_size_is_not_advised() -> None:
    found = prefix(0.9, None)
    assert isinstance(check(SOURCE, found.part.last, prefixes=(found,)), NotApplicable)


def measured(*operations: tuple[str, list[int], float]) -> RepeatablePrefix | None:
    """Measure a function by its operations: (type, sources, ms), each with 4000 bytes."""
    names = [f"{kind}_{at}" for at, (kind, _, _) in enumerate(operations)]
    graph = RecordedGraph(
        tuple(
            RecordedOperation(name, kind, outputs=(("float32", (1000,)),), sources=tuple(sources))
            for name, (kind, sources, _) in zip(names, operations, strict=True)
        )
    )
    data = mapped(1, "DecodePng", "RandomUniform", name="load")
    times = {name: ms for name, (_, _, ms) in zip(names, operations, strict=True)}
    work = StageTime(path="Root::1", kind="Map", work_ms=20.0, operations=times, dataset=data)
    properties = DatasetProperties((data, SOURCE), 4.0)
    found = RepeatablePrefixes.measure(
        Cacheable.measure(properties), InputPipeline.of(work), FunctionGraphs({1: graph})
    )
    return found.prefixes[0] if found.prefixes else None


def test_work_before_the_first_draw_is_repeatable() -> None:
    found = measured(
        ("Placeholder", [], 0.0), ("DecodePng", [0], 9.0), ("RandomUniform", [], 0.5), ("Mul", [1, 2], 0.5)
    )
    assert found is not None
    assert (found.share, found.ms, found.nbytes) == (0.9, 18.0, 4000)
    assert found.heaviest == ("DecodePng",)


def test_work_on_a_random_result_is_not_repeatable() -> None:
    found = measured(
        ("Placeholder", [], 0.0), ("RandomUniform", [], 0.5), ("Add", [0, 1], 0.5), ("ResizeBilinear", [2], 9.0)
    )
    assert found is not None
    assert found.share == 0.0


def test_branches_count_as_random() -> None:
    """What they call is not recorded."""
    found = measured(("Placeholder", [], 0.0), ("If", [0], 5.0), ("DecodePng", [1], 5.0))
    assert found is not None
    assert found.share == 0.0


def test_a_result_that_needs_no_draw_is_cached_too() -> None:
    found = measured(("Placeholder", [], 0.0), ("Cast", [0], 5.0), ("RandomUniform", [0], 5.0))
    assert found is not None
    assert found.nbytes == 8000


# Work that only the first step of a pass does

STARTS = PassStarts(7, 30, 392.0, 28.0, 0.25, 12.0)
IDLE = mapped(1, "DepthwiseConv2dNative", name="soften")
SHUFFLE = stage(2, "Shuffle")


def at_starts(*datasets: Dataset, starts: PassStarts | None = STARTS, **more: Any) -> Verdict:
    return check(SOURCE, *datasets, wait=0.1, idle=(IDLE,), starts=starts, **more)


def test_a_map_that_fills_a_shuffle_at_each_pass_is_found() -> None:
    verdict = as_finding(at_starts(IDLE, SHUFFLE))
    assert verdict.summary == (
        "Map(soften) recomputes identical elements every epoch, at the first step of each pass: 392 ms instead of "
        "28.0 ms, 25 % of the training time"
    )
    assert verdict.remedies[0].at == IDLE.at
    assert (verdict.concern, verdict.severity) == (Concern.LONG_STEPS, Severity.CRITICAL)
    assert not verdict.effects  # the typical step does not show it


@pytest.mark.parametrize(("share", "kind"), [(0.051, Finding), (0.049, NotApplicable), (None, NotApplicable)])
def test_the_first_steps_of_passes_must_take_a_share(share: float | None, kind: type) -> None:
    starts = replace(STARTS, share=share) if share else None
    assert isinstance(at_starts(IDLE, SHUFFLE, starts=starts), kind)


def test_a_map_that_did_not_run_for_another_reason_stays_unknown() -> None:
    """A cache holds its output, or no shuffle takes it at once."""
    cached = stage(2, "Cache")
    assert isinstance(at_starts(IDLE, cached, stage(3, "Shuffle")), NotApplicable)
    assert isinstance(at_starts(IDLE), NotApplicable)


def test_a_random_map_at_the_first_step_of_a_pass_has_no_cache() -> None:
    flip = mapped(1, "RandomUniform", name="flip")
    assert isinstance(check(SOURCE, flip, SHUFFLE, wait=0.1, idle=(flip,), starts=STARTS), NotApplicable)


def test_a_map_whose_output_does_not_fit_stays_unknown() -> None:
    full = HostMemory(total=10e6, used=9.9e6)
    assert isinstance(at_starts(IDLE, SHUFFLE, memory=full), NotApplicable)
