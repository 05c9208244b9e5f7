"""What datasets are like, from the record that the agent wrote."""

from tests.facts.kit import *
from tfdoctor.facts.input.feeding_datasets import PATHS
from tfdoctor.facts.run.program import kind_of

IMAGE = "TensorSpec(shape=(48, 48, 3), dtype=tf.float32, name=None)"
LABEL = "TensorSpec(shape=(), dtype=tf.int64, name=None)"
PAIR = f"({IMAGE}, {LABEL})"
told = Told()


def fed_dataset(number: int, kind: str, **more: Any) -> Dataset:
    inputs = (number - 1,) if number else ()
    return Dataset(id=number, kind=kind, **({"inputs": inputs, "cardinality": 320} | more))


def properties(*datasets: Dataset, seen: int = 0, stop_after: bool = False, **settings: Any) -> DatasetProperties:
    """The datasets stand source first."""
    program = Program(datasets=datasets, feeds=datasets[-1].id, settings=RunSettings(**settings))
    told = manifest(steps=StepsSeen(seen=seen), plan=CapturePlan(stop_after=stop_after))
    return DatasetProperties.measure(program, recording(manifest=told), None)


SOURCE = fed_dataset(0, "_TensorSliceDataset")

test_the_bytes_of_an_element = Names(__file__, "specs").test(
    lambda spec: [spec_bytes(spec, batch) for batch in (None, 32)]
)


@each("_ParallelMapDataset", "ParallelMapDataset")
def test_a_kind_has_one_name_in_all_versions(name: str) -> None:
    assert kind_of(Dataset(id=0, kind=name)) == "ParallelMap"
    assert kind_of(Dataset(id=0, kind="TextLineDatasetV2")) == "TextLine"


def of_function(types: str | None, stateful: str | None) -> bool | None:
    known = [None if one is None else frozenset(one.split()) for one in (types, stateful)]
    return repeatable(Dataset(id=0, kind="_MapDataset", function="decode", types=known[0], stateful=known[1]))


test_whether_a_function_does_the_same_each_time = answers(
    of_function,
    ("Cast DecodePng", "", True),
    ("RandomUniform Cast", "RandomUniform", False),
    ("StatelessRandomUniformV2", "", False),
    ("SampleDistortedBoundingBoxV2", "SampleDistortedBoundingBoxV2", False),
    ("Assert If LookupTableFindV2", "Assert If LookupTableFindV2", True),
    *(
        (kind, kind, same)
        for kind, same in (("TFRecordDataset", True), ("ReadVariableOp", None), ("EagerPyFunc", None))
    ),
    (None, None, None),
)


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
    records = Program(datasets=(fed_dataset(0, "TFRecordDatasetV2", cardinality=None),), feeds=0)
    nodes = [Iterators({"Root": Node("Root", repetition=completed)}) for completed in (1, 2)]
    found = [DatasetProperties.measure(records, recording(manifest=manifest()), one).passes for one in nodes]
    assert found == [None, 2.0]


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


RECORDS, MAPS = dataset(2, "_InterleaveDataset"), dataset(1, "_MapDataset")
ZIPPED = Dataset(id=2, kind="_ZipDataset", inputs=(0, 1))
LISTED = dataset(0, "_TensorSliceDataset", element=PATHS, cardinality=8)
LISTS = [Dataset(id=at, kind="_TensorSliceDataset", files=FileList(count=2 + at)) for at in (0, 1)]
AGAIN = dataset(1, "_RepeatDataset", element=PATHS, cardinality=-1)


def listed(**files: Any) -> Dataset:
    return dataset(0, "_TensorSliceDataset", files=FileList(count=40, **files))


told[measured] = {
    "a list of files says how many and where": (listed(scheme="gs", nbytes=None), AGAIN, RECORDS),
    "a mount of NFS is across a network": (listed(file_system="nfs4"), MAPS),
    "so is one of Cloud Storage": (listed(file_system="fuse.gcsfuse"), MAPS),
    "one of a disk is local": (listed(file_system="ext4"), MAPS),
    "an overlay may be either": (listed(file_system="overlay"), MAPS),
    "so may a mount of a virtual machine": (listed(file_system="9p"), MAPS),
    "so may an unknown one": (listed(file_system=""), MAPS),
    "an older record says how many elements an interleave takes": (LISTED, AGAIN, RECORDS),
    "texts that nothing opens are no files": (LISTED, dataset(1, "_BatchDataset")),
    "two lists are not guessed from": (*LISTS, ZIPPED),
}

IMAGES = "TensorSpec(shape=(None, 224, 224, 3), dtype=tf.float32, name=None)"


def buffers(options: dict[str, Any] | None = None, **parameters: int) -> TunedBuffers:
    """The pipeline of a map and a prefetch of batches of 64 images, with these parameters of the prefetch."""
    mapped = {"id": 0, "class": "_MapDataset", "parameters": {"num_parallel_calls": 4}}
    batched = {"id": 1, "class": "_BatchDataset", "inputs": [0], "parameters": {"batch_size": 64}}
    given = {"parameters": parameters, "options": options or {}, "element_spec": IMAGES}
    ahead = {"id": 2, "class": "_PrefetchDataset", "inputs": [1], "at": ["/home/me/train.py", 22], **given}
    return TunedBuffers.measure(program_of(datasets=[mapped, batched, ahead], feeds=2, run={"batch_size": 64}))


told.add("a prefetch of AUTOTUNE holds batches", lambda: buffers(buffer_size=-1))
told.add("the program may choose the size", lambda: buffers(buffer_size=2))
told.add("or limit the memory", lambda: buffers({"autotune.ram_budget": 1 << 30}, buffer_size=-1))

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


told[conversions] = {
    # The last step has no end, and the first conversion lies before the first step.
    "each argument has the time of its conversions, and tensors are none": (MATRIX, LABELS, TENSOR),
    "one argument for two conversions": MATRIX,
    "arguments of an older version": {"shape": [300, 300], "anew": True},
}
told.add("conversions of another function", lambda: conversions(MATRIX, LABELS, function="another"))


@told
def a_cast_that_alone_reads_an_argument_is_found() -> object:
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
    return chart(trace(host=[line("python", *rows), line("pool", *pool)]), beside).fact(Conversions)


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


told[lambda *arguments: fed(*arguments).fact(Conversions)] = {
    # by their bytes
    "the time before a session starts goes to arrays": [TABLE | {"fed_as": one} for one in ("float32", "float64")],
    # Trap: weights of ten classes, alone beside a small batch.
    "a small array gets none of pythons own work": ({**TOKENS, "shape": [10], "same": True}, TOKENS),
    "fed lists beside arrays": (TABLE, {"place": "rows", "kind": "python"}),
}
told.add("a session whose start is not shown", lambda: fed(TABLE, starts=False).fact(Conversions))

# Which lines make input in Python, from the stack samples of all threads.

KERAS = "keras.src.trainers.data_adapters.py_dataset_adapter.PyDatasetAdapter._finite_generator"
TF_DATA = "tensorflow.python.ops.script_ops.FuncRegistry.__call__"
WAIT = "threading.Condition.wait"


def place(line: int, seen: int, entry: str = KERAS, **more: Any) -> SeenPlace:
    return SeenPlace(seen, ("train.py", line), entry=entry, **more)


def lines_of(python: PythonRecord, program: Program | None = None) -> InputLines:
    record = Recording(None, None, (), ProgramRecord(python=python), (), ())
    return InputLines.measure(record, Framework(), program, None)


def input_lines(*others: SeenPlace, trainer: tuple[SeenPlace, ...] = (), **more: Any) -> InputLines:
    return lines_of(PythonRecord(places=trainer, others=others), **more)


FIT, OWN = place(56, 90, entry="", inside=True), place(80, 30, entry="")
STACKS = place(36, 3, calls="numpy.stack", caller=("train.py", 48))
LOADS = place(36, 6, calls="numpy.load", caller=("train.py", 48))

told[input_lines] = {
    "the places of a line are joined": (STACKS, LOADS, place(39, 3)),
    "other threads do not count while input works": (place(36, 9), OWN),
    "where input waits the users threads count": (place(36, 9, runs=WAIT), OWN, place(81, 9, "", runs=WAIT)),
    "worker processes are waited for": place(36, 9, runs="multiprocessing.connection.wait"),
}
told.add("input on the thread that trains", lambda: input_lines(trainer=(place(36, 9, inside=True), FIT)))


def test_threads_are_counted_by_the_samples_of_the_trainer() -> None:
    """Two samples of a thread for three of the trainer's, which is in each; a wait is no work."""
    others = place(36, 54), place(39, 6), place(36, 27, runs=WAIT), place(80, 15, entry="")
    assert input_lines(*others, trainer=(FIT,)).threads == pytest.approx(2 / 3)


IN_STEP = Program(operations=(Operation(name="py", type="EagerPyFunc"),))

told[lambda program, *others: input_lines(*others, program=program)] = {
    "python within the training function is told from input": (IN_STEP, place(36, 9), place(20, 9, TF_DATA)),
    "alone it is no input": (IN_STEP, place(20, 9, TF_DATA)),
    "python of tf.data is": (Program(), place(20, 9, TF_DATA)),
}

test_input = told.test("feeding_datasets")

test_what_is_not_known = unavailable(
    (lambda: DatasetProperties.measure(Program(), recording(), None), r"no recorded tf\.data pipeline"),
    (lambda: chart(trace(host=[line("p", *converting(0))]), recording()).fact(Conversions), "tfdoctor profile"),
    (lambda: lines_of(PythonRecord()), "not sampled"),  # by an older version
)
