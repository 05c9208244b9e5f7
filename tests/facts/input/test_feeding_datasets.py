"""What datasets are like, from the record that the agent wrote."""

from tests.builders import program_of
from tests.facts.kit import *
from tfdoctor.facts.input.dataset_properties import repeatable, spec_bytes
from tfdoctor.facts.input.feeding_datasets import PATHS
from tfdoctor.facts.run.program import kind_of

IMAGE = "TensorSpec(shape=(48, 48, 3), dtype=tf.float32, name=None)"
LABEL = "TensorSpec(shape=(), dtype=tf.int64, name=None)"
PAIR = f"({IMAGE}, {LABEL})"
BATCHED = "TensorSpec(shape=(None, 48, 48, 3), dtype=tf.float32, name=None)"


def fed_dataset(number: int, kind: str, **more: Any) -> Dataset:
    inputs = (number - 1,) if number else ()
    return Dataset(id=number, kind=kind, **({"inputs": inputs, "cardinality": 320} | more))


def properties(*datasets: Dataset, seen: int = 0, stop_after: bool = False, **settings: Any) -> DatasetProperties:
    """The datasets stand source first."""
    program = Program(datasets=datasets, feeds=datasets[-1].id, settings=RunSettings(**settings))
    told = manifest(steps=StepsSeen(seen=seen), plan=CapturePlan(stop_after=stop_after))
    return DatasetProperties.measure(program, recording(manifest=told), None)


SOURCE = fed_dataset(0, "_TensorSliceDataset")


@cases(
    (PAIR, None, 48 * 48 * 3 * 4 + 8),
    (LABEL, None, 8),
    (BATCHED, 32, 32 * 48 * 48 * 3 * 4),
    (BATCHED, None, None),
    ("TensorSpec(shape=(None, None, 3), dtype=tf.uint8, name=None)", 32, None),
    ("TensorSpec(shape=(), dtype=tf.string, name=None)", None, None),
    (f"({IMAGE}, RaggedTensorSpec(TensorShape([None]), tf.int32, 1, tf.int64))", None, None),
    ("TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)", None, None),
    ("", None, None),
    (f"({', '.join([LABEL] * 20)}"[:500], None, None),
)
def test_the_bytes_of_an_element(spec: str, batch: int | None, size: int | None) -> None:
    assert spec_bytes(spec, batch) == size


@each("_ParallelMapDataset", "ParallelMapDataset")
def test_a_kind_has_one_name_in_all_versions(name: str) -> None:
    assert kind_of(Dataset(id=0, kind=name)) == "ParallelMap"
    assert kind_of(Dataset(id=0, kind="TextLineDatasetV2")) == "TextLine"


@cases(
    ({"Cast", "DecodePng"}, set(), True),
    ({"RandomUniform", "Cast"}, {"RandomUniform"}, False),
    ({"StatelessRandomUniformV2"}, set(), False),
    ({"SampleDistortedBoundingBoxV2"}, {"SampleDistortedBoundingBoxV2"}, False),
    ({"Assert", "If", "LookupTableFindV2"}, {"Assert", "If", "LookupTableFindV2"}, True),
    ({"TFRecordDataset"}, {"TFRecordDataset"}, True),
    ({"ReadVariableOp"}, {"ReadVariableOp"}, None),
    ({"EagerPyFunc"}, {"EagerPyFunc"}, None),
    (None, None, None),
)
def test_whether_a_function_does_the_same_each_time(
    *, types: set[str] | None, stateful: set[str] | None, same: bool | None
) -> None:
    mapped = Dataset(
        id=0,
        kind="_MapDataset",
        function="decode",
        types=None if types is None else frozenset(types),
        stateful=None if stateful is None else frozenset(stateful),
    )
    assert repeatable(mapped) is same


@cases(
    ("_BatchDataset", {}, True),
    ("_ShuffleDataset", {}, False),
    ("_ShuffleDataset", {"reshuffle_each_iteration": False}, True),
    ("_RandomDataset", {}, None),
    ("_MyDataset", {}, None),
)
def test_datasets_without_a_function(kind: str, more: Any, *, same: bool | None) -> None:
    assert repeatable(Dataset(id=0, kind=kind, parameters=DatasetParameters(**more))) is same


REPEATED = fed_dataset(1, "_RepeatDataset", cardinality=3200)


@cases(
    ([REPEATED], fed_dataset(2, "_MapDataset", element=PAIR, cardinality=3200), 320, 320 * (48 * 48 * 3 * 4 + 8)),
    ([], fed_dataset(1, "_FilterDataset", cardinality=None), 320, None),  # keeps at most all
    ([], fed_dataset(1, "_FlatMapDataset", cardinality=None, element=LABEL), None, None),  # what files hold
)
def test_elements_and_bytes_of_one_pass_leave_repetitions_out(
    between: list[Dataset], last: Dataset, elements: int | None, nbytes: int | None
) -> None:
    found = properties(SOURCE, *between, last)
    assert (found.elements(last), found.nbytes(last)) == (elements, nbytes)


BATCH = fed_dataset(1, "_BatchDataset", parameters=DatasetParameters(batch_size=32), cardinality=10)

FILES = fed_dataset(1, "_FlatMapDataset", cardinality=None)
ENDLESS = fed_dataset(1, "_RepeatDataset", cardinality=-1)
BATCHES = replace(BATCH, id=2, inputs=(1,), cardinality=-1)


@cases(
    ([BATCH], 25, {"epochs": 4, "steps_per_epoch": 10}, 4.0),
    ([BATCH], 25, {"epochs": 1, "steps_per_epoch": 10}, 1.0),
    ([BATCH], 25, {"epochs": 1, "steps_per_epoch": 160}, 16.0),
    ([BATCH], 25, {}, 2.5),
    ([BATCH], 25, {"stop_after": True}, None),  # the run was not seen to its end
    ([ENDLESS, BATCHES], 40, {}, 4.0),  # repeating before batching counts
    ([FILES], 99, {"epochs": 6, "steps_per_epoch": None}, 6.0),  # files of unknown length: once an epoch
    ([FILES], 99, {"epochs": 6, "steps_per_epoch": 20}, None),
)
def test_passes_over_the_data(datasets: list[Dataset], seen: int, settings: Any, passes: float | None) -> None:
    assert properties(SOURCE, *datasets, seen=seen, **settings).passes == passes


SERIES = "TensorSpec(shape=(None, None, 16), dtype=tf.float32, name=None)"
SHORT = "TensorSpec(shape=(128, 64, 16), dtype=tf.float32, name='x')"


@cases(
    ((SHORT,), 128 * 64 * 16 * 4),
    ((SHORT, SHORT), None),
    ((SHORT.replace("float32", "float16"),), None),
    ((SHORT.replace("16)", "8)"),), None),
    ((SHORT.replace("128, ", ""),), None),
    ((SHORT.replace("128", "None"),), None),
)
def test_the_training_function_may_know_the_shape_of_a_batch(given: tuple[str, ...], size: int | None) -> None:
    """timeseries_dataset_from_array leaves the length of its windows open."""
    program = Program(datasets=(replace(SOURCE, element=SERIES),), feeds=0)
    graph = {"name": "step", "operations": [], "kind": "function", "given": given}
    found = DatasetProperties.measure(program, recording({"graphs": [graph]}, manifest=manifest()), None)
    assert found.element_bytes(found.chain[0]) == size


def test_the_passes_that_the_trace_shows_are_the_least() -> None:
    """Records in files are not counted before they are read."""
    records = fed_dataset(0, "TFRecordDatasetV2", cardinality=None)
    program = Program(datasets=(records,), feeds=0)
    for completed, passes in ((1, None), (2, 2.0)):
        nodes = {"Root": Node("Root", repetition=completed)}
        found = DatasetProperties.measure(program, recording(manifest=manifest()), Iterators(nodes))
        assert found.passes == passes


@cases(
    ("_DirectedInterleaveDataset", 320, 0.5), ("_DirectedInterleaveDataset", None, None), ("_ZipDataset", 320, 1.0)
)
def test_pipelines_that_repeat_before_they_meet(kind: str, length: int | None, passes: float | None) -> None:
    """All of them make one pass together; the longer side of a Zip gives its length alone."""
    other = fed_dataset(1, "_TensorSliceDataset", inputs=(), cardinality=length)
    repeated = fed_dataset(2, "_RepeatDataset", cardinality=-1)
    both = fed_dataset(3, kind, inputs=(0, 2), cardinality=320)
    taken = fed_dataset(4, "_TakeDataset")
    assert properties(SOURCE, other, repeated, both, taken, seen=320).passes == passes


@cases((4, 4.0), (None, None))
def test_arrays_beside_their_indices_are_passed_once_an_epoch(epochs: int | None, passes: float | None) -> None:
    """Batches of indices, joined with the arrays, which repeat for each batch (ArrayDataAdapter, Keras 3)."""
    arrays = fed_dataset(2, "_TensorDataset", inputs=(), cardinality=1)
    again = fed_dataset(3, "_RepeatDataset", inputs=(2,), cardinality=-1)
    both = fed_dataset(4, "_ZipDataset", inputs=(1, 3), cardinality=None)
    settings = RunSettings(epochs=epochs, steps_per_epoch=None)
    program = Program(datasets=(SOURCE, FILES, arrays, again, both), feeds=4, settings=settings)
    nodes = Iterators({"Root": Node("Root", repetition=25)})
    found = DatasetProperties.measure(program, recording(manifest=manifest()), nodes)
    assert (found.passes, found.repeats) == (passes, False)


# Which files a pipeline reads, and which stages tf.data sizes by itself, from the record that the agent wrote.


def measured(*datasets: Dataset) -> SourceFiles:
    """The datasets stand source first."""
    return SourceFiles.measure(Program(datasets=datasets, feeds=datasets[-1].id))


def dataset(number: int, kind: str, **more: Any) -> Dataset:
    return fed_dataset(number, kind, **{"cardinality": None} | more)


RECORDS = dataset(2, "_InterleaveDataset")


def test_a_list_of_files_says_how_many_and_where() -> None:
    listed = dataset(0, "_TensorSliceDataset", files=FileList(count=40, scheme="gs", nbytes=None))
    found = measured(listed, dataset(1, "_RepeatDataset"), RECORDS)
    assert (found.count, found.network, found.remote) == (40, "gs://", True)


@cases(
    ("nfs4", "NFS", False),
    ("fuse.gcsfuse", "Cloud Storage FUSE", False),
    ("ext4", "", True),
    ("overlay", "", False),
    ("9p", "", False),
    ("", "", False),
)
def test_a_mount_says_whether_files_lie_across_a_network(file_system: str, network: str, *, local: bool) -> None:
    files = FileList(count=40, file_system=file_system)
    found = measured(dataset(0, "_TensorSliceDataset", files=files), dataset(1, "_MapDataset"))
    assert (found.network, found.local) == (network, local)


def test_an_older_record_says_how_many_elements_an_interleave_takes() -> None:
    listed = dataset(0, "_TensorSliceDataset", element=PATHS, cardinality=8)
    found = measured(listed, dataset(1, "_RepeatDataset", element=PATHS, cardinality=-1), RECORDS)
    assert (found, found.remote) == (SourceFiles(8), False)


LISTED = dataset(0, "_TensorSliceDataset", element=PATHS, cardinality=8)
LISTS = [Dataset(id=at, kind="_TensorSliceDataset", files=FileList(count=2 + at)) for at in (0, 1)]


IMAGES = "TensorSpec(shape=(None, 224, 224, 3), dtype=tf.float32, name=None)"


def buffers(options: dict[str, Any] | None = None, **parameters: int) -> TunedBuffers:
    """The pipeline of a map and a prefetch of batches of 64 images, with these parameters of the prefetch."""
    mapped = {"id": 0, "class": "_MapDataset", "parameters": {"num_parallel_calls": 4}}
    batched = {"id": 1, "class": "_BatchDataset", "inputs": [0], "parameters": {"batch_size": 64}}
    given = {"parameters": parameters, "options": options or {}, "element_spec": IMAGES}
    ahead = {"id": 2, "class": "_PrefetchDataset", "inputs": [1], "at": ["/home/me/train.py", 22], **given}
    return TunedBuffers.measure(program_of(datasets=[mapped, batched, ahead], feeds=2, run={"batch_size": 64}))


def test_a_prefetch_of_autotune_holds_batches() -> None:
    found = buffers(buffer_size=-1)
    assert [one.id for one in found.stages] == [2]
    assert found.largest_bytes == 64 * 224 * 224 * 3 * 4
    assert found.remedy.at == Location("/home/me/train.py", 22)
    with pytest.raises(Unavailable, match="no buffer"):  # the program chose the size
        buffers(buffer_size=2)
    with pytest.raises(Unavailable, match="limits the memory"):
        buffers({"autotune.ram_budget": 1 << 30}, buffer_size=-1)


# What converting the arguments takes, from the trace and what the agent noted of two calls.

STEPS = 6
MATRIX = {"place": "0", "kind": "numpy", "dtype": "float64", "shape": [300, 300], "same": True}
LABELS = {"place": "1", "kind": "numpy", "dtype": "int64", "shape": [300], "same": False}
TENSOR = {"place": "2", "kind": "tensor", "dtype": "<dtype: 'float32'>", "shape": [300]}


def converting(n: int, name: str = "step", tracing: str = "notTraced-nonXla") -> Iterable[Row]:
    """A call that converts for 2 and for 1 ms before its marked part begins."""
    at = 10.0 * n
    yield (name, at, at + 8, {"tf_function_call": tracing})
    yield ("tf.constant", at + 0.5, at + 2.5)
    yield ("tf.constant", at + 2.5, at + 3.5)
    yield marker(n, at + 4, at + 8)


def conversions(*arguments: dict[str, Any], function: str = "step", rows: list[Row] | None = None) -> Conversions:
    fed = {"at": ["train.py", 41], "function": function, "arguments": list(arguments)}
    shown = rows or [row for n in range(STEPS) for row in converting(n)]
    beside = recording({"python": {"places": [], "fed": fed}})
    return chart(trace(host=[line("python", *shown)]), beside).fact(Conversions)


def test_each_argument_has_the_time_of_its_conversions() -> None:
    found = conversions(MATRIX, LABELS, TENSOR)
    first, second = found.arrays  # tensors are none
    assert found.at == Location("train.py", 41)
    # The last step has no end, and the first conversion lies before the first step.
    assert (first.between_ms, second.between_ms) == pytest.approx((2.0, 1.0), rel=0.2)
    assert (first.host_ms, first.same, second.same, first.nbytes) == (0.0, True, False, 720_000)


def test_a_cast_that_alone_reads_an_argument_is_found() -> None:
    double, single = ["float64", [300, 300]], ["float32", [300, 300]]
    operations = [
        graph_operation("adj", "Placeholder", [], [double], **{"from": []}),
        graph_operation("Cast", "Cast", [double], [single], **{"from": [0]}),
    ]
    fed = {"at": ["train.py", 41], "function": "step", "arguments": [MATRIX, LABELS]}
    graphs = [{"name": "step", "operations": operations}]
    beside = recording({"python": {"places": [], "fed": fed}, "graphs": graphs})
    starts = [(n + 1, 10.0 * n) for n in range(STEPS)]
    rows = [row for n in range(STEPS) for row in converting(n)]
    rows += [("FunctionRun", at + 4, at + 8, {"id": n}) for n, at in starts]
    pool = [executor(at + 5, at + 8, n) for n, at in starts]
    pool += [("Cast:Cast", at + 5, at + 7) for _, at in starts]
    found = chart(trace(host=[line("python", *rows), line("pool", *pool)]), beside).fact(Conversions)
    first, second = found.arrays
    assert first.cast
    assert (first.cast.type, first.cast_to) == ("Cast", "float32")
    assert first.cast.ms == pytest.approx(2.0, rel=0.2)
    assert second.cast is None


@each({"python": {"places": []}}, {"python": {"fed": None}})
def test_a_recorded_run_without_such_a_call_says_which_calls_are_looked_at(record: Any) -> None:
    """fit() takes arrays itself: the training function is given an iterator."""
    with pytest.raises(Unavailable, match="looked at only where") as why:
        chart(trace(host=[line("python", *converting(0))]), recording(record)).fact(Conversions)
    assert "tfdoctor profile" not in str(why.value)


TABLE = {"place": "table", "kind": "numpy", "dtype": "float64", "shape": [60000, 100], "same": True}
TOKENS = {"place": "tokens", "kind": "numpy", "dtype": "int64", "shape": [64, 24], "same": False}


def fed(*arguments: dict[str, Any], starts: bool = True) -> Chart:
    """A session that prepares what it is fed for 3 of 6 ms before it starts the graph, in steps of 8 ms."""
    feeds = {"at": ["train.py", 39], "arguments": list(arguments)}
    begins = [(n, 8.0 * n) for n in range(STEPS)]
    run = "SessionRun" if starts else "FunctionRun"
    rows: list[Row] = [marker(n, at, at + 6.0) for n, at in begins]
    rows += [(run, at + 3.0, at + 6.0, {"id": n + 1}) for n, at in begins]
    pool: list[Row] = [executor(at + 4, at + 6, n + 1) for n, at in begins]
    pool += [("a:Mul", at + 4, at + 6) for _, at in begins]
    host = [line("python", *rows), line("pool", *pool)]
    return chart(trace(host=host), recording({"python": {"places": [], "feeds": feeds}}))


def test_the_time_before_a_session_starts_its_graph_goes_to_the_arrays_by_their_bytes() -> None:
    found = fed({**TABLE, "fed_as": "float32"}, {**TABLE, "fed_as": "float64"}).fact(Conversions)
    first, second = found.arrays
    assert found.at == Location("train.py", 39)
    assert (first.host_ms, second.host_ms) == pytest.approx((3.0 * 12 / 28, 3.0 * 16 / 28), rel=0.05)
    assert (first.cast_to, first.place, first.fed, first.between_ms) == ("float32", "table", True, 0.0)


def test_a_small_array_gets_none_of_pythons_own_work_in_the_session() -> None:
    """Trap: weights of ten classes, alone beside a small batch."""
    found = fed({**TOKENS, "shape": [10], "same": True}, TOKENS).fact(Conversions)
    assert found.host_ms < 0.1


# Which lines make input in Python, from the stack samples of all threads.

KERAS = "keras.src.trainers.data_adapters.py_dataset_adapter.PyDatasetAdapter._finite_generator"
TF_DATA = "tensorflow.python.ops.script_ops.FuncRegistry.__call__"
WAIT = "threading.Condition.wait"


def place(line: int, seen: int, entry: str = KERAS, **more: Any) -> SeenPlace:
    return SeenPlace(seen, ("train.py", line), entry=entry, **more)


def input_lines(
    *others: SeenPlace, trainer: tuple[SeenPlace, ...] = (), program: Program | None = None
) -> InputLines:
    record = ProgramRecord(python=PythonRecord(places=trainer, others=others))
    return InputLines.measure(recorded(record), Framework(), program, None)


def seen(lines: InputLines) -> list[tuple[int, int]]:
    return [(line.at.line, line.seen) for line in lines.lines if line.at]


def test_the_places_of_a_line_are_joined() -> None:
    caller = ("train.py", 48)
    one = place(36, 3, calls="numpy.stack", caller=caller)
    lines = input_lines(one, place(36, 6, calls="numpy.load", caller=caller), place(39, 3))
    assert seen(lines) == [(36, 9), (39, 3)]
    first = lines.lines[0]
    assert (first.main_call, first.caller) == ("numpy.load", Location("train.py", 48))


def test_other_threads_than_the_trainers_do_not_count_while_input_works() -> None:
    fit = place(56, 90, entry="", inside=True)
    assert seen(input_lines(trainer=(place(36, 9, inside=True), fit))) == [(36, 9)]
    assert seen(input_lines(place(36, 9), place(80, 30, entry=""))) == [(36, 9)]


def test_where_input_waits_the_users_own_threads_count() -> None:
    lines = input_lines(place(36, 9, runs=WAIT), place(80, 30, entry=""), place(81, 9, "", runs=WAIT))
    assert seen(lines) == [(80, 30)]
    assert lines.lines[0].makes is False


def test_threads_are_counted_by_the_samples_of_the_trainer() -> None:
    """Two samples of a thread for three of the trainer's, which is in each; a wait is no work."""
    fit = place(56, 30, entry="", inside=True)
    others = place(36, 18), place(39, 2), place(36, 9, runs=WAIT), place(80, 5, entry="")
    assert input_lines(*others, trainer=(fit,)).threads == pytest.approx(2 / 3)
    assert input_lines(trainer=(place(36, 9, inside=True), fit)).threads == 0.0


def test_python_within_the_training_function_is_told_from_input() -> None:
    program = Program(operations=(Operation(name="py", type="EagerPyFunc"),))
    assert seen(input_lines(place(36, 9), place(20, 9, TF_DATA), program=program)) == [(36, 9)]
    with pytest.raises(Unavailable, match="training function runs Python"):
        input_lines(place(20, 9, TF_DATA), program=program)
    assert seen(input_lines(place(20, 9, TF_DATA), program=Program())) == [(20, 9)]


def recorded(record: ProgramRecord) -> Recording:
    return Recording(None, None, (), record, (), ())


ZIPPED = Dataset(id=2, kind="_ZipDataset", inputs=(0, 1))

test_what_is_not_known = unavailable(
    (lambda: DatasetProperties.measure(Program(), recording(), None), r"no recorded tf\.data pipeline"),
    (lambda: measured(LISTED, dataset(1, "_BatchDataset")), "files that the pipeline"),  # nothing opens these texts
    (lambda: measured(*LISTS, ZIPPED), "files that the pipeline reads"),  # two lists are not guessed from
    (lambda: conversions(MATRIX), "does not show"),  # two arrays are converted
    (lambda: conversions(MATRIX, LABELS, function="another"), "does not show"),
    (lambda: conversions({"shape": [300, 300], "anew": True}), "not recorded"),  # by an older version
    (lambda: chart(trace(host=[line("p", *converting(0))]), recording()).fact(Conversions), "tfdoctor profile"),
    (lambda: fed(TABLE, {"place": "rows", "kind": "python"}).fact(Conversions), "fed lists beside arrays"),
    (lambda: fed(TABLE, starts=False).fact(Conversions), "does not show how Session"),
    (lambda: input_lines(place(36, 9, runs="multiprocessing.connection.wait")), "worker processes"),
    (
        lambda: InputLines.measure(recorded(ProgramRecord(python=PythonRecord())), Framework(), None, None),
        "not sampled",
    ),  # by an older version
)
