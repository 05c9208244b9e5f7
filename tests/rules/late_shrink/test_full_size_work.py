"""FullSizeWork: what the maps do to images that later operations make smaller."""

from typing import Any

import pytest

from tests.rules.run_facts import chained, dataset_of
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.input.map_functions import FunctionGraphs
from tfdoctor.facts.machine.cores import Cores, CpuContention
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.recording.program import FileList, RecordedGraph, RecordedOperation, TensorType
from tfdoctor.rules.late_shrink.full_size_work import FullSizeWork, LateShrinking

FULL, SMALL, STORED = (200, 100, 3), (100, 50, 3), (None, None, 3)
FLIP = frozenset(("Placeholder", "StatelessIf", "ReverseV2", "ResizeBilinear", "Identity"))
ARRAYS, ALONE = dataset_of("TensorSlice"), Cores(2.0, 1.9)
WAITING = Breakdown.of(input=8.0, device=2.0)

Shape = tuple[int | None, ...]


def op(kind: str, *sources: int, shape: Shape = FULL, dtype: str = "float32", line: int = 1) -> Any:
    """Describe an operation named by its type; its first input has the shape of its first source."""
    return kind, sources, (dtype, shape), line


RESIZE = op("ResizeBilinear", 1, shape=SMALL)


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


def only(*maps: RecordedGraph, **more: Any) -> LateShrinking:
    (late,) = found(*maps, **more).shrinkings
    return late


def types_of(*operations: Any, **more: Any) -> list[str]:
    """Return what a function does before it makes its image smaller and could do after it."""
    work = found(graph(*operations), **more)
    return [one.type for late in work.shrinkings for one in late.work if one.type != "Placeholder"]


def test_work_before_a_resize_takes_the_share_of_the_pixels_after_it() -> None:
    late = only(graph(op("AdjustSaturation", 0), RESIZE))
    assert (late.large, late.small, late.kept) == ((200, 100), (100, 50), 0.25)
    assert late.spared_ms == pytest.approx(0.75 * 2.0)


def test_an_image_is_followed_from_map_to_map() -> None:
    late = only(graph(op("AdjustSaturation", 0)), graph(op("ResizeBilinear", 0, shape=SMALL)))
    assert [one.stage.path for one in late.work if one.type == "AdjustSaturation"] == ["Root::ParallelMap1"]


@pytest.mark.parametrize(("between", "number"), [("Cache", 1), ("Filter", 0), ("Window", 0)])
def test_maps_are_joined_where_elements_pass_as_they_are(between: str, number: int) -> None:
    maps = graph(op("AdjustHue", 0)), graph(op("ResizeBilinear", 0, shape=SMALL))
    assert len(found(*maps, between=between).shrinkings) == number


def test_maps_that_do_not_fit_are_not_joined() -> None:
    other = graph(op("AdjustHue", 0, shape=(64, 64, 3)))
    assert not found(other, graph(op("ResizeBilinear", 0, shape=SMALL))).shrinkings


def test_what_else_sees_the_full_image_keeps_its_place() -> None:
    """The saturated image is compared at full size: only the tinting before the resize could follow it."""
    seen = op("AdjustSaturation", 0), op("AdjustHue", 1), op("ResizeBilinear", 2, shape=SMALL)
    assert types_of(*seen, op("Conv2D", 1, shape=SMALL), op("AddV2", 3, 4, shape=SMALL)) == ["AdjustHue"]


def test_a_filter_or_noise_before_the_resize_keeps_its_place() -> None:
    assert types_of(op("AdjustHue", 0), op("Conv2D", 1), op("ResizeBilinear", 2, shape=SMALL)) == []
    noisy = op("RandomStandardNormal"), op("AddV2", 0, 1), op("ResizeBilinear", 2, shape=SMALL)
    assert types_of(*noisy) == []


def test_integers_become_float_before_a_resize_but_after_a_crop() -> None:
    stored = op("Identity", 0, dtype="uint8")
    scaled = op("Cast", 1, line=7), op("Mul", 2, line=7), op("AdjustHue", 3, line=8)
    assert types_of(stored, *scaled, op("ResizeBilinear", 4, shape=SMALL)) == ["AdjustHue"]
    assert types_of(stored, *scaled, op("StridedSlice", 4, shape=SMALL)) == ["Identity", "Cast", "Mul", "AdjustHue"]


@pytest.mark.parametrize(
    ("kind", "place", "moved"),
    [("ResizeBilinear", "Const", True), ("Slice", "Const", False), ("Slice", "RandomUniformInt", True)],
)
def test_a_mirrored_image_is_cropped_first_where_the_place_is_random(kind: str, place: str, *, moved: bool) -> None:
    where = op(place, shape=(3,)), op("ReverseV2", 0), op(kind, 2, 1, shape=SMALL)
    assert types_of(*where) == (["ReverseV2"] if moved else [])


def test_the_mean_of_a_crop_is_another_than_that_of_the_image() -> None:
    centered = op("Mean", 0, shape=(3,)), op("Sub", 0, 1)
    assert types_of(*centered, op("ResizeBilinear", 2, shape=SMALL)) == ["Mean", "Sub"]
    assert types_of(*centered, op("StridedSlice", 2, shape=SMALL)) == []


def test_a_branch_counts_with_the_operations_in_it_where_all_are_known() -> None:
    flip = op("StatelessIf", 0), RESIZE
    late = only(graph(*flip), types=FLIP, ran=("StatelessIf/then/_0/ReverseV2",))
    assert late.work[-1].ms == pytest.approx(4.0)
    assert types_of(*flip, types=FLIP | {"Conv2D"}) == []
    assert types_of(*flip) == []


def test_what_the_graph_optimizer_puts_in_an_operations_place_is_its_time() -> None:
    late = only(graph(op("AddV2", 0), RESIZE), ran=("ArithmeticOptimizer/AddOpsRewrite_AddV2",))
    assert late.work[-1].ms == pytest.approx(4.0)


def test_decoded_images_have_the_size_of_the_stored_files() -> None:
    decoded = (
        op("DecodeJpeg", 0, shape=STORED),
        op("AdjustHue", 1, shape=STORED),
        op("ResizeBilinear", 2, shape=SMALL),
    )
    paths = dataset_of("TensorSlice", files=FileList(4, image=(400, 200)))
    assert only(graph(*decoded), source=paths).kept == pytest.approx(1 / 16)
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
