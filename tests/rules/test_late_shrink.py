"""late-shrink: a buffer holds elements that are much smaller on the other side of a map."""

import pytest

from tests.rules.kit import *
from tfdoctor.recording.program import FileList, TensorType
from tfdoctor.rules.input.late_shrink import PATH_BYTES, Buffer, Buffers, check
from tfdoctor.rules.input.late_shrink.full_size_work import FullSizeOperation, FullSizeWork, LateShrinking


def example(
    elements: int = 10_000, each: int = 602_112, least: int = 1024, *, grows: bool = True,
    unknown: tuple[Dataset, ...] = (), memory: HostMemory | None = None,
) -> Verdict:  # fmt: skip
    """A shuffle buffer holds 10,000 images that a map reads and decodes before it."""
    size = DatasetParameters(buffer_size=elements)
    shuffle = dataset_of("Shuffle", id=1, parameters=size, at=Location("train.py", 9))
    decode = dataset_of("ParallelMap", function="decode")
    held = Buffer(dataset=shuffle, elements=elements, each=each, least=least, by=decode, grows=grows)
    return check(Buffers((held,), unknown), FullSizeWork(), memory)


def order(
    large: tuple[int, int] = (224, 224), small: tuple[int, int] = (64, 64), spent: float = 24.0, *,
    kind: str = "ResizeBilinear", waits: bool = True, contention: CpuContention | None = None,
) -> Verdict:  # fmt: skip
    """Images are flipped and saturated at 224 by 224 pixels, and resized to 64 by 64 after that."""
    made = dataset_of("ParallelMap", function="augment", at=Location("train.py", 31))
    stage = StageTime.of("Root::Prefetch::ParallelMapV2", 30.0, 2, dataset=made)
    work = FullSizeOperation(stage, "AdjustSaturation", spent, Location("train.py", 21))
    late = LateShrinking(kind, large, small, (work,), Location("train.py", 26))
    awaited = frozenset((stage.path,)) if waits else frozenset()
    return check(Buffers(()), FullSizeWork((late,), awaited, contention, 25.0), None)


sick = order


def healthy() -> Verdict:
    """The same work is done on images that are hardly larger."""
    return order((72, 72))


MIB = 2**20


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["the example, and images that are hardly larger"] = sick(), healthy()
    told["images of 2 times the pixels, and of less"] = order((128, 64), (64, 64)), order((128, 64), (64, 65))
    told["work on dropped pixels of a fifth of the stage, and of less"] = [
        order((128, 128), (64, 64), spent) for spent in (8.01, 7.99)
    ]
    told["the saving is the work on pixels that are dropped: 15 of 30 ms"] = order((128, 128), (64, 64), 20.0)
    told["a crop says so"] = order(kind="StridedSlice")
    crowded = CpuContention(crowded=True, cores=2.0, compute_ms=20.0)
    told["a step that does not wait is slowed through the cores alone"] = (
        order(waits=False, contention=crowded),
        order(waits=False),
    )
    told["without recorded functions only buffers are judged"] = check(Buffers(()), Unavailable("no graphs"), None)
    told["without pipeline nothing is judged"] = check(Unavailable("no data"), FullSizeWork(), None)


@golden_cases
def test_full_buffers(told: Cases) -> None:
    told["elements are larger before the buffer: the stages change places"] = example()
    told["elements get smaller behind it: their map comes first"] = example(1000, MIB, grows=False)
    told["268.4 MB are spared, and less"] = (
        example(1000, each=268_536, least=100),
        example(1000, each=268_535, least=100),
    )
    told["elements are half as large elsewhere, and hardly smaller"] = [
        example(1000, each=4 * MIB, least=least) for least in (2 * MIB, 2 * MIB + 1)
    ]
    told["a warning where tasks wait for memory, else a note"] = [
        example(memory=HostMemory(64e9, 20e9, stalled=stalled)) for stalled in (0.02, 0.019, None)
    ]
    unknown = (dataset_of("Shuffle"),)
    told["a buffer of unknown size is not called healthy"] = check(Buffers((), unknown), FullSizeWork(), None)
    told["a buffer of unknown size beside a large one"] = example(unknown=unknown)


# Buffers: what shuffle, cache and prefetch hold, and where the same elements are smaller.


WIDE, NARROW = "shape=(100, 100, 3), dtype=tf.float32", "shape=(100, 100, 3), dtype=tf.uint8"
SMALL, TEXT = "shape=(10, 10, 3), dtype=tf.uint8", "shape=(), dtype=tf.string"
MUL = frozenset(("Cast", "Mul", "Placeholder"))
COUNT = 500

Step = tuple[str, str, Mapping[str, Any]]


def step(kind: str, tensor: str, **more: Any) -> Step:
    return kind, tensor, more


def mapped(tensor: str, types: frozenset[str] = MUL, stateful: frozenset[str] = frozenset()) -> Step:
    return step("ParallelMap", tensor, function="f", types=types, stateful=stateful)


def shuffled(tensor: str, size: int = 200) -> Step:
    return step("Shuffle", tensor, parameters=DatasetParameters(buffer_size=size))


def measured(*steps: Step) -> Buffers:
    """Measure a pipeline that is written in the order of its code."""
    chain = chained(
        *(
            dataset_of(kind, **{"element": f"TensorSpec({tensor}, name=None)", "cardinality": COUNT, **more})
            for kind, tensor, more in steps
        )
    )
    return Buffers.measure(DatasetProperties(chain))


def only(*steps: Step) -> Buffer:
    (found,) = measured(*steps).known
    return found


def test_a_map_before_the_buffer_that_makes_elements_larger() -> None:
    found = only(step("TensorSlice", NARROW), mapped(WIDE), shuffled(WIDE))
    assert (found.elements, found.each, found.least, found.grows) == (200, 120_000, 30_000, True)
    assert (found.by and found.by.id, found.nbytes, found.spared) == (1, 24_000_000, 18_000_000)


def test_a_map_behind_the_buffer_that_makes_them_smaller() -> None:
    found = only(step("TFRecord", TEXT), mapped(NARROW), shuffled(NARROW), mapped(SMALL))
    assert (found.each, found.least, found.grows) == (30_000, 300, False)


def test_the_smallest_form_counts_across_several_maps() -> None:
    found = only(step("TFRecord", TEXT), mapped(SMALL), mapped(NARROW), mapped(WIDE), shuffled(WIDE))
    assert found.least == 300


def test_of_a_file_that_a_map_reads_there_was_a_name_before() -> None:
    """Nobody knows whether encoded records are smaller."""
    decode = frozenset(("DecodeJpeg",))
    read = only(step("TensorSlice", TEXT), mapped(WIDE, decode | {"ReadFile"}), shuffled(WIDE))
    assert read.least == PATH_BYTES
    found = only(step("TFRecord", TEXT), mapped(WIDE, decode), shuffled(WIDE))
    assert (found.spared, found.by) == (0, None)


def test_a_shuffle_never_moves_before_a_cache() -> None:
    """It would be the same order in every epoch; and the cache holds its elements anyway."""
    source = step("TensorSlice", NARROW)
    behind_cache = measured(source, mapped(WIDE), step("Cache", WIDE), shuffled(WIDE))
    behind_map = measured(source, step("Cache", NARROW), mapped(WIDE), shuffled(WIDE))
    assert [one.dataset.kind for one in behind_cache.known] == ["_CacheDataset"]
    assert [one.least for one in behind_map.known] == [30_000]


def test_a_cache_moves_only_before_functions_that_cost_nothing() -> None:
    for types, least in ((MUL, 30_000), (MUL | {"ResizeArea"}, 120_000), (None, 120_000)):
        cast = step("Map", WIDE, function="f", types=types)
        assert only(step("TFRecord", TEXT), mapped(NARROW), cast, step("Cache", WIDE)).least == least


def test_a_cache_never_moves_behind_what_is_random() -> None:
    for kind, random, least in (("ResizeArea", (), 300), ("RandomUniformInt", ("RandomUniformInt",), 30_000)):
        crop = mapped(SMALL, frozenset((kind,)), frozenset(random))
        assert only(step("TFRecord", TEXT), mapped(NARROW), step("Cache", NARROW), crop).least == least


def test_elements_that_are_in_memory_anyway_do_not_count() -> None:
    found = measured(step("TensorSlice", WIDE), shuffled(WIDE), mapped(SMALL))
    assert (found.known, found.unknown) == ((), ())


def test_batches_end_the_search() -> None:
    batch = step("Batch", "shape=(None, 10, 10, 3), dtype=tf.uint8", parameters=DatasetParameters(batch_size=8))
    found = only(step("TFRecord", TEXT), mapped(WIDE), shuffled(WIDE), batch, mapped(SMALL))
    assert found.spared == 0


def test_a_buffer_larger_than_the_data_holds_the_data() -> None:
    """A repetition fills it."""
    source, size = (step("TensorSlice", NARROW), mapped(WIDE)), DatasetParameters(buffer_size=10_000)
    assert only(*source, shuffled(WIDE, size=10_000)).elements == COUNT
    endless = step("Shuffle", WIDE, cardinality=-1, parameters=size)
    assert only(*source, step("Repeat", WIDE, cardinality=-1), endless).elements == 10_000


def test_a_prefetch_stays_at_the_end() -> None:
    ahead, tuned = (step("Prefetch", WIDE, parameters=DatasetParameters(buffer_size=n)) for n in (300, -1))
    found = only(step("TensorSlice", NARROW), mapped(WIDE), ahead, tuned)
    assert (found.elements, found.spared) == (300, 0)


def test_buffers_of_elements_without_a_known_size_are_named() -> None:
    for tensor in (TEXT, "shape=(None, 4, 4), dtype=tf.uint8"):
        found = measured(step("TFRecord", TEXT), mapped(tensor), shuffled(tensor))
        assert [one.kind for one in found.unknown] == ["_ShuffleDataset"]


# FullSizeWork: what the maps do to images that later operations make smaller.


FULL, HALF, STORED = (200, 100, 3), (100, 50, 3), (None, None, 3)
FLIP = frozenset(("Placeholder", "StatelessIf", "ReverseV2", "ResizeBilinear", "Identity"))
ARRAYS, ALONE = dataset_of("TensorSlice"), Cores(2.0, 1.9)
WAITING = Breakdown.of(input=8.0, device=2.0)


def op(kind: str, *sources: int, shape: Shape = FULL, dtype: str = "float32", line: int = 1) -> Any:
    """Describe an operation named by its type; its first input has the shape of its first source."""
    return kind, sources, (dtype, shape), line


def resized(source: int, shape: Shape = HALF) -> Any:
    return op("ResizeBilinear", source, shape=shape)


RESIZE = resized(1)


def graph(*operations: Any) -> RecordedGraph:
    """Build a function's graph: a placeholder of a full image, the operations, and an Identity as its result."""
    written = (op("Placeholder"), *operations)
    outputs: list[TensorType] = [output for _, _, output, _ in written]
    rows = [
        RecordedOperation(
            kind, kind, tuple(outputs[one] for one in sources), (output,), sources=sources, at=("train.py", line)
        )
        for kind, sources, output, line in written
    ]
    end = RecordedOperation("out", "Identity", outputs=(outputs[-1],), sources=(len(rows) - 1,))
    return RecordedGraph((*rows, end))


def found(
    *maps: RecordedGraph, between: str = "Prefetch", types: frozenset[str] | None = None, source: Dataset = ARRAYS,
    cores: Cores = ALONE, step: Breakdown = WAITING, ran: tuple[str, ...] = (),
) -> FullSizeWork:  # fmt: skip
    """Measure maps of which each operation takes 2 of the stage's 20 ms per step."""
    stages: list[Dataset] = [source]
    for _ in maps:
        stages += [dataset_of("ParallelMap", function="f", types=types), dataset_of(between)]
    chain = chained(*stages)
    mapped = [data for data in reversed(chain) if data.function]
    work = tuple(
        StageTime.of(
            f"Root::ParallelMap{data.id}",
            20.0,
            2,
            dataset=data,
            operations=dict.fromkeys((*(one.type for one in made.operations), *ran), 2.0),
        )
        for data, made in zip(mapped, maps, strict=True)
    )
    crowd = CpuContention(crowded=True, cores=2.0, compute_ms=9.0)
    graphs = FunctionGraphs({data.id: made for data, made in zip(mapped, maps, strict=True)})
    pipeline, properties = InputPipeline.of(*work), DatasetProperties(chain)
    return FullSizeWork.measure(pipeline, properties, graphs, step, crowd, cores)


def late_in(*maps: RecordedGraph, **more: Any) -> LateShrinking:
    (late,) = found(*maps, **more).shrinkings
    return late


def types_of(*operations: Any, **more: Any) -> list[str]:
    """Return what a function does before it makes its image smaller and could do after it."""
    work = found(graph(*operations), **more)
    return [one.type for late in work.shrinkings for one in late.work if one.type != "Placeholder"]


def test_work_before_a_resize_takes_the_share_of_the_pixels_after_it() -> None:
    late = late_in(graph(op("AdjustSaturation", 0), RESIZE))
    assert (late.large, late.small, late.kept) == ((200, 100), (100, 50), 0.25)
    assert late.spared_ms == near(0.75 * 2.0)


def test_an_image_is_followed_from_map_to_map() -> None:
    late = late_in(graph(op("AdjustSaturation", 0)), graph(resized(0)))
    assert [one.stage.path for one in late.work if one.type == "AdjustSaturation"] == ["Root::ParallelMap1"]


def test_maps_are_joined_where_elements_pass_as_they_are() -> None:
    maps = graph(op("AdjustHue", 0)), graph(resized(0))
    assert [len(found(*maps, between=kind).shrinkings) for kind in ("Cache", "Filter", "Window")] == [1, 0, 0]
    assert not found(graph(op("AdjustHue", 0, shape=(64, 64, 3))), maps[1]).shrinkings  # another shape


def test_what_else_sees_the_full_image_keeps_its_place() -> None:
    """The saturated image is compared at full size: only the tinting before the resize could follow it."""
    seen = op("AdjustSaturation", 0), op("AdjustHue", 1), resized(2)
    assert types_of(*seen, op("Conv2D", 1, shape=HALF), op("AddV2", 3, 4, shape=HALF)) == ["AdjustHue"]


def test_a_filter_or_noise_before_the_resize_keeps_its_place() -> None:
    assert types_of(op("AdjustHue", 0), op("Conv2D", 1), resized(2)) == []
    assert types_of(op("RandomStandardNormal"), op("AddV2", 0, 1), resized(2)) == []


def test_integers_become_float_before_a_resize_but_after_a_crop() -> None:
    stored = op("Identity", 0, dtype="uint8")
    scaled = op("Cast", 1, line=7), op("Mul", 2, line=7), op("AdjustHue", 3, line=8)
    assert types_of(stored, *scaled, resized(4)) == ["AdjustHue"]
    cropped = types_of(stored, *scaled, op("StridedSlice", 4, shape=HALF))
    assert cropped == ["Identity", "Cast", "Mul", "AdjustHue"]


def test_a_mirrored_image_is_cropped_first_where_the_place_is_random() -> None:
    for kind, place, moved in (
        ("ResizeBilinear", "Const", ["ReverseV2"]),
        ("Slice", "Const", []),
        ("Slice", "RandomUniformInt", ["ReverseV2"]),
    ):
        assert types_of(op(place, shape=(3,)), op("ReverseV2", 0), op(kind, 2, 1, shape=HALF)) == moved


def test_the_mean_of_a_crop_is_another_than_that_of_the_image() -> None:
    centered = op("Mean", 0, shape=(3,)), op("Sub", 0, 1)
    assert types_of(*centered, resized(2)) == ["Mean", "Sub"]
    assert types_of(*centered, op("StridedSlice", 2, shape=HALF)) == []


def test_a_branch_counts_with_the_operations_in_it_where_all_are_known() -> None:
    flip = op("StatelessIf", 0), RESIZE
    late = late_in(graph(*flip), types=FLIP, ran=("StatelessIf/then/_0/ReverseV2",))
    assert late.work[-1].ms == near(4.0)
    assert types_of(*flip, types=FLIP | {"Conv2D"}) == []
    assert types_of(*flip) == []


def test_what_the_graph_optimizer_puts_in_an_operations_place_is_its_time() -> None:
    late = late_in(graph(op("AddV2", 0), RESIZE), ran=("ArithmeticOptimizer/AddOpsRewrite_AddV2",))
    assert late.work[-1].ms == near(4.0)


def test_decoded_images_have_the_size_of_the_stored_files() -> None:
    decoded = op("DecodeJpeg", 0, shape=STORED), op("AdjustHue", 1, shape=STORED), resized(2)
    paths = dataset_of("TensorSlice", files=FileList(4, image=(400, 200)))
    assert late_in(graph(*decoded), source=paths).kept == near(1 / 16)
    assert not found(graph(*decoded)).shrinkings


def test_enlarging_drops_nothing() -> None:
    assert not found(graph(op("AdjustHue", 0), resized(1, (400, 200, 3)))).shrinkings


def test_it_matters_where_the_step_waits_or_the_work_takes_cores() -> None:
    made = graph(op("AdjustHue", 0), RESIZE)
    ready = Breakdown.of(input=0.0, device=7.0)
    for work, matters in (
        (found(made), True),
        (found(made, step=ready), False),
        (found(made, step=Breakdown.of(device=3.0)), True),
        (found(made, step=Breakdown.of(device=3.0), cores=Cores(2.0, 1.0, others=0.9)), False),
    ):
        (late,) = work.shrinkings
        assert work.matters(late, share=0.05, taken=0.2) is matters


def test_without_operations_in_the_trace_it_is_unknown() -> None:
    work, nothing = InputPipeline.of(StageTime.of("Root::Map", 10.0)), (DatasetProperties(()), FunctionGraphs({}))
    with pytest.raises(Unavailable, match="does not show the operations"):
        FullSizeWork.measure(work, *nothing, WAITING, CpuContention(crowded=False), None)
