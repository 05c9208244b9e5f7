"""What the iterators of tf.data tell: each stage's work, and what limits the pipeline."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.builders import (
    Row,
    Thread,
    captured,
    chart,
    executor,
    iterator,
    line,
    marker,
    markers,
    recording,
    trace,
    wait,
)
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.input.iterators import Iterators, Node, consumer
from tfdoctor.terms.verdict import Location

STEPS, EACH = 4, 100

Lane = Callable[[float], Iterable[Row]]


def lane(name: str, rows: Lane, steps: int = STEPS) -> Thread:
    """A thread on which the same happens in every step."""
    return line(name, *(row for step in range(steps) for row in rows(step * EACH)))


def pipeline(*lanes: Thread, program: dict[str, Any] | None = None) -> InputPipeline:
    return facts(*lanes, program=program).fact(InputPipeline)


def facts(*lanes: Thread, program: dict[str, Any] | None = None) -> Chart:
    return chart(trace([markers(STEPS, EACH), *lanes]), recording(program))


def stage(found: InputPipeline, path: str) -> StageTime:
    return next(one for one in found.stages if one.path == path)


def get_next(at: float) -> Iterable[Row]:
    """The trainer waits 60 ms for what a prefetch hands over."""
    yield wait(at, at + 61)
    yield iterator("Root", at + 0.1, at + 60.7, 1)
    yield iterator("Root::Prefetch", at + 0.15, at + 60.65, 2, 1, name="inject/prefetch_Map/_3")


def produce(at: float) -> Iterable[Row]:
    """A prefetch makes a batch: 40 ms of a map on one thread, 10 ms of its source."""
    yield ("PrefetchProduce", at + 5, at + 60)
    yield iterator("Root::Prefetch::Map", at + 6, at + 56, 3, 2, name="MapDataset:4")
    yield iterator("Root::Prefetch::Map::TensorSlice", at + 6, at + 16, 4, 3, name="TensorSliceDataset:0")


TRAINER = lane("tf_data_iterator_get_next/1", get_next)
SEQUENTIAL = lane("tf_data_iterator_resource/2", produce)


# A sequential map behind a prefetch that tf.data injected


def test_a_stages_work_is_its_own_time_alone() -> None:
    found = pipeline(TRAINER, SEQUENTIAL)
    assert stage(found, "Root::Prefetch::Map").work_ms == pytest.approx(40)
    assert stage(found, "Root::Prefetch::Map::TensorSlice").work_ms == pytest.approx(10)
    assert stage(found, "Root::Prefetch::Map").calls == 1


def test_waiting_for_a_prefetch_is_not_work() -> None:
    ahead = stage(pipeline(TRAINER, SEQUENTIAL), "Root::Prefetch")
    assert ahead.asynchronous
    assert ahead.work_ms == 0


def test_waiting_for_the_batches_of_a_replicas_device_is_neither_work_nor_python() -> None:
    """The generator by which tf.distribute hands a device its batches runs no Python."""

    def replicas(at: float) -> Iterable[Row]:
        yield wait(at, at + 61)
        yield iterator("Root", at + 0.1, at + 60.7, 1)
        yield iterator("Root::Prefetch", at + 1, at + 60, 2, 1, name="Prefetch:16 device_prefetch")

    def hands(at: float) -> Iterable[Row]:
        yield ("PrefetchProduce", at + 5, at + 60)
        yield iterator("Root::Prefetch::Generator", at + 6, at + 56, 3, 2, name="GeneratorDataset:7")

    trainer, handing = lane("tf_data_iterator_get_next/1", replicas), lane("tf_data/2", hands)
    handed = stage(pipeline(trainer, handing), "Root::Prefetch::Generator")
    assert (handed.work_ms, handed.wall_ms, handed.python_ms) == (0.0, 0.0, 0.0)


def test_stages_on_one_thread_are_one_segment_beside_the_step() -> None:
    found = pipeline(TRAINER, SEQUENTIAL)
    assert found.slowest
    assert dict(found.slowest.stages) == pytest.approx(
        {"Root::Prefetch::Map": 40, "Root::Prefetch::Map::TensorSlice": 10}
    )
    assert found.slowest.overlapped
    assert found.work_ms == pytest.approx(50)
    assert found.serial_ms == pytest.approx(0.1)


def test_the_heaviest_stage_of_the_slowest_segment_is_critical() -> None:
    critical = pipeline(TRAINER, SEQUENTIAL).critical
    assert critical
    assert critical.path == "Root::Prefetch::Map"
    assert critical.concurrency == pytest.approx(1)


def test_a_prefetch_at_the_root_works_ahead() -> None:
    found = pipeline(TRAINER, SEQUENTIAL)
    assert found.prefetches
    assert stage(found, "Root::Prefetch").injected
    assert not stage(found, "Root::Prefetch::Map").injected


def test_consumers_come_before_what_they_consume() -> None:
    assert [s.kind for s in pipeline(TRAINER, SEQUENTIAL).stages] == ["Root", "Prefetch", "Map", "TensorSlice"]


def test_the_function_on_other_threads_is_the_maps_own_time_all_the_same() -> None:
    calls = lane("tf_data_iterator_resource/2", lambda at: [*produce(at), captured(at + 17, at + 56, 50)])
    runs = lane("tf_Compute/1", lambda at: [executor(at + 17, at + 55, 50)])
    found = pipeline(TRAINER, calls, runs)
    assert stage(found, "Root::Prefetch::Map").work_ms == pytest.approx(40)


# Without a prefetch


def test_without_a_prefetch_the_trainer_does_the_work_itself() -> None:
    def serial(at: float) -> Iterable[Row]:
        yield wait(at, at + 30)
        yield iterator("Root", at, at + 30, 1)
        yield iterator("Root::Map", at, at + 29, 2, 1)
        yield iterator("Root::Map::Range", at, at + 4, 3, 2)

    found = pipeline(lane("python", serial))
    assert not found.prefetches
    assert found.serial_ms == pytest.approx(30)
    assert [segment.overlapped for segment in found.segments] == [False]


def test_an_iterator_made_for_each_batch_is_followed_where_ids_come_back() -> None:
    """The same memory, and so the same id, serves the prefetch below one root and then below another."""

    def anew(at: float) -> Iterable[Row]:
        root = 10 + int(at) // EACH
        yield wait(at, at + 60)
        yield iterator("Root", at, at + 30, root)
        yield iterator("Root::Prefetch", at, at + 28, 2, root)
        yield iterator("Root", at + 30, at + 60, root + 90)  # a second batch of the same step
        yield iterator("Root::Prefetch", at + 31, at + 59, 2, root + 90)

    found = pipeline(lane("python", anew))
    assert [one.kind for one in found.stages] == ["Root", "Prefetch"]
    assert found.prefetches  # though the root takes 1 to 2 ms to hand a batch over


def test_a_prefetch_above_nothing_but_heavy_work_is_not_near_the_root() -> None:
    def rows(at: float) -> Iterable[Row]:
        yield iterator("Root", at, at + 30, 1)
        yield iterator("Root::Map", at, at + 30, 2, 1)
        yield iterator("Root::Map::Prefetch", at, at + 10, 3, 2)

    assert not pipeline(lane("python", rows)).prefetches


# Parallel maps


def parallel(kind: str, produce_kind: str) -> tuple[Thread, ...]:
    """A map whose function runs 30 ms for each batch on each of two threads."""

    def trainer(at: float) -> Iterable[Row]:
        yield iterator("Root", at, at + 20, 1)
        yield iterator(f"Root::{kind}", at, at + 20, 2, 1, name="MapDataset:4")

    def runner(at: float) -> Iterable[Row]:
        yield (produce_kind, at + 30, at + 34)
        yield iterator(f"Root::{kind}::Range", at + 30, at + 32, 3, 2)
        yield captured(at + 32, at + 33, int(at) + 10)
        yield captured(at + 33, at + 34, int(at) + 11)

    return (
        lane("tf_data_iterator_get_next/1", trainer),
        lane("tf_data_iterator_resource/2", runner),
        lane("tf_data_private_threadpool/3", lambda at: [executor(at + 40, at + 70, int(at) + 10)]),
        lane("tf_data_private_threadpool/4", lambda at: [executor(at + 40, at + 70, int(at) + 11)]),
    )


@pytest.mark.parametrize(
    ("kind", "produce_kind"),
    [
        ("ParallelMapV2", "ParallelMapProduce"),
        ("MapAndBatch", "MapAndBatchProduce"),
        ("LegacyParallelMapV2", "LegacyParallelMapProduce"),
    ],
)
def test_the_threads_of_a_parallel_map_are_counted(kind: str, produce_kind: str) -> None:
    found = pipeline(*parallel(kind, produce_kind))
    mapped = stage(found, f"Root::{kind}")
    assert mapped.asynchronous
    assert mapped.work_ms == pytest.approx(60)
    assert mapped.wall_ms == pytest.approx(30)
    assert mapped.concurrency == pytest.approx(2)


def test_a_parallel_map_is_a_segment_of_its_own_and_its_source_another() -> None:
    found = pipeline(*parallel("ParallelMapV2", "ParallelMapProduce"))
    beside = {tuple(s.stages): s.ms for s in found.segments if s.overlapped}
    assert beside == {
        ("Root::ParallelMapV2",): pytest.approx(30),
        ("Root::ParallelMapV2::Range",): pytest.approx(2),
    }
    assert found.critical
    assert found.critical.kind == "ParallelMapV2"
    assert found.prefetches


def test_a_fused_map_on_one_thread_is_seen_to_be_sequential() -> None:
    two = parallel("MapAndBatch", "MapAndBatchProduce")
    one_after_the_other = lane(
        "tf_data_private_threadpool/4", lambda at: [executor(at + 70, at + 99, int(at) + 11)]
    )
    mapped = stage(pipeline(*two[:3], one_after_the_other), "Root::MapAndBatch")
    assert mapped.concurrency == pytest.approx(1)


def test_a_map_within_a_parallel_interleave_runs_on_several_threads() -> None:
    """Its name does not say so, and its work counts once where threads run side by side."""

    def worker(number: int) -> Lane:
        path = f"Root::ParallelInterleaveV4[{number}]::Map"

        def rows(at: float) -> Iterable[Row]:
            yield ("ParallelInterleaveProduce", at, at + 41)
            yield iterator(path, at, at + 40, 10 + number, 2)

        return rows

    def trainer(at: float) -> Iterable[Row]:
        yield iterator("Root", at, at + 45, 1)
        yield iterator("Root::ParallelInterleaveV4", at, at + 45, 2, 1)

    workers = [lane(f"tf_data_iterator_resource/{n}", worker(n)) for n in range(3)]
    found = pipeline(lane("python", trainer), *workers)
    mapped = stage(found, "Root::ParallelInterleaveV4::Map")
    assert mapped.calls == 3
    assert mapped.work_ms == pytest.approx(120)
    assert mapped.concurrency == pytest.approx(3)
    assert found.work_ms == pytest.approx(40)


# Shapes of pipelines


def test_a_zip_keeps_its_branches_apart() -> None:
    def rows(at: float) -> Iterable[Row]:
        yield iterator("Root", at, at + 30, 1)
        yield iterator("Root::Prefetch", at, at + 30, 2, 1)

    def branches(at: float) -> Iterable[Row]:
        yield ("PrefetchProduce", at, at + 30)
        yield iterator("Root::Prefetch::Zip", at, at + 30, 3, 2)
        yield iterator("Root::Prefetch::Zip[0]::Map", at, at + 20, 4, 3)
        yield iterator("Root::Prefetch::Zip[1]::Map", at + 20, at + 25, 5, 3)

    found = pipeline(lane("a", rows), lane("b", branches))
    assert stage(found, "Root::Prefetch::Zip").work_ms == pytest.approx(5)
    assert stage(found, "Root::Prefetch::Zip[0]::Map").work_ms == pytest.approx(20)
    assert stage(found, "Root::Prefetch::Zip[1]::Map").work_ms == pytest.approx(5)
    assert found.work_ms == pytest.approx(30)


def test_the_iterators_of_each_repetition_are_one_stage() -> None:
    def rows(at: float) -> Iterable[Row]:
        epoch = int(at // EACH)
        yield iterator("Root", at, at + 30, 1)
        yield iterator("Root::Map", at, at + 30, 2, 1)
        yield iterator(f"Root::Map::ForeverRepeat[{epoch}]::Range", at, at + 10, 30 + epoch, 2)

    found = pipeline(lane("python", rows))
    assert stage(found, "Root::Map::ForeverRepeat::Range").work_ms == pytest.approx(10)


def test_a_validation_pipeline_is_kept_out() -> None:
    def validation(at: float) -> Iterable[Row]:
        yield iterator("Root", at + 70, at + 95, 91)
        yield iterator("Root::Prefetch", at + 70, at + 95, 92, 91)
        yield iterator("Root::Prefetch::Map", at + 70, at + 95, 93, 92)

    found = pipeline(TRAINER, SEQUENTIAL, lane("tf_data_iterator_get_next/9", validation))
    assert stage(found, "Root::Prefetch::Map").work_ms == pytest.approx(40)
    assert stage(found, "Root").calls == 1


def test_the_pipelines_of_two_epochs_are_one() -> None:
    def rows(at: float) -> Iterable[Row]:
        epoch = 10 if at < 2 * EACH else 20
        yield iterator("Root", at, at + 30, epoch)
        yield iterator("Root::Map", at, at + 20, epoch + 1, epoch)

    measured = facts(lane("python", rows))
    assert measured.fact(Iterators).batches == STEPS
    assert stage(measured.fact(InputPipeline), "Root::Map").work_ms == pytest.approx(20)


def of_epochs(*numbers: int) -> Any:
    """A map whose dataset has another number in each step."""

    def rows(at: float) -> Iterable[Row]:
        number = numbers[round(at / EACH)]
        yield iterator("Root", at, at + 30, number, name=f"BatchDatasetV2:{number + 1}")
        name = f"fused(MapDataset:{number},BatchDatasetV2:{number + 1})"
        yield iterator("Root::MapAndBatch", at, at + 20, 50 + number, number, name=name)

    record = program(
        written(2, "BatchDatasetV2:8", "_BatchDataset", "", 1),
        written(1, "MapDataset:7", "_MapDataset", "decode"),
        feeds=2,
    )
    return facts(lane("python", rows), program=record)


def test_a_dataset_that_each_epoch_makes_anew_keeps_its_function_and_is_told() -> None:
    """The record contains the one that was alive at its end; the trace saw others too."""
    order = (4,) * (STEPS - 3) + (7, 1, 1)
    measured = of_epochs(*order)
    assert stage(measured.fact(InputPipeline), "Root::MapAndBatch").title == "MapAndBatch(decode)"
    assert measured.fact(Iterators).remade
    assert measured.fact(DatasetProperties).remade
    assert "build the dataset once" in measured.fact(Cacheable).why


def test_one_dataset_for_all_epochs_is_not_remade() -> None:
    measured = of_epochs(*(7,) * STEPS)
    assert not measured.fact(Iterators).remade
    assert not measured.fact(DatasetProperties).remade


def test_the_trainers_batches_are_counted() -> None:
    assert facts(TRAINER, SEQUENTIAL).fact(Iterators).batches == STEPS


def test_work_in_outlying_steps_does_not_count() -> None:
    steps = [marker(n, (0 if n == 0 else 900 + 100 * n), 1000 + 100 * n) for n in range(6)]
    rows: list[Row] = []
    for n in range(6):
        at = 0.0 if n == 0 else 900.0 + 100 * n
        length = 800 if n == 0 else 30
        rows += [iterator("Root", at, at + length, 1), iterator("Root::Map", at, at + length, 2, 1)]
    end: Row = ("tfdoctor_end", 1500, 1500)
    found = chart(trace([line("python", *steps, end), line("x", *rows)])).fact(InputPipeline)
    assert stage(found, "Root::Map").work_ms == pytest.approx(30)


def test_several_batches_in_a_step_add_up() -> None:
    def rows(at: float) -> Iterable[Row]:
        for part in (0, 40):
            yield iterator("Root", at + part, at + part + 30, 1)
            yield iterator("Root::Map", at + part, at + part + 30, 2, 1)

    found = pipeline(lane("python", rows))
    assert stage(found, "Root::Map").work_ms == pytest.approx(60)
    assert stage(found, "Root::Map").calls == 2


# Python


def test_the_time_of_a_function_inside_python() -> None:
    calls = lane("tf_data_iterator_resource/2", lambda at: [*produce(at), captured(at + 17, at + 56, 50)])

    def runs(at: float) -> Iterable[Row]:
        yield executor(at + 17, at + 55, 50)
        yield ("EagerPyFunc:EagerPyFunc", at + 18, at + 53)

    found = pipeline(TRAINER, calls, lane("tf_data_private_threadpool/1", runs))
    mapped = stage(found, "Root::Prefetch::Map")
    assert mapped.python_ms == pytest.approx(35)
    assert mapped.work_ms == pytest.approx(40)


def test_files_that_a_function_reads_whole() -> None:
    calls = lane("tf_data_iterator_resource/2", lambda at: [*produce(at), captured(at + 17, at + 56, 50)])

    def runs(at: float) -> Iterable[Row]:
        yield executor(at + 17, at + 55, 50)
        yield ("ReadFile:ReadFile", at + 18, at + 28)
        yield ("ReadFile_1:ReadFile", at + 30, at + 35)
        yield ("ReadFile:ReadFile", at + 58, at + 60)  # outside of the function

    mapped = stage(pipeline(TRAINER, calls, lane("tf_data_private_threadpool/1", runs)), "Root::Prefetch::Map")
    assert mapped.reading_ms == pytest.approx(15)
    assert mapped.reads == 2


def test_python_outside_the_pipeline_is_not_its_own() -> None:
    def runs(at: float) -> Iterable[Row]:
        yield executor(at + 17, at + 55, 999)
        yield ("EagerPyFunc:EagerPyFunc", at + 18, at + 53)

    found = pipeline(TRAINER, SEQUENTIAL, lane("tf_Compute/1", runs))
    assert stage(found, "Root::Prefetch::Map").python_ms == 0


def test_all_of_a_generators_work_is_python() -> None:
    def rows(at: float) -> Iterable[Row]:
        yield iterator("Root", at, at + 30, 1)
        yield iterator("Root::FlatMap", at, at + 30, 2, 1)
        yield iterator("Root::FlatMap[0]::Generator", at, at + 28, 3, 2)

    made = stage(pipeline(lane("python", rows)), "Root::FlatMap::Generator")
    assert made.python_ms == made.work_ms == pytest.approx(28)


def test_the_generator_of_a_keras_dataset_is_at_its_own_method() -> None:
    def rows(at: float) -> Iterable[Row]:
        yield iterator("Root", at, at + 30, 1)
        yield iterator("Root::FlatMap", at, at + 30, 2, 1, name="FlatMapDataset:7")
        yield iterator("Root::FlatMap[0]::Generator", at, at + 28, 3, 2)

    record = program(written(1, "FlatMapDataset:7", "_FlatMapDataset"), feeds=1)
    found = pipeline(lane("python", rows), program=record)
    assert stage(found, "Root::FlatMap::Generator").at == Location("/home/me/train.py", 11)
    record["run"] = {"batches_at": ["/home/me/data.py", 40]}
    found = pipeline(lane("python", rows), program=record)
    assert stage(found, "Root::FlatMap::Generator").at == Location("/home/me/data.py", 40)
    assert stage(found, "Root::FlatMap").at == Location("/home/me/train.py", 11)


# What is missing


def test_a_producer_outside_of_the_window_is_said_to_be_missing() -> None:
    waits = lane("tf_Compute/1", lambda at: [wait(at, at + 60)])
    with pytest.raises(Unavailable, match="trace more steps"):
        pipeline(waits)


def test_a_run_without_tf_data_says_so() -> None:
    with pytest.raises(Unavailable, match="come from elsewhere"):
        pipeline(lane("tf_Compute/1", lambda at: [("m/c:Conv2D", at, at + 5)]))


def test_iterators_that_feed_no_step_are_not_said_to_be_absent() -> None:
    """A profiler that leaves out the handle on the pipeline."""

    def rows(at: float) -> Iterable[Row]:
        yield iterator("Root::Prefetch", at + 1, at + 5, 2)

    with pytest.raises(Unavailable, match="none that passes a batch"):
        pipeline(lane("tf_data_iterator/102", rows))


# What the user wrote


HERE = ["/home/me/train.py", 3]


def written(number: int, name: str, kind: str, function: str = "", *inputs: int) -> dict[str, Any]:
    return {
        "id": number,
        "class": kind,
        "trace_name": name,
        "inputs": list(inputs),
        "function": {"name": function, "at": HERE} if function else None,
        "at": ["/home/me/train.py", number + 10],
    }


def program(*datasets: dict[str, Any], feeds: int | None) -> dict[str, Any]:
    return {"graphs": [], "datasets": list(datasets), "feeds": feeds, "input_kind": "tf.data"}


def test_a_stage_is_joined_to_its_line_by_the_name_that_tf_data_gave_it() -> None:
    record = program(
        written(0, "TensorSliceDataset:0", "_TensorSliceDataset"),
        written(1, "MapDataset:4", "_MapDataset", "decode", 0),
        feeds=1,
    )
    found = pipeline(TRAINER, SEQUENTIAL, program=record)
    mapped = stage(found, "Root::Prefetch::Map")
    assert mapped.title == "Map(decode)"
    assert mapped.at == Location("/home/me/train.py", 11)
    assert stage(found, "Root::Prefetch").at is None


def test_a_function_of_kerass_own_does_not_name_a_stage() -> None:
    mine = written(1, "MapDataset:4", "_MapDataset", "decode")
    mine["function"]["at"] = None
    found = pipeline(TRAINER, SEQUENTIAL, program=program(mine, feeds=1))
    assert stage(found, "Root::Prefetch::Map").title == "Map"


def test_a_stage_of_unknown_origin_has_its_consumers_line_but_not_its_function() -> None:
    mine = written(1, "MapDataset:4", "_MapDataset", "decode")
    source = stage(
        pipeline(TRAINER, SEQUENTIAL, program=program(mine, feeds=1)), "Root::Prefetch::Map::TensorSlice"
    )
    assert source.at == Location("/home/me/train.py", 11)
    assert source.title == "TensorSlice"


def test_a_name_that_two_datasets_share_is_the_training_loops() -> None:
    record = program(
        written(7, "MapDataset:4", "_MapDataset", "other"),
        written(1, "MapDataset:4", "_MapDataset", "decode"),
        feeds=1,
    )
    assert stage(pipeline(TRAINER, SEQUENTIAL, program=record), "Root::Prefetch::Map").title == ("Map(decode)")


def test_a_name_that_two_datasets_share_is_nobodys_when_the_feed_is_unknown() -> None:
    record = program(
        written(7, "MapDataset:4", "_MapDataset", "other"),
        written(1, "MapDataset:4", "_MapDataset", "decode"),
        feeds=None,
    )
    assert stage(pipeline(TRAINER, SEQUENTIAL, program=record), "Root::Prefetch::Map").at is None


def test_of_fused_stages_the_one_with_a_function_gives_the_name() -> None:
    def rows(at: float) -> Iterable[Row]:
        fused = "fused(MapDataset:4,BatchDatasetV2:5)"
        yield iterator("Root", at, at + 20, 1)
        yield iterator("Root::MapAndBatch", at, at + 20, 2, 1, name=fused)

    record = program(
        written(2, "BatchDatasetV2:5", "_BatchDataset", "", 1),
        written(1, "MapDataset:4", "_MapDataset", "decode"),
        feeds=2,
    )
    found = pipeline(lane("python", rows), program=record)
    assert stage(found, "Root::MapAndBatch").title == "MapAndBatch(decode)"


# Nodes


@pytest.mark.parametrize(
    ("path", "kind", "parent"),
    [
        ("Root::Prefetch::Map", "Map", "Root::Prefetch"),
        ("Root::Zip[1]::Map", "Map", "Root::Zip"),
        ("Root::Zip[1]", "Zip", "Root"),
        ("Root", "Root", ""),
    ],
)
def test_the_place_of_a_node_in_the_pipeline(path: str, kind: str, parent: str) -> None:
    assert (Node(path).kind, consumer(path)) == (kind, parent)
