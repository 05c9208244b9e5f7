"""uncached-preprocessing: identical work in every epoch, whose output a cache could store."""

from tests.rules.kit import *
from tfdoctor.facts.input.cacheable import CacheablePart, RepeatedWork
from tfdoctor.rules.input import uncached_preprocessing
from tfdoctor.rules.input.uncached_preprocessing import RepeatablePrefix, RepeatablePrefixes

EXAMPLE_DECODE = Dataset(
    id=1, kind="_MapDataset", inputs=(0,), function="decode", function_at=Location("train.py", 9),
    at=Location("train.py", 20), cardinality=1000, types=frozenset(("DecodePng",)), stateful=frozenset(),
    element="TensorSpec(shape=(2000,), dtype=tf.float32, name=None)",
)  # fmt: skip


SOURCE = dataset_of("TensorSlice", cardinality=1000)


def example(  # noqa: PLR0913 - what the rule takes
    *datasets: Dataset, passes: float | None = 10.0, work: float = 40.0, wait: float = 30.0,
    memory: HostMemory | Unavailable = HostMemory(total=16e9, used=4e9),
    contention: CpuContention = CpuContention(crowded=False), fit_at: Location | None = None,
    prefixes: tuple[RepeatablePrefix, ...] = (), idle: tuple[Dataset, ...] = (), starts: PassStarts | None = None,
) -> Verdict:  # fmt: skip
    """Decoding 8 MB of images takes 40 ms per step, in each of ten epochs."""
    chain = tuple(reversed(datasets or (SOURCE, EXAMPLE_DECODE)))
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
    return uncached_preprocessing.check(*facts, memory, contention, starts)


sick = example


def healthy() -> Verdict:
    """The same pipeline in a run of a single epoch."""
    return example(passes=1.0)


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
check = partial(example, passes=4.0, work=10.0, memory=HostMemory(total=10e6, used=6e6))


DECODE, FLIP, CACHE = mapped(1, "DecodePng"), mapped(1, "RandomUniform", name="flip"), stage(2, "Cache")


def subjects(verdict: Verdict) -> list[str]:
    return [subject.rpartition("::")[2] for subject in scales(verdict)]


def test_a_function_that_gives_the_same_is_found() -> None:
    (remedy,) = as_finding(check(SOURCE, DECODE)).remedies
    assert (remedy.at, remedy.edit_id) == (Location("train.py", 21), "cache")
    assert "map(decode," in remedy.code


def test_only_what_comes_before_a_random_function_is_cached() -> None:
    """A cache behind it would freeze the augmentation, and one that does is mentioned."""
    assert subjects(check(SOURCE, DECODE, mapped(2, "RandomUniform", name="flip"))) == ["1"]
    for behind in (mapped(2, "DecodePng"), CACHE):
        assert "flip" in as_healthy(check(SOURCE, FLIP, behind)).summary


def test_an_existing_cache_spares_the_work_before_it() -> None:
    assert isinstance(check(SOURCE, DECODE, CACHE), Healthy)
    assert subjects(check(SOURCE, mapped(1, "Mul"), CACHE, mapped(3, "DecodePng"))) == ["3"]


def test_a_shuffle_or_repetition_before_must_move_behind() -> None:
    for kind in ("Shuffle", "Repeat"):
        (remedy,) = as_finding(check(SOURCE, stage(1, kind), mapped(2, "DecodePng"))).remedies
        assert kind.lower() in remedy.action
        assert f".{kind.lower()}(" in remedy.code
        assert remedy.edit_id == "cache"
    fixed = stage(1, "Shuffle", parameters=DatasetParameters(reshuffle_each_iteration=False))
    assert "shuffle" not in first_code(check(SOURCE, fixed, mapped(2, "DecodePng")))


def test_batches_of_shuffled_elements_differ_each_time() -> None:
    batch = stage(2, "Batch", parameters=DatasetParameters(batch_size=10), cardinality=100)
    found = [check(SOURCE, stage(1, kind), batch, mapped(3, "DecodePng")) for kind in ("Shuffle", "Prefetch")]
    assert kinds(*found) == [Healthy, Finding]


def test_one_pass_gains_nothing() -> None:
    found = [check(SOURCE, DECODE, passes=passes) for passes in (None, 1.0, 1.9, 2.0)]
    assert kinds(*found) == [NotApplicable, Healthy, Healthy, Finding]


def test_a_megabyte_must_fit_into_half_of_the_free_memory() -> None:
    found = [check(SOURCE, DECODE, memory=HostMemory(total=10e6, used=used)) for used in (8e6, 8.1e6)]
    assert kinds(*found) == [Finding, Healthy]
    unknown = check(SOURCE, DECODE, memory=Unavailable("no memory was sampled"))
    assert "no memory was sampled" in as_not_applicable(unknown).reason


def test_what_is_not_known_is_not_advised() -> None:
    for more in (
        {"element": "TensorSpec(shape=(None, 3), dtype=tf.uint8, name=None)"},
        {"types": None},
        {"python": True},
        {"types": frozenset(("ReadVariableOp",)), "stateful": frozenset(("ReadVariableOp",))},
    ):
        assert isinstance(check(SOURCE, mapped(1, "DecodePng", **more)), NotApplicable)


def test_files_of_unknown_length_are_not_advised() -> None:
    assert isinstance(check(replace(SOURCE, cardinality=None), DECODE), NotApplicable)


def test_only_a_step_that_waits() -> None:
    assert kinds(check(SOURCE, DECODE, wait=2.0), check(SOURCE, DECODE, wait=1.9)) == [Finding, Healthy]


def joined(number: int, kind: str, *inputs: int) -> Dataset:
    return Dataset(id=number, kind=f"_{kind}Dataset", inputs=inputs, cardinality=1000)


def test_pipelines_that_meet_must_all_give_the_same() -> None:
    labels, shuffled = joined(9, "TensorSlice"), Dataset(id=8, kind="_ShuffleDataset", inputs=(9,))
    same = check(labels, SOURCE, joined(1, "Zip", 0, 9), mapped(2, "DecodePng"))
    other = check(labels, shuffled, SOURCE, joined(1, "Zip", 0, 8), mapped(2, "DecodePng"))
    assert kinds(same, other) == [Finding, Healthy]


def test_pipelines_of_keras_fit_are_not_judged() -> None:
    """The user cannot put a cache into what fit makes of arrays, but behind a function of their own."""
    made, own = check(SOURCE, replace(DECODE, function_at=None), fit_at=FIT), check(SOURCE, DECODE, fit_at=FIT)
    assert kinds(made, own) == [Healthy, Finding]


FIT = Location("train.py", 21)


MADE_BY = "image_dataset_from_directory"


def library(number: int, kind: str, **more: Any) -> Dataset:
    """A stage that image_dataset_from_directory makes on line 21."""
    return stage(number, kind, at=FIT, made_by=MADE_BY, **more)


def test_what_a_library_returns_is_cached_as_a_whole() -> None:
    batch = library(2, "Batch", parameters=DatasetParameters(batch_size=10))
    verdict = as_finding(check(SOURCE, replace(DECODE, function_at=None, made_by=MADE_BY), batch))
    (remedy,) = verdict.remedies
    assert (remedy.at, remedy.edit_id) == (FIT, "cache")
    assert f"{MADE_BY}()" in verdict.summary
    assert remedy.code.startswith(f"dataset = {MADE_BY}(...)\ndataset = dataset.cache()")


def test_a_library_that_shuffles_must_return_single_examples() -> None:
    batch = library(3, "Batch", parameters=DatasetParameters(batch_size=10))
    decode = replace(DECODE, function_at=None, made_by=MADE_BY)
    (remedy,) = as_finding(check(SOURCE, decode, library(2, "Shuffle"), batch)).remedies
    assert "batch_size=None" in remedy.code
    assert not remedy.edit_id


def test_a_layer_that_the_user_maps_is_the_users() -> None:
    assert "map(function," in first_code(check(SOURCE, mapped(1, "Mul", function_at=None, made_by="map")))


def test_pipelines_that_are_mixed_at_random_are_judged_by_themselves() -> None:
    """sample_from_datasets draws which of them gives the next element."""
    other = mapped(3, "DecodePng", name="other", inputs=(2,))
    mixed = Dataset(id=4, kind="_DirectedInterleaveDataset", inputs=(1, 3))
    verdict = as_finding(check(SOURCE, DECODE, replace(SOURCE, id=2), other, mixed, mapped(5, "Mul")))
    assert subjects(verdict) == ["1", "3"]
    assert [remedy.at for remedy in verdict.remedies] == [Location("train.py", 21), Location("train.py", 23)]


def test_a_random_branch_leaves_the_others() -> None:
    noise = mapped(3, "RandomUniform", name="noise", inputs=(2,))
    assert subjects(check(SOURCE, DECODE, replace(SOURCE, id=2), noise, joined(4, "Zip", 1, 3))) == ["1"]


def test_the_shorter_side_of_a_zip_may_be_repeated() -> None:
    """timeseries_dataset_from_array repeats the whole series beside the positions in it."""
    series = Dataset(id=7, kind="_TensorDataset", cardinality=1)
    repeated = Dataset(id=8, kind="_RepeatDataset", inputs=(7,), cardinality=-1)
    gather = mapped(2, "GatherV2", cardinality=1000)
    verdict = as_finding(check(series, repeated, SOURCE, joined(1, "Zip", 0, 8), gather))
    assert verdict.remedies[0].edit_id == "cache"


def test_a_branch_that_is_cached_costs_nothing() -> None:
    cached = Dataset(id=8, kind="CacheDataset", inputs=(1,))
    verdict = check(SOURCE, DECODE, cached, joined(9, "Zip", 8, 0), mapped(2, "Mul", inputs=(9,)))
    assert subjects(verdict) == ["2"]


def test_a_cache_that_is_never_complete_is_another_rules() -> None:
    endless = stage(2, "Repeat", cardinality=-1), stage(3, "Cache", cardinality=-1)
    assert "cache-order" in as_not_applicable(check(SOURCE, DECODE, *endless)).reason


def test_work_that_keeps_the_compute_from_the_cores_counts_without_a_wait() -> None:
    """A CPU computes and makes batches: a step may be slow for work that it never waits for."""
    contentions = CROWDED, CpuContention(crowded=False), CpuContention(crowded=None)
    crowded, alone, unknown = (check(SOURCE, DECODE, wait=0.0, contention=one) for one in contentions)
    assert kinds(crowded, alone, unknown) == [Finding, Healthy, NotApplicable]
    stage, _, left, bound = effects(crowded)[1]
    assert (stage, left, bound) == (Stage.DEVICE, near(1 - 10.0 * 0.95 / 38.0), Bound.AT_MOST)


def test_between_little_and_a_fifth_of_the_step_only_a_trial_tells() -> None:
    """Measured: 8 to 13 % of the step in theory saved 15, 3 and -6 % in trials."""
    some = (CpuContention(crowded=True, cores=cores, compute_ms=40.0) for cores in (1.3, 5.2, 1.2))
    found = [check(SOURCE, DECODE, wait=0.0, contention=one) for one in some]
    assert kinds(*found) == [NotApplicable, Healthy, Finding]


def prefix(share: float, nbytes: int | None = 1000, **more: Any) -> RepeatablePrefix:
    dataset = mapped(1, "DecodePng", "RandomUniform", name="load", **more)
    work = StageTime(path="Root::Prefetch::1", kind="Map", work_ms=10.0, dataset=dataset)
    return RepeatablePrefix(CacheablePart(dataset, ()), work, share, nbytes, ("DecodePng",))


def test_most_of_a_random_function_may_come_before_its_first_draw() -> None:
    half, less = (check(SOURCE, one.part.last, prefixes=(one,)) for one in (prefix(0.5), prefix(0.49)))
    assert list(scales(half).values()) == [0.5]
    assert "load_random" in first_code(half)
    assert isinstance(less, Healthy)


def test_a_function_is_not_divided_for_cores_alone() -> None:
    """How much the compute gains is a ceiling: a trial that divided such a function gained little."""
    found = prefix(0.99)
    verdict = as_not_applicable(check(SOURCE, found.part.last, prefixes=(found,), wait=0.5, contention=CROWDED))
    assert "only a trial" in verdict.reason


def test_a_division_without_known_size_is_not_advised() -> None:
    found = prefix(0.9, None)
    assert isinstance(check(SOURCE, found.part.last, prefixes=(found,)), NotApplicable)


def measured(*operations: tuple[str, list[int], float]) -> RepeatablePrefix:
    """Measure a function by its operations behind the placeholder: (type, sources, ms), each with 4000 bytes."""
    times = {f"{kind}_{at}": taken for at, (kind, _, taken) in enumerate(operations)}
    rows = (("Placeholder", "Placeholder", []), *((f"{k}_{at}", k, s) for at, (k, s, _) in enumerate(operations)))
    outputs = (("float32", (1000,)),)
    graph = RecordedGraph(tuple(RecordedOperation(n, k, outputs=outputs, sources=tuple(s)) for n, k, s in rows))
    data = mapped(1, "DecodePng", "RandomUniform", name="load")
    work = InputPipeline.of(StageTime(path="Root::1", kind="Map", work_ms=20.0, operations=times, dataset=data))
    cacheable = Cacheable.measure(DatasetProperties((data, SOURCE), 4.0))
    (found,) = RepeatablePrefixes.measure(cacheable, work, FunctionGraphs({1: graph})).prefixes
    return found


def test_work_before_the_first_draw_is_repeatable() -> None:
    found = measured(("DecodePng", [0], 9.0), ("RandomUniform", [], 0.5), ("Mul", [1, 2], 0.5))
    assert (found.share, found.ms, found.nbytes, found.heaviest) == (0.9, 18.0, 4000, ("DecodePng",))


def test_work_on_a_random_result_is_not_repeatable() -> None:
    assert measured(("RandomUniform", [], 0.5), ("Add", [0, 1], 0.5), ("ResizeBilinear", [2], 9.0)).share == 0.0
    assert measured(("If", [0], 5.0), ("DecodePng", [1], 5.0)).share == 0.0  # what branches call is not recorded


def test_a_result_that_needs_no_draw_is_cached_too() -> None:
    assert measured(("Cast", [0], 5.0), ("RandomUniform", [0], 5.0)).nbytes == 8000


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


def test_the_first_steps_of_passes_must_take_a_share() -> None:
    starts = replace(STARTS, share=0.051), replace(STARTS, share=0.049), None
    found = [at_starts(IDLE, SHUFFLE, starts=one) for one in starts]
    assert kinds(*found) == [Finding, NotApplicable, NotApplicable]


def test_a_map_that_did_not_run_for_another_reason_stays_unknown() -> None:
    """A cache holds its output, no shuffle takes it at once, it does not fit, or it is random."""
    cached, alone = at_starts(IDLE, CACHE, stage(3, "Shuffle")), at_starts(IDLE)
    full = at_starts(IDLE, SHUFFLE, memory=HostMemory(total=10e6, used=9.9e6))
    random = check(SOURCE, FLIP, SHUFFLE, wait=0.1, idle=(FLIP,), starts=STARTS)
    assert set(kinds(cached, alone, full, random)) == {NotApplicable}
