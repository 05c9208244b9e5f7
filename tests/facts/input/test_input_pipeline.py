"""What the iterators of tf.data tell: each stage's work, and what limits the pipeline."""

from tests.facts.kit import *

STEPS, EACH = 4, 100
told = Told()
Lane = Callable[[float], Iterable[Row]]


def lane(name: str, rows: Lane) -> Thread:
    """A thread on which the same happens in every step."""
    return line(name, *(row for step in range(STEPS) for row in rows(step * EACH)))


def same(*rows: Any, name: str = "python") -> Thread:
    """A thread with these rows in every step, their times from its begin on."""
    return lane(name, lambda at: [(row[0], row[1] + at, row[2] + at, *row[3:]) for row in rows])


def pipeline(*lanes: Thread, program: dict[str, Any] | None = None) -> InputPipeline:
    return facts(*lanes, program=program).fact(InputPipeline)


def said(found: InputPipeline) -> object:
    """Each stage, the segments, and what limits the pipeline; ms of a step."""
    names = "path calls work_ms wall_ms concurrency python_ms reading_ms reads asynchronous injected title at"
    stages = [{name: value for name, value in fields(one, names).items() if value} for one in found.stages]
    beside = {"critical": found.critical and found.critical.path, **fields(found, "prefetches work_ms serial_ms")}
    return [*stages, *found.segments, beside]


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

HANDS = same(
    ("PrefetchProduce", 5, 60),
    iterator("Root::Prefetch::Generator", 6, 56, 3, 2, name="GeneratorDataset:7"),
    name="x",
)
REPLICA = same(
    wait(0, 61), iterator("Root", 0.1, 60.7, 1), iterator(PREFETCH, 1, 60, 2, 1, name="Prefetch:16 device_prefetch")
)
MAPS = ROOT, iterator("Root::Map", 0, 30, 2, 1)

told[lambda *lanes: said(pipeline(*lanes))] = {
    "each stage of a sequential pipeline has its own work beside the step": (TRAINER, SEQUENTIAL),
    # The generator by which tf.distribute hands a device its batches runs no Python.
    "waiting for the batches of a replicas device is neither work nor python": (REPLICA, HANDS),
}
told[lambda *rows: said(pipeline(same(*rows)))] = {
    "without a prefetch the trainer does the work itself": (wait(0, 30), ROOT, iterator("Root::Map", 0, 29, 2, 1)),
    "a prefetch above heavy work is not near the root": (*MAPS, iterator("Root::Map::Prefetch", 0, 10, 3, 2)),
    "several batches in a step add up": (*MAPS, iterator("Root", 40, 70, 1), iterator("Root::Map", 40, 70, 2, 1)),
}


@told
def an_iterator_made_for_each_batch_is_followed_where_ids_come_back() -> object:
    """The same memory, and so the same id, serves the prefetch below one root and then below another."""

    def anew(at: float) -> Iterable[Row]:
        root = 10 + int(at) // EACH
        yield wait(at, at + 60)
        yield iterator("Root", at, at + 30, root)
        yield iterator(PREFETCH, at, at + 28, 2, root)
        yield iterator("Root", at + 30, at + 60, root + 90)  # a second batch of the same step
        yield iterator(PREFETCH, at + 31, at + 59, 2, root + 90)

    return said(pipeline(lane("python", anew)))  # near the root, which takes 1 to 2 ms to hand a batch over


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


FUSED = parallel("MapAndBatch", "MapAndBatchProduce")
AFTER = lane("tf_data_private_threadpool/4", lambda at: [executor(at + 70, at + 99, int(at) + 11)])

told[lambda *lanes: said(pipeline(*lanes))] = {
    "a parallel map is a segment of its own and its source another": parallel(
        "ParallelMapV2", "ParallelMapProduce"
    ),
    "so is one of older versions": parallel("LegacyParallelMapV2", "LegacyParallelMapProduce"),
    "the threads of a fused map are counted": FUSED,
    "a fused map on one thread is seen to be sequential": (*FUSED[:3], AFTER),
}


@told
def a_map_within_a_parallel_interleave_runs_on_several_threads() -> object:
    """Its name does not say so, and its work counts once where threads run side by side."""
    path, made = "Root::ParallelInterleaveV4", ("ParallelInterleaveProduce", 0, 41)
    maps = [iterator(f"{path}[{n}]::Map", 0, 40, 10 + n, 2) for n in range(3)]
    workers = [same(made, one, name=f"tf_data_iterator_resource/{n}") for n, one in enumerate(maps)]
    return said(pipeline(same(iterator("Root", 0, 45, 1), iterator(path, 0, 45, 2, 1)), *workers))


# Shapes of pipelines


BRANCHES = same(
    ("PrefetchProduce", 0, 30),
    iterator("Root::Prefetch::Zip", 0, 30, 3, 2),
    iterator("Root::Prefetch::Zip[0]::Map", 0, 20, 4, 3),
    iterator("Root::Prefetch::Zip[1]::Map", 20, 25, 5, 3),
    name="b",
)
VALIDATION = [
    iterator(path, 70, 95, n, n - 1 if n > 91 else 0) for n, path in enumerate(("Root", PREFETCH, MAP), 91)
]

told[lambda *lanes: said(pipeline(*lanes))] = {
    "a zip keeps its branches apart": (same(ROOT, iterator(PREFETCH, 0, 30, 2, 1)), BRANCHES),
    "a validation is kept out": (TRAINER, SEQUENTIAL, same(*VALIDATION, name="tf_data_iterator_get_next/9")),
}


@told
def the_iterators_of_each_repetition_are_one_stage() -> object:
    def rows(at: float) -> Iterable[Row]:
        epoch = int(at // EACH)
        yield iterator("Root", at, at + 30, 1)
        yield iterator("Root::Map", at, at + 30, 2, 1)
        yield iterator(f"Root::Map::ForeverRepeat[{epoch}]::Range", at, at + 10, 30 + epoch, 2)

    return said(pipeline(lane("python", rows)))


@told
def the_pipelines_of_two_epochs_are_one() -> object:
    def rows(at: float) -> Iterable[Row]:
        epoch = 10 if at < 2 * EACH else 20
        yield iterator("Root", at, at + 30, epoch)
        yield iterator("Root::Map", at, at + 20, epoch + 1, epoch)

    found = facts(lane("python", rows))
    return {"batches": found.fact(Iterators).batches, "stages": found.fact(InputPipeline).stages}


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


@told
def work_in_outlying_steps_does_not_count() -> object:
    steps = [marker(n, (0 if n == 0 else 900 + 100 * n), 1000 + 100 * n) for n in range(6)]
    works = [(0.0, 800), *((900.0 + 100 * n, 30) for n in range(1, 6))]
    rows = [
        row
        for at, ms in works
        for row in (iterator("Root", at, at + ms, 1), iterator("Root::Map", at, at + ms, 2, 1))
    ]
    end: Row = ("tfdoctor_end", 1500, 1500)
    return said(chart(trace([line("python", *steps, end), line("x", *rows)])).fact(InputPipeline))


FILES = [("r:ReadFile", a, b) for a, b in [(18, 28), (30, 35), (58, 60)]]

told[lambda *runs: stage(pipeline(TRAINER, CALLING, same(*runs, name="tf_Compute/1")), MAP)] = {
    "other threads work for a map": [executor(17, 55, 50)],
    "python that they run for it": [executor(17, 55, 50), ("EagerPyFunc:EagerPyFunc", 18, 53)],
    "python outside of the pipeline": [executor(17, 55, 999), ("EagerPyFunc:EagerPyFunc", 18, 53)],
    "files that they read for it, and one outside of the function": [executor(17, 55, 50), *FILES],
}


@told
def a_generators_work_is_python_of_its_datasets_line_or_of_the_method_of_a_keras_dataset() -> object:
    flat = iterator("Root::FlatMap", 0, 30, 2, 1, name="FlatMapDataset:7")
    rows = same(ROOT, flat, iterator("Root::FlatMap[0]::Generator", 0, 28, 3, 2))
    record = program(written(1, "FlatMapDataset:7", "_FlatMapDataset"), feeds=1)
    of_keras = {**record, "run": {"batches_at": ["/home/me/data.py", 40]}}
    return [one for given in (record, of_keras) for one in pipeline(rows, program=given).stages]


told[lambda *row: pipeline(same(row, name="tf_Compute/1"))] = {
    "a producer outside of the window": wait(0, 60),
    "input from elsewhere": ("m/c:Conv2D", 0, 5),
    "a profiler that leaves out the handle": iterator(PREFETCH, 1, 5, 2),
}


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


test_input_pipeline = told.test("input_pipeline")

test_the_place_of_a_node_in_the_pipeline = Names(__file__, "nodes").test(
    lambda path: [Node(path).kind, consumer(path)]
)
