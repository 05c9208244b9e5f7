"""late-shrink: a buffer holds elements that are much smaller on the other side of a map."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.rules.cases.late_shrink import example, order
from tests.rules.run_facts import chained, dataset_of
from tests.rules.verdicts import as_finding, as_not_applicable
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.input.map_functions import FunctionGraphs
from tfdoctor.facts.machine.cores import Cores, CpuContention
from tfdoctor.facts.machine.memory import HostMemory
from tfdoctor.facts.run.program import Dataset, DatasetParameters
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.recording.program import FileList, RecordedGraph, RecordedOperation, TensorType
from tfdoctor.rules import late_shrink
from tfdoctor.rules.late_shrink import PATH_BYTES, Buffer, Buffers
from tfdoctor.rules.late_shrink.full_size_work import FullSizeWork, LateShrinking
from tfdoctor.terms.verdict import Finding, Healthy, Location, Severity, Stage

MIB = 2**20


@pytest.mark.parametrize(("spared", "kind"), [(268_436, Finding), (268_435, Healthy)])
def test_little_memory_is_not_reported(spared: int, kind: type) -> None:
    verdict = example(1000, each=spared + 100, least=100)
    assert isinstance(verdict, kind)


@pytest.mark.parametrize(("least", "kind"), [(2 * MIB, Finding), (2 * MIB + 1, Healthy)])
def test_elements_that_are_hardly_smaller_elsewhere_stay(least: int, kind: type) -> None:
    verdict = example(1000, each=4 * MIB, least=least)
    assert isinstance(verdict, kind)


@pytest.mark.parametrize(
    ("stalled", "severity"), [(0.02, Severity.WARNING), (0.019, Severity.NOTE), (None, Severity.NOTE)]
)
def test_it_is_a_note_unless_tasks_wait_for_memory(stalled: float | None, severity: Severity) -> None:
    verdict = as_finding(example(memory=HostMemory(64e9, 20e9, stalled=stalled)))
    assert verdict.severity is severity
    assert not verdict.effects


@pytest.mark.parametrize(("grows", "first"), [(True, "dataset.shuffle(1000)"), (False, "dataset.map(decode,")])
def test_the_remedy_is_the_other_order_of_the_users_own_stages(*, grows: bool, first: str) -> None:
    verdict = as_finding(example(1000, grows=grows))
    (remedy,) = verdict.remedies
    assert first in remedy.code.splitlines()[0]
    assert remedy.at == Location("train.py", 9)


def test_the_summary_has_the_memory_now_and_after_moving() -> None:
    verdict = as_finding(example(1000, MIB))
    assert re.search(r"shuffle\(1000\) .* 1\.05 GB; before decode .* 1\.02 MB", verdict.summary)


def test_a_buffer_of_unknown_size_is_not_called_healthy() -> None:
    verdict = as_not_applicable(late_shrink.check(Buffers((), (dataset_of("Shuffle"),)), FullSizeWork(), None))
    assert "shuffle" in verdict.reason


def test_known_buffers_count_even_if_others_are_unknown() -> None:
    assert isinstance(example(unknown=(dataset_of("Shuffle"),)), Finding)


def test_images_that_hardly_shrink_are_left_in_their_order() -> None:
    assert [type(order((128, 64), (64, side))) for side in (64, 65)] == [Finding, Healthy]


def test_the_work_on_dropped_pixels_has_to_be_a_fifth_of_the_stage() -> None:
    """Three quarters of the work would be spared, of a stage of 30 ms."""
    assert [type(order((128, 128), (64, 64), spent)) for spent in (8.01, 7.99)] == [Finding, Healthy]


def test_the_saving_is_the_work_on_pixels_that_are_dropped() -> None:
    verdict = as_finding(order((128, 128), (64, 64), 20.0))
    (effect,) = verdict.effects
    assert effect.scales == pytest.approx(1.0 - 15.0 / 30.0)
    assert "128x128 pixels are resized to 64x64 after 20.0 ms of work" in verdict.summary
    assert "tf.image.resize(image, (64, 64))  # before line 21" in verdict.remedies[0].code


def test_a_crop_says_so() -> None:
    verdict = as_finding(order(kind="StridedSlice"))
    assert verdict.remedies[0].action.startswith("Crop")
    assert "image[top:top + 64, left:left + 64]" in verdict.remedies[0].code


def test_a_step_that_does_not_wait_is_slowed_through_the_cores() -> None:
    crowded = CpuContention(crowded=True, cores=2.0, compute_ms=20.0)
    verdict = as_finding(order(waits=False, contention=crowded))
    assert [effect.stage for effect in verdict.effects] == [Stage.INPUT, Stage.DEVICE]
    assert isinstance(order(waits=False), Healthy)


def test_without_recorded_functions_only_buffers_are_judged() -> None:
    verdict = late_shrink.check(Buffers(()), Unavailable("no graphs"), None)
    assert isinstance(verdict, Healthy)
    reason = as_not_applicable(late_shrink.check(Unavailable("no data"), FullSizeWork(), None)).reason
    assert reason == "no data"


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
    chain = [
        Dataset(
            **{
                "id": at,
                "kind": f"_{kind}Dataset",
                "inputs": (at - 1,) if at else (),
                "element": f"TensorSpec({tensor}, name=None)",
                "cardinality": COUNT,
                **more,
            }
        )
        for at, (kind, tensor, more) in enumerate(steps)
    ]
    return Buffers.measure(DatasetProperties(tuple(reversed(chain))))


def only(*steps: Step) -> Buffer:
    (found,) = measured(*steps).known
    return found


def test_a_map_before_the_buffer_that_makes_elements_larger() -> None:
    found = only(step("TensorSlice", NARROW), mapped(WIDE), shuffled(WIDE))
    assert (found.elements, found.each, found.least, found.grows) == (200, 120_000, 30_000, True)
    assert found.by is not None
    assert found.by.id == 1
    assert (found.nbytes, found.spared) == (24_000_000, 18_000_000)


def test_a_map_behind_the_buffer_that_makes_them_smaller() -> None:
    found = only(step("TFRecord", TEXT), mapped(NARROW), shuffled(NARROW), mapped(SMALL))
    assert (found.each, found.least, found.grows) == (30_000, 300, False)


def test_the_smallest_form_counts_across_several_maps() -> None:
    found = only(step("TFRecord", TEXT), mapped(SMALL), mapped(NARROW), mapped(WIDE), shuffled(WIDE))
    assert found.least == 300


def test_of_a_file_that_a_map_reads_there_was_a_name_before() -> None:
    decode = mapped(WIDE, frozenset(("ReadFile", "DecodeJpeg")))
    found = only(step("TensorSlice", TEXT), decode, shuffled(WIDE))
    assert found.least == PATH_BYTES


def test_nobody_knows_whether_encoded_records_are_smaller() -> None:
    found = only(step("TFRecord", TEXT), mapped(WIDE, frozenset(("DecodeJpeg",))), shuffled(WIDE))
    assert found.spared == 0
    assert found.by is None


def test_a_shuffle_never_moves_before_a_cache() -> None:
    """It would be the same order in every epoch; and the cache holds its elements anyway."""
    source = step("TensorSlice", NARROW)
    behind_cache = measured(source, mapped(WIDE), step("Cache", WIDE), shuffled(WIDE))
    behind_map = measured(source, step("Cache", NARROW), mapped(WIDE), shuffled(WIDE))
    assert [one.dataset.kind for one in behind_cache.known] == ["_CacheDataset"]
    assert [one.least for one in behind_map.known] == [30_000]


@pytest.mark.parametrize(("types", "least"), [(MUL, 30_000), (MUL | {"ResizeArea"}, 120_000), (None, 120_000)])
def test_a_cache_moves_only_before_functions_that_cost_nothing(types: frozenset[str] | None, least: int) -> None:
    cast = step("Map", WIDE, function="f", types=types)
    found = only(step("TFRecord", TEXT), mapped(NARROW), cast, step("Cache", WIDE))
    assert found.least == least


@pytest.mark.parametrize(
    ("types", "least"), [(frozenset(("ResizeArea",)), 300), (frozenset(("RandomUniformInt",)), 30_000)]
)
def test_a_cache_never_moves_behind_what_is_random(types: frozenset[str], least: int) -> None:
    crop = mapped(SMALL, types, frozenset(one for one in types if "Random" in one))
    found = only(step("TFRecord", TEXT), mapped(NARROW), step("Cache", NARROW), crop)
    assert found.least == least


def test_elements_that_are_in_memory_anyway_do_not_count() -> None:
    found = measured(step("TensorSlice", WIDE), shuffled(WIDE), mapped(SMALL))
    assert (found.known, found.unknown) == ((), ())


def test_batches_end_the_search() -> None:
    batch = step("Batch", "shape=(None, 10, 10, 3), dtype=tf.uint8", parameters=DatasetParameters(batch_size=8))
    found = only(step("TFRecord", TEXT), mapped(WIDE), shuffled(WIDE), batch, mapped(SMALL))
    assert found.spared == 0


def test_a_buffer_larger_than_the_data_holds_the_data() -> None:
    found = only(step("TensorSlice", NARROW), mapped(WIDE), shuffled(WIDE, size=10_000))
    assert found.elements == COUNT


def test_a_repetition_fills_a_buffer_that_is_larger_than_the_data() -> None:
    found = only(
        step("TensorSlice", NARROW),
        mapped(WIDE),
        step("Repeat", WIDE, cardinality=-1),
        step("Shuffle", WIDE, cardinality=-1, parameters=DatasetParameters(buffer_size=10_000)),
    )
    assert found.elements == 10_000


def test_a_prefetch_stays_at_the_end() -> None:
    ahead = step("Prefetch", WIDE, parameters=DatasetParameters(buffer_size=300))
    tuned = step("Prefetch", WIDE, parameters=DatasetParameters(buffer_size=-1))
    (found,) = measured(step("TensorSlice", NARROW), mapped(WIDE), ahead, tuned).known
    assert (found.elements, found.spared) == (300, 0)


@pytest.mark.parametrize("tensor", [TEXT, "shape=(None, 4, 4), dtype=tf.uint8"])
def test_buffers_of_elements_without_a_known_size_are_named(tensor: str) -> None:
    found = measured(step("TFRecord", TEXT), mapped(tensor), shuffled(tensor))
    assert [one.kind for one in found.unknown] == ["_ShuffleDataset"]


# FullSizeWork: what the maps do to images that later operations make smaller.


FULL, SMALL_OF_FULL_SIZE_WORK, STORED = (200, 100, 3), (100, 50, 3), (None, None, 3)
FLIP = frozenset(("Placeholder", "StatelessIf", "ReverseV2", "ResizeBilinear", "Identity"))
ARRAYS, ALONE = dataset_of("TensorSlice"), Cores(2.0, 1.9)
WAITING = Breakdown.of(input=8.0, device=2.0)

Shape = tuple[int | None, ...]


def op(kind: str, *sources: int, shape: Shape = FULL, dtype: str = "float32", line: int = 1) -> Any:
    """Describe an operation named by its type; its first input has the shape of its first source."""
    return kind, sources, (dtype, shape), line


RESIZE = op("ResizeBilinear", 1, shape=SMALL_OF_FULL_SIZE_WORK)


def graph(*operations: Any) -> RecordedGraph:
    """Build a function's graph: a placeholder of a full image, the operations, and an Identity as its result."""
    written = (op("Placeholder"), *operations)
    outputs: list[TensorType] = [output for _, _, output, _ in written]
    rows = [
        RecordedOperation(
            kind,
            kind,
            tuple(outputs[source] for source in sources),
            (output,),
            sources=tuple(sources),
            at=("train.py", line),
        )
        for kind, sources, output, line in written
    ]
    last = len(rows) - 1
    return RecordedGraph((*rows, RecordedOperation("out", "Identity", outputs=(outputs[-1],), sources=(last,))))


def found(
    *maps: RecordedGraph,
    between: str = "Prefetch",
    types: frozenset[str] | None = None,
    source: Dataset = ARRAYS,
    cores: Cores = ALONE,
    step: Breakdown = WAITING,
    ran: tuple[str, ...] = (),
) -> FullSizeWork:
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


def only_of_full_size_work(*maps: RecordedGraph, **more: Any) -> LateShrinking:
    (late,) = found(*maps, **more).shrinkings
    return late


def types_of(*operations: Any, **more: Any) -> list[str]:
    """Return what a function does before it makes its image smaller and could do after it."""
    work = found(graph(*operations), **more)
    return [one.type for late in work.shrinkings for one in late.work if one.type != "Placeholder"]


def test_work_before_a_resize_takes_the_share_of_the_pixels_after_it() -> None:
    late = only_of_full_size_work(graph(op("AdjustSaturation", 0), RESIZE))
    assert (late.large, late.small, late.kept) == ((200, 100), (100, 50), 0.25)
    assert late.spared_ms == pytest.approx(0.75 * 2.0)


def test_an_image_is_followed_from_map_to_map() -> None:
    late = only_of_full_size_work(
        graph(op("AdjustSaturation", 0)), graph(op("ResizeBilinear", 0, shape=SMALL_OF_FULL_SIZE_WORK))
    )
    assert [one.stage.path for one in late.work if one.type == "AdjustSaturation"] == ["Root::ParallelMap1"]


@pytest.mark.parametrize(("between", "number"), [("Cache", 1), ("Filter", 0), ("Window", 0)])
def test_maps_are_joined_where_elements_pass_as_they_are(between: str, number: int) -> None:
    maps = graph(op("AdjustHue", 0)), graph(op("ResizeBilinear", 0, shape=SMALL_OF_FULL_SIZE_WORK))
    assert len(found(*maps, between=between).shrinkings) == number


def test_maps_that_do_not_fit_are_not_joined() -> None:
    other = graph(op("AdjustHue", 0, shape=(64, 64, 3)))
    assert not found(other, graph(op("ResizeBilinear", 0, shape=SMALL_OF_FULL_SIZE_WORK))).shrinkings


def test_what_else_sees_the_full_image_keeps_its_place() -> None:
    """The saturated image is compared at full size: only the tinting before the resize could follow it."""
    seen = op("AdjustSaturation", 0), op("AdjustHue", 1), op("ResizeBilinear", 2, shape=SMALL_OF_FULL_SIZE_WORK)
    assert types_of(
        *seen, op("Conv2D", 1, shape=SMALL_OF_FULL_SIZE_WORK), op("AddV2", 3, 4, shape=SMALL_OF_FULL_SIZE_WORK)
    ) == ["AdjustHue"]


def test_a_filter_or_noise_before_the_resize_keeps_its_place() -> None:
    assert (
        types_of(op("AdjustHue", 0), op("Conv2D", 1), op("ResizeBilinear", 2, shape=SMALL_OF_FULL_SIZE_WORK)) == []
    )
    noisy = op("RandomStandardNormal"), op("AddV2", 0, 1), op("ResizeBilinear", 2, shape=SMALL_OF_FULL_SIZE_WORK)
    assert types_of(*noisy) == []


def test_integers_become_float_before_a_resize_but_after_a_crop() -> None:
    stored = op("Identity", 0, dtype="uint8")
    scaled = op("Cast", 1, line=7), op("Mul", 2, line=7), op("AdjustHue", 3, line=8)
    assert types_of(stored, *scaled, op("ResizeBilinear", 4, shape=SMALL_OF_FULL_SIZE_WORK)) == ["AdjustHue"]
    assert types_of(stored, *scaled, op("StridedSlice", 4, shape=SMALL_OF_FULL_SIZE_WORK)) == [
        "Identity",
        "Cast",
        "Mul",
        "AdjustHue",
    ]


@pytest.mark.parametrize(
    ("kind", "place", "moved"),
    [("ResizeBilinear", "Const", True), ("Slice", "Const", False), ("Slice", "RandomUniformInt", True)],
)
def test_a_mirrored_image_is_cropped_first_where_the_place_is_random(kind: str, place: str, *, moved: bool) -> None:
    where = op(place, shape=(3,)), op("ReverseV2", 0), op(kind, 2, 1, shape=SMALL_OF_FULL_SIZE_WORK)
    assert types_of(*where) == (["ReverseV2"] if moved else [])


def test_the_mean_of_a_crop_is_another_than_that_of_the_image() -> None:
    centered = op("Mean", 0, shape=(3,)), op("Sub", 0, 1)
    assert types_of(*centered, op("ResizeBilinear", 2, shape=SMALL_OF_FULL_SIZE_WORK)) == ["Mean", "Sub"]
    assert types_of(*centered, op("StridedSlice", 2, shape=SMALL_OF_FULL_SIZE_WORK)) == []


def test_a_branch_counts_with_the_operations_in_it_where_all_are_known() -> None:
    flip = op("StatelessIf", 0), RESIZE
    late = only_of_full_size_work(graph(*flip), types=FLIP, ran=("StatelessIf/then/_0/ReverseV2",))
    assert late.work[-1].ms == pytest.approx(4.0)
    assert types_of(*flip, types=FLIP | {"Conv2D"}) == []
    assert types_of(*flip) == []


def test_what_the_graph_optimizer_puts_in_an_operations_place_is_its_time() -> None:
    late = only_of_full_size_work(graph(op("AddV2", 0), RESIZE), ran=("ArithmeticOptimizer/AddOpsRewrite_AddV2",))
    assert late.work[-1].ms == pytest.approx(4.0)


def test_decoded_images_have_the_size_of_the_stored_files() -> None:
    decoded = (
        op("DecodeJpeg", 0, shape=STORED),
        op("AdjustHue", 1, shape=STORED),
        op("ResizeBilinear", 2, shape=SMALL_OF_FULL_SIZE_WORK),
    )
    paths = dataset_of("TensorSlice", files=FileList(4, image=(400, 200)))
    assert only_of_full_size_work(graph(*decoded), source=paths).kept == pytest.approx(1 / 16)
    assert not found(graph(*decoded)).shrinkings


def test_enlarging_drops_nothing() -> None:
    assert not found(graph(op("AdjustHue", 0), op("ResizeBilinear", 1, shape=(400, 200, 3)))).shrinkings


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
    with pytest.raises(Unavailable, match="does not show the operations"):
        FullSizeWork.measure(
            InputPipeline.of(StageTime.of("Root::Map", 10.0)),
            DatasetProperties(()),
            FunctionGraphs({}),
            WAITING,
            CpuContention(crowded=False),
            None,
        )
