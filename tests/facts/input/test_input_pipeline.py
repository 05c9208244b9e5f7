"""What the iterators of tf.data tell: each stage's work, and what limits the pipeline."""

from tests.facts.kit import *
from tfdoctor.facts.input.iterators import consumer

STEPS, EACH = 4, 100

Lane = Callable[[float], Iterable[Row]]


def lane(name: str, rows: Lane) -> Thread:
    """A thread on which the same happens in every step."""
    return line(name, *(row for step in range(STEPS) for row in rows(step * EACH)))


def same(*rows: Any, name: str = "python") -> Thread:
    """A thread with these rows in every step, their times from its begin on."""
    return lane(name, lambda at: [(row[0], row[1] + at, row[2] + at, *row[3:]) for row in rows])


def pipeline(*lanes: Thread, program: dict[str, Any] | None = None) -> InputPipeline:
    return facts(*lanes, program=program).fact(InputPipeline)


def facts(*lanes: Thread, program: dict[str, Any] | None = None) -> Chart:
    return chart(trace([markers(STEPS, EACH), *lanes]), recording(program))


def stage(found: InputPipeline, path: str) -> StageTime:
    return next(one for one in found.stages if one.path == path)


ROOT = iterator("Root", 0, 30, 1)
PREFETCH, MAP, SLICES = "Root::Prefetch", "Root::Prefetch::Map", "Root::Prefetch::Map::TensorSlice"
TRAINER = same(  # waits 60 ms for what a prefetch that tf.data injected hands over
    wait(0, 61),
    iterator("Root", 0.1, 60.7, 1),
    iterator(PREFETCH, 0.15, 60.65, 2, 1, name="inject/prefetch_Map/_3"),
)
PRODUCED = (  # a batch: 40 ms of a map on one thread, 10 ms of its source
    ("PrefetchProduce", 5, 60),
    iterator(MAP, 6, 56, 3, 2, name="MapDataset:4"),
    iterator(SLICES, 6, 16, 4, 3, name="TensorSliceDataset:0"),
)
SEQUENTIAL = same(*PRODUCED, name="tf_data_iterator_resource/2")
CALLING = same(*PRODUCED, captured(17, 56, 50), name="tf_data_iterator_resource/2")


def test_each_stage_of_a_sequential_pipeline_has_its_own_work_beside_the_step() -> None:
    found = pipeline(TRAINER, SEQUENTIAL)
    assert [one.kind for one in found.stages] == ["Root", "Prefetch", "Map", "TensorSlice"]  # consumers first
    ahead, mapped, source = (stage(found, path) for path in (PREFETCH, MAP, SLICES))
    assert (mapped.work_ms, mapped.calls, source.work_ms) == pytest.approx((40, 1, 10))
    assert (ahead.work_ms, ahead.asynchronous) == (0, True)  # waiting for a prefetch is no work
    assert (found.prefetches, ahead.injected, mapped.injected) == (True, True, False)
    assert found.slowest
    assert dict(found.slowest.stages) == pytest.approx({MAP: 40, SLICES: 10})
    assert found.slowest.overlapped
    assert (found.work_ms, found.serial_ms) == pytest.approx((50, 0.1))
    assert found.critical
    assert (found.critical.path, found.critical.concurrency) == pytest.approx((MAP, 1))


def test_waiting_for_the_batches_of_a_replicas_device_is_neither_work_nor_python() -> None:
    """The generator by which tf.distribute hands a device its batches runs no Python."""
    root = iterator("Root", 0.1, 60.7, 1)
    trainer = same(wait(0, 61), root, iterator(PREFETCH, 1, 60, 2, 1, name="Prefetch:16 device_prefetch"))
    hands = iterator("Root::Prefetch::Generator", 6, 56, 3, 2, name="GeneratorDataset:7")
    handed = stage(
        pipeline(trainer, same(("PrefetchProduce", 5, 60), hands, name="x")), "Root::Prefetch::Generator"
    )
    assert (handed.work_ms, handed.wall_ms, handed.python_ms) == (0.0, 0.0, 0.0)


def test_without_a_prefetch_the_trainer_does_the_work_itself() -> None:
    found = pipeline(same(wait(0, 30), ROOT, iterator("Root::Map", 0, 29, 2, 1)))
    assert not found.prefetches
    assert found.serial_ms == pytest.approx(30)
    assert [segment.overlapped for segment in found.segments] == [False]


def test_an_iterator_made_for_each_batch_is_followed_where_ids_come_back() -> None:
    """The same memory, and so the same id, serves the prefetch below one root and then below another."""

    def anew(at: float) -> Iterable[Row]:
        root = 10 + int(at) // EACH
        yield wait(at, at + 60)
        yield iterator("Root", at, at + 30, root)
        yield iterator(PREFETCH, at, at + 28, 2, root)
        yield iterator("Root", at + 30, at + 60, root + 90)  # a second batch of the same step
        yield iterator(PREFETCH, at + 31, at + 59, 2, root + 90)

    found = pipeline(lane("python", anew))
    assert [one.kind for one in found.stages] == ["Root", "Prefetch"]
    assert found.prefetches  # though the root takes 1 to 2 ms to hand a batch over


def test_a_prefetch_above_nothing_but_heavy_work_is_not_near_the_root() -> None:
    rows = ROOT, iterator("Root::Map", 0, 30, 2, 1), iterator("Root::Map::Prefetch", 0, 10, 3, 2)
    assert not pipeline(same(*rows)).prefetches


# Parallel maps


def parallel(kind: str, produces: str) -> tuple[Thread, ...]:
    """A map whose function runs 30 ms for each batch on each of two threads."""

    def runner(at: float) -> Iterable[Row]:
        yield (produces, at + 30, at + 34)
        yield iterator(f"Root::{kind}::Range", at + 30, at + 32, 3, 2)
        yield captured(at + 32, at + 33, int(at) + 10)
        yield captured(at + 33, at + 34, int(at) + 11)

    return (
        same(iterator("Root", 0, 20, 1), iterator(f"Root::{kind}", 0, 20, 2, 1, name="MapDataset:4")),
        lane("tf_data_iterator_resource/2", runner),
        lane("tf_data_private_threadpool/3", lambda at: [executor(at + 40, at + 70, int(at) + 10)]),
        lane("tf_data_private_threadpool/4", lambda at: [executor(at + 40, at + 70, int(at) + 11)]),
    )


@each("ParallelMapV2", "MapAndBatch", "LegacyParallelMapV2")
def test_the_threads_of_a_parallel_map_are_counted(kind: str) -> None:
    mapped = stage(pipeline(*parallel(kind, f"{kind.removesuffix('V2')}Produce")), f"Root::{kind}")
    assert mapped.asynchronous
    assert (mapped.work_ms, mapped.wall_ms, mapped.concurrency) == pytest.approx((60, 30, 2))


def test_a_parallel_map_is_a_segment_of_its_own_and_its_source_another() -> None:
    found = pipeline(*parallel("ParallelMapV2", "ParallelMapProduce"))
    beside = {path: s.ms for s in found.segments if s.overlapped for path in s.stages}
    assert beside == pytest.approx({"Root::ParallelMapV2": 30, "Root::ParallelMapV2::Range": 2})
    assert len([s for s in found.segments if s.overlapped]) == 2
    assert found.critical
    assert (found.critical.kind, found.prefetches) == ("ParallelMapV2", True)


def test_a_fused_map_on_one_thread_is_seen_to_be_sequential() -> None:
    two = parallel("MapAndBatch", "MapAndBatchProduce")
    after = lane("tf_data_private_threadpool/4", lambda at: [executor(at + 70, at + 99, int(at) + 11)])
    assert stage(pipeline(*two[:3], after), "Root::MapAndBatch").concurrency == pytest.approx(1)


def test_a_map_within_a_parallel_interleave_runs_on_several_threads() -> None:
    """Its name does not say so, and its work counts once where threads run side by side."""
    path, made = "Root::ParallelInterleaveV4", ("ParallelInterleaveProduce", 0, 41)
    maps = [iterator(f"{path}[{n}]::Map", 0, 40, 10 + n, 2) for n in range(3)]
    workers = [same(made, one, name=f"tf_data_iterator_resource/{n}") for n, one in enumerate(maps)]
    found = pipeline(same(iterator("Root", 0, 45, 1), iterator(path, 0, 45, 2, 1)), *workers)
    mapped = stage(found, f"{path}::Map")
    assert mapped.calls == 3
    assert (mapped.work_ms, mapped.concurrency, found.work_ms) == pytest.approx((120, 3, 40))


# Shapes of pipelines


def test_a_zip_keeps_its_branches_apart() -> None:
    branches = (
        ("PrefetchProduce", 0, 30),
        iterator("Root::Prefetch::Zip", 0, 30, 3, 2),
        iterator("Root::Prefetch::Zip[0]::Map", 0, 20, 4, 3),
        iterator("Root::Prefetch::Zip[1]::Map", 20, 25, 5, 3),
    )
    found = pipeline(same(ROOT, iterator(PREFETCH, 0, 30, 2, 1)), same(*branches, name="b"))
    work = {one.path.removeprefix("Root::Prefetch"): one.work_ms for one in found.stages}
    assert work == pytest.approx({"Root": 0, "": 0, "::Zip": 5, "::Zip[0]::Map": 20, "::Zip[1]::Map": 5})
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
    paths = enumerate(("Root", PREFETCH, MAP), 91)
    rows = [iterator(path, 70, 95, n, n - 1 if n > 91 else 0) for n, path in paths]
    found = pipeline(TRAINER, SEQUENTIAL, same(*rows, name="tf_data_iterator_get_next/9"))
    assert stage(found, MAP).work_ms == pytest.approx(40)
    assert stage(found, "Root").calls == 1


def test_the_pipelines_of_two_epochs_are_one() -> None:
    def rows(at: float) -> Iterable[Row]:
        epoch = 10 if at < 2 * EACH else 20
        yield iterator("Root", at, at + 30, epoch)
        yield iterator("Root::Map", at, at + 20, epoch + 1, epoch)

    measured = facts(lane("python", rows))
    assert measured.fact(Iterators).batches == STEPS
    assert stage(measured.fact(InputPipeline), "Root::Map").work_ms == pytest.approx(20)


@cases(((4,) * (STEPS - 3) + (7, 1, 1), True), ((7,) * STEPS, False))
def test_a_dataset_that_each_epoch_makes_anew_keeps_its_function(order: tuple[int, ...], *, remade: bool) -> None:
    """The record contains the one that was alive at its end; the trace saw others too."""

    def rows(at: float) -> Iterable[Row]:
        number = order[round(at / EACH)]
        yield iterator("Root", at, at + 30, number, name=f"BatchDatasetV2:{number + 1}")
        name = f"fused(MapDataset:{number},BatchDatasetV2:{number + 1})"
        yield iterator("Root::MapAndBatch", at, at + 20, 50 + number, number, name=name)

    record = program(
        written(2, "BatchDatasetV2:8", "_BatchDataset", "", 1),
        written(1, "MapDataset:7", "_MapDataset", "decode"),
        feeds=2,
    )
    measured = facts(lane("python", rows), program=record)
    assert stage(measured.fact(InputPipeline), "Root::MapAndBatch").title == "MapAndBatch(decode)"
    assert measured.fact(Iterators).remade == measured.fact(DatasetProperties).remade == remade
    assert ("build the dataset once" in measured.fact(Cacheable).why) == remade


def test_the_trainers_batches_are_counted() -> None:
    assert facts(TRAINER, SEQUENTIAL).fact(Iterators).batches == STEPS


def test_work_in_outlying_steps_does_not_count() -> None:
    steps = [marker(n, (0 if n == 0 else 900 + 100 * n), 1000 + 100 * n) for n in range(6)]
    works = [(0.0, 800), *((900.0 + 100 * n, 30) for n in range(1, 6))]
    rows = [
        row
        for at, ms in works
        for row in (iterator("Root", at, at + ms, 1), iterator("Root::Map", at, at + ms, 2, 1))
    ]
    end: Row = ("tfdoctor_end", 1500, 1500)
    found = chart(trace([line("python", *steps, end), line("x", *rows)])).fact(InputPipeline)
    assert stage(found, "Root::Map").work_ms == pytest.approx(30)


def test_several_batches_in_a_step_add_up() -> None:
    again = iterator("Root", 40, 70, 1), iterator("Root::Map", 40, 70, 2, 1)
    mapped = stage(pipeline(same(ROOT, iterator("Root::Map", 0, 30, 2, 1), *again)), "Root::Map")
    assert (mapped.work_ms, mapped.calls) == pytest.approx((60, 2))


# Python


@cases(
    ([executor(17, 55, 50)], 0, 0, 0),
    ([executor(17, 55, 50), ("EagerPyFunc:EagerPyFunc", 18, 53)], 35, 0, 0),
    ([executor(17, 55, 999), ("EagerPyFunc:EagerPyFunc", 18, 53)], 0, 0, 0),  # outside of the pipeline
    # of files, one outside of the function
    ([executor(17, 55, 50), *(("r:ReadFile", a, b) for a, b in [(18, 28), (30, 35), (58, 60)])], 0, 15, 2),
    ids=["other threads", "python", "another's python", "files"],
)
def test_what_other_threads_do_for_a_map(runs: list[Row], python: float, reading: float, reads: int) -> None:
    mapped = stage(pipeline(TRAINER, CALLING, same(*runs, name="tf_Compute/1")), MAP)
    assert (mapped.work_ms, mapped.python_ms, mapped.reading_ms) == pytest.approx((40, python, reading))
    assert mapped.reads == reads


def test_a_generators_work_is_python_of_its_datasets_line_or_of_its_own_method() -> None:
    flat = iterator("Root::FlatMap", 0, 30, 2, 1, name="FlatMapDataset:7")
    rows = same(ROOT, flat, iterator("Root::FlatMap[0]::Generator", 0, 28, 3, 2))
    record = program(written(1, "FlatMapDataset:7", "_FlatMapDataset"), feeds=1)
    made = stage(pipeline(rows, program=record), "Root::FlatMap::Generator")
    assert made.python_ms == made.work_ms == pytest.approx(28)
    assert made.at == Location("/home/me/train.py", 11)
    record["run"] = {"batches_at": ["/home/me/data.py", 40]}  # of a Keras dataset
    found = pipeline(rows, program=record)
    assert stage(found, "Root::FlatMap::Generator").at == Location("/home/me/data.py", 40)
    assert stage(found, "Root::FlatMap").at == Location("/home/me/train.py", 11)


@cases(
    (wait(0, 60), "trace more steps"),  # the producer is outside of the window
    (("m/c:Conv2D", 0, 5), "come from elsewhere"),
    (iterator(PREFETCH, 1, 5, 2), "none that passes a batch"),  # a profiler that leaves out the handle
)
def test_what_is_missing_is_said(row: Row, missing: str) -> None:
    with pytest.raises(Unavailable, match=missing):
        pipeline(same(row, name="tf_Compute/1"))


# What the user wrote


def written(number: int, name: str, kind: str, function: str = "", *inputs: int) -> dict[str, Any]:
    return {
        "id": number,
        "class": kind,
        "trace_name": name,
        "inputs": list(inputs),
        "function": {"name": function, "at": ["/home/me/train.py", 3]} if function else None,
        "at": ["/home/me/train.py", number + 10],
    }


def program(*datasets: dict[str, Any], feeds: int | None) -> dict[str, Any]:
    return {"graphs": [], "datasets": list(datasets), "feeds": feeds, "input_kind": "tf.data"}


MINE = written(1, "MapDataset:4", "_MapDataset", "decode")
KERASS = MINE | {"function": {"name": "decode", "at": None}}
OTHER = written(7, "MapDataset:4", "_MapDataset", "other")
SOURCE = written(0, "TensorSliceDataset:0", "_TensorSliceDataset")


@cases(
    (MAP, [SOURCE, MINE | {"inputs": [0]}], 1, "Map(decode)", 11),
    (PREFETCH, [SOURCE, MINE | {"inputs": [0]}], 1, "Prefetch", None),
    (MAP, [KERASS], 1, "Map", 11),  # a function of Keras's own names no stage
    (SLICES, [MINE], 1, "TensorSlice", 11),  # of unknown origin: its consumer's line, not its function
    (MAP, [OTHER, MINE], 1, "Map(decode)", 11),  # a name that two share is the training loop's
    (MAP, [OTHER, MINE], None, "Map", None),  # nobody's where the feed is unknown
)
def test_a_stage_is_joined_to_its_line_by_the_name_that_tf_data_gave_it(
    path: str, datasets: list[dict[str, Any]], feeds: int | None, title: str, at: int | None
) -> None:
    found = stage(pipeline(TRAINER, SEQUENTIAL, program=program(*datasets, feeds=feeds)), path)
    assert (found.title, found.at) == (title, at and Location("/home/me/train.py", at))


@cases(
    ("Root::Prefetch::Map", "Map", "Root::Prefetch"),
    ("Root::Zip[1]::Map", "Map", "Root::Zip"),
    ("Root::Zip[1]", "Zip", "Root"),
    ("Root", "Root", ""),
)
def test_the_place_of_a_node_in_the_pipeline(path: str, kind: str, parent: str) -> None:
    assert (Node(path).kind, consumer(path)) == (kind, parent)
