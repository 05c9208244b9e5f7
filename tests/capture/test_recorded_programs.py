"""What the agent writes of programs that train: pipelines, lines, learning rates, and what calls are given.

One process records all of them one after the other: TensorFlow starts once.
"""

from collections import Counter

from tests.capture.kit import *
from tests.capture.running import *
from tests.capture.spans import Mark, iterator_names, marks, numbers
from tfdoctor.capture.agent.program.given import BATCHES
from tfdoctor.diagnose.diagnose import chart_of
from tfdoctor.edits.by_id import CHECKS
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.source_code.splice import Declined
from tfdoctor.source_code.tree import SyntaxTree
from tfdoctor.terms.verdict import Finding, Healthy
from tfdoctor.trace import Trace
from tfdoctor.trace.names import SAMPLED

pytestmark = pytest.mark.tensorflow

SHARED = """
import tensorflow as tf
def trainer(weights, loss_of, rate=0.01):
    @tf.function
    def step(*given):
        with tf.GradientTape() as tape:
            loss = loss_of(*given)
        weights.assign_sub(rate * tf.convert_to_tensor(tape.gradient(loss, weights)))
    return step
weight = tf.Variable(tf.ones([8, 8]))
train = trainer(weight, lambda x: tf.reduce_sum(x @ weight))
def noise(x):
    return x + tf.random.uniform(())
"""

AGAIN = """
import tensorflow as tf
from shared import train
for _ in range(60):
    train(tf.ones([8, 8]))
"""

DATASETS = """
import pathlib
import tensorflow as tf
from shared import trainer
for number in range(20):
    pathlib.Path(f"{number}.raw").write_bytes(bytes(64 + number))
def load(path):
    raw = tf.cast(tf.io.decode_raw(tf.io.read_file(path), tf.uint8)[:64], tf.float32)
    return tf.cond(raw[0] > 9, lambda: raw, lambda: raw + tf.random.uniform(()))
options = tf.data.Options()
options.threading.private_threadpool_size = 1
options.autotune.enabled = False
paths = [str(path.resolve()) for path in sorted(pathlib.Path().glob("*.raw"))]
pairs = tf.data.Dataset.from_tensors([paths[:2], paths[2:4]])
far = tf.data.TFRecordDataset(["gs://bucket/a.tfrecord", "gs://bucket/b.tfrecord"])
data = tf.data.Dataset.from_tensor_slices(paths).shuffle(20, reshuffle_each_iteration=False)
data = data.map(load).batch(4).with_options(options)
weights = tf.Variable(tf.zeros((64, 1)))
step = trainer(weights, lambda x: tf.reduce_mean(tf.matmul(tf.reshape(x, (4, 64)), weights)))
for _ in range(4):
    for x in data:
        step(x)
"""

MAPPED = """
import keras, numpy as np, tensorflow as tf
from shared import noise, train
layers, rng, numbers = keras.layers, tf.random.Generator.from_seed(1), np.random.default_rng(1)
augment = keras.Sequential([layers.RandomFlip()])
plain = keras.Sequential([layers.Rescaling(2.0), layers.Resizing(4, 4)])
table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1], [2]), 0)
def helped(x):
    return noise(x)
def python(x):
    return x + numbers.normal(size=x.shape).astype("float32")
d = tf.data.Dataset.from_tensor_slices(tf.zeros((4, 8, 8, 3)))
kept = [
    d.map(lambda x: x + rng.normal(())),  # draws
    d.map(lambda x: augment(x[None], training=True)),  # draws
    d.map(lambda x: tf.nn.dropout(x, 0.5)),  # draws
    d.map(noise),  # draws
    d.map(helped),  # draws
    d.map(lambda x: tf.cond(x[0, 0, 0] > 2, lambda: x, lambda: noise(x))),  # draws
    d.interleave(lambda x: tf.data.Dataset.from_tensors(x).map(noise)),  # draws
    d.map(lambda x: tf.image.stateless_random_flip_up_down(x, rng.make_seeds()[:, 0])),  # draws
    d.map(lambda x: tf.numpy_function(python, [x], tf.float32)),  # draws
    d.map(lambda x: tf.py_function(python, [x], tf.float32)),  # draws
    d.map(lambda x: x + tf.cast(tf.timestamp(), tf.float32)),  # draws
    tf.data.Dataset.sample_from_datasets([d, d]).map(tf.identity),  # draws
    d.rejection_resample(lambda x: 0, [1.0]).map(lambda _, x: x),  # draws
    d.map(plain),
    d.map(lambda x: augment(x[None], training=False)),
    d.map(lambda x: tf.image.resize(tf.cast(x, tf.float32) / 255.0, (4, 4))),
    d.map(lambda x: tf.io.decode_image(tf.io.read_file("a.png"))),
    d.map(lambda x: table.lookup(tf.constant(1))),
    d.map(lambda x: x + numbers.normal()),  # Python draws once, when the graph is traced
]
for _ in range(9):
    train(tf.ones([8, 8]))
"""

CALLS = """
import tensorflow as tf
from shared import trainer
weights, x = tf.Variable(tf.ones((64, 64))), tf.ones((8, 64))
step = trainer(weights, lambda x: tf.reduce_mean((x @ weights) ** 2), 1e-6)
def log():
    return sum(n * n % 7 for n in range(60_000))
for _ in range(300):
    step(x)
    log()
"""

GRADIENTS = """
import tensorflow as tf
def weights(*shapes):
    return [tf.Variable(tf.random.normal(shape) * 0.1) for shape in shapes]
body, head = weights((64, 64), (64, 64)), weights((64, 8), (8,))
x, kept, rate = tf.random.normal((16, 64)), [], tf.constant(0.01)
def features(body):
    return tf.nn.relu(tf.nn.relu(x @ body[0]) @ body[1])
def loss_of(body, head, found=None):
    return tf.reduce_mean(((features(body) if found is None else found) @ head[0] + head[1]) ** 2)
def apply(gradients, variables):
    for gradient, variable in zip(gradients, variables):
        variable.assign_sub(rate * gradient)
def all_taken():
    with tf.GradientTape() as tape:
        loss = loss_of(body, head)
    return tape.gradient(loss, body + head)
def only_head_applied():
    apply(all_taken()[2:], head)
def only_head_taken():
    with tf.GradientTape() as tape:
        loss = loss_of(body, head)
    apply(tape.gradient(loss, head), head)
def features_before():
    found = features(body)
    with tf.GradientTape() as tape:
        loss = loss_of(body, head, found)
    apply(tape.gradient(loss, head), head)
def two_optimizers():
    gradients = all_taken()
    apply(gradients[:2], body)
    apply(gradients[2:], head)
def clipped():
    gradients, _ = tf.clip_by_global_norm(all_taken(), 1.0)
    apply(gradients[2:], head)
def norms_logged():
    unit = 1.0
    gradients = all_taken()
    apply(gradients[2:], head)
    return [unit * float(tf.norm(gradient)) for gradient in gradients]
def values_logged():
    gradients = all_taken()
    apply(gradients[2:], head)
    return [gradient.numpy().mean() for gradient in gradients]
def accumulated():
    kept.append(all_taken())
    if len(kept) == 4:
        apply([tf.add_n(each) for each in zip(*kept)], body + head)
        kept.clear()
    else:
        apply(kept[-1][2:], head)
def penalized():
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            loss = loss_of(body, head)
        penalty = tf.reduce_sum(inner.gradient(loss, x) ** 2)
        loss = loss_of(body, head) + penalty
    apply(outer.gradient(loss, body + head), body + head)
def inner_steps():
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = loss_of(body, head)
        gradients = inner.gradient(loss, body + head)
        fast = [w - rate * g for w, g in zip(body + head, gradients)]
        loss = loss_of(fast[:2], fast[2:])
    apply(outer.gradient(loss, body + head), body + head)
for step in (only_head_applied, only_head_taken, features_before, two_optimizers, clipped, norms_logged,
             values_logged, accumulated, penalized, inner_steps):
    for _ in range(9):
        step()
for _ in range(60):
    only_head_applied()
"""

OPTIMIZERS = """
import keras, numpy as np
optimizers = keras.optimizers
never = optimizers.Adam(0.0, name="never")
later = optimizers.SGD(learning_rate=0.0, name="later")
until = optimizers.SGD(0.1, name="until")
scaled = optimizers.LossScaleOptimizer(optimizers.Adam(0.1, name="inner"), name="scaled")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile(scaled, "mse")
later.learning_rate = 0.1
until.learning_rate = 0.0
model.fit(np.ones((160, 8), "float32"), np.ones((160, 1), "float32"), batch_size=8, verbose=0)
"""

TEXTS = """
import numpy as np
import tensorflow as tf
rng = np.random.default_rng(3)
def batches():
    for _ in range(30):
        tokens = np.zeros((8, 120), "int32")
        for row in tokens:
            length = rng.integers(5, 60)
            row[:length] = rng.integers(1, 50, length)
        yield tokens, np.ones((8, 1), "float32")
"""

KERAS = """
layers = keras.layers
model = keras.Sequential([layers.Embedding(50, 8), layers.GlobalAveragePooling1D(), layers.Dense(1)])
model.compile("sgd", "mse")
for tokens, y in batches():
    model.train_on_batch(tokens, y)
"""

LOOPS = {
    "function": """
from shared import trainer
table = tf.Variable(tf.random.normal((50, 8)))
def loss_of(batch, scale):
    return scale * tf.reduce_mean((tf.gather(table, batch["tokens"]) - batch["y"][:, None]) ** 2)
step = trainer(table, loss_of, 0.1)
for tokens, y in batches():
    step({"tokens": tokens, "y": y}, tf.constant(1.0))
""",
    "train_on_batch": "import keras\n" + KERAS,
    "tf_keras": "import tf_keras as keras\n" + KERAS,
    "session": """
tf1 = tf.compat.v1
tf1.disable_eager_execution()
tokens, y = tf1.placeholder(tf.int32, (8, 120)), tf1.placeholder(tf.float32, (8, 1))
table = tf1.get_variable("table", (50, 8))
loss = tf.reduce_mean((tf.gather(table, tokens) - y[:, None]) ** 2)
train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)  # writes rows by ResourceScatterAdd
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for given, wanted in batches():
        session.run(train, feed_dict={tokens: given, y: wanted})
""",
}

SCALED = """
import keras, numpy as np, tensorflow as tf
keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1, dtype="float32")])
optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01))
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x, training=True) ** 2)
        loss = optimizer.scale_loss(loss)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
for _ in range(30):
    step(np.ones((4, 8), "float32"))
keras.mixed_precision.set_global_policy("float32")
"""

# The step has eight times the pipeline's work: of two loops that take as long, each hides what the end of the other
# saves, and which one the step waits for differs from run to run.
HISTOGRAMS = """
import tensorflow as tf
from shared import trainer
weights = tf.Variable(tf.zeros((16, 1)))
def histogram(image):
    return tf.cast(tf.histogram_fixed_width(image, [0.0, 1.0], nbins=16), tf.float32)
def features(images):
    return images, tf.vectorized_map(histogram, images)
def loss_of(images, first):
    again = tf.vectorized_map(histogram, tf.tile(images, [8, 1, 1, 1]))[:64]
    return tf.reduce_mean((tf.matmul(first + again, weights) - 1.0) ** 2)
images = tf.random.uniform((512, 32, 32, 1))
data = tf.data.Dataset.from_tensor_slices(images).repeat().batch(64).map(features).take(60)
step = trainer(weights, loss_of, 1e-7)
for images, first in data:
    step(images, first)
"""

DETERMINISTIC = """
import tensorflow as tf
tf.keras.utils.set_random_seed(1)
tf.config.experimental.enable_op_determinism()
layers = tf.keras.layers
lstm = layers.LSTM(4, recurrent_dropout=0.5, activation="relu")
model = tf.keras.Sequential([layers.Embedding(9, 4, mask_zero=True), lstm, layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(tf.ones((32, 5)), tf.ones((32, 1)), batch_size=4, verbose=0)
"""

# Without a crash of TensorFlow's profiler beside collectives: activities have no number while a trace is open.
UNNUMBERED = """
import ctypes
from _tfdoctor_agent.window import collectives
known, collectives.present = collectives.present, lambda: True
unnumbered = collectives.Unnumbered()
unnumbered.begin()
slot = ctypes.c_uint64.from_address(unnumbered.slot)
seen = [unnumbered.before, slot.value]
for _ in range(2):
    unnumbered.end()
    seen.append(slot.value)
print("functions", *map(seen.index, seen), "number", ctypes.CFUNCTYPE(ctypes.c_int64)(seen[1])())
collectives.present = known
"""

SCRIPTS = Path(__file__).parents[1] / "e2e" / "scripts"
TRAINING, STYLES = SCRIPTS / "training.py", SCRIPTS / "loops.py"
TWENTY, FEW = {"steps": 20}, {"warmup": 8, "steps": 5}

PROGRAMS: dict[str, tuple[Any, Any]] = {
    "mirrored": ([TRAINING, "mirrored"], TWENTY),  # first: it divides the CPU
    "on_batch": ([TRAINING, "on_batch"], TWENTY),
    "execution": ([TRAINING, "execution"], {"steps": 6}),
    "unnumbered": (UNNUMBERED, None),
    "pipelines": ([TRAINING, "pipelines"], TWENTY),
    "custom": ([TRAINING, "custom"], {"warmup": 4, "steps": 25}),
    **{name: ([STYLES, name], TWENTY) for name in ("repeated", "gradient_tape", "gan", "in_graph")},
    "keras_2": ([STYLES, "keras_2", "4"], TWENTY),
    "without": (AGAIN, {"steps": 5, "trace": False}),
    "with": (AGAIN, {"steps": 5}),
    "calls": (CALLS, TWENTY),
    "datasets": (DATASETS, {"warmup": 2, "steps": 3}),
    "gradients": (GRADIENTS, {"warmup": 30, "steps": 5}),
    "optimizers": (OPTIMIZERS, FEW),
    **{name: (TEXTS + loop, FEW) for name, loop in LOOPS.items() if name != "session"},
    "scaled": (SCALED, FEW),
    "histograms": (HISTOGRAMS, {"warmup": 3, "steps": 20, "sample_every_ms": 500}),
    "warm_up_only": ([TRAINING, "warm_up_only"], TWENTY),
    "own_profiler": ([TRAINING, "own_profiler_first", "theirs"], TWENTY),
    "fit": ([TRAINING, "fit"], None),
    "broken_agent": ([TRAINING, "broken_agent"], TWENTY),
    "mapped": (MAPPED, {"warmup": 2, "steps": 3}),
    "deterministic": (DETERMINISTIC, {"warmup": 2, "steps": 3}),  # last: it changes operations for good
}

ALONE: dict[str, tuple[Any, Any]] = {
    "plain": ([STYLES, "session"], None),
    "sessions": ([STYLES, "session"], TWENTY),
    "session": (TEXTS + LOOPS["session"], FEW),
}
"""Programs that make TensorFlow's functions graphs for good."""


def written(folder: Path, programs: dict[str, tuple[Any, Any]]) -> Programs:
    """Write the scripts of programs that are texts; return all with their words."""
    texts = {name: text for name, (text, _) in programs.items() if isinstance(text, str)}
    for name, text in texts.items():
        (folder / f"train_{name}.py").write_text(text)
    return {
        name: ([f"train_{name}.py"] if name in texts else words, plan) for name, (words, plan) in programs.items()
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Return the recordings of all programs: those that run eagerly, in one process."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "shared.py").write_text(SHARED)
    runs = together(folder, written(folder, PROGRAMS)) | together(folder, written(folder, ALONE))
    recorded = {name: run for name, run in runs.items() if run.out.exists()}
    assert [name for name, run in recorded.items() if run.manifest.agent_errors] == ["broken_agent"]
    return runs


@pytest.fixture(scope="module")
def datasets(runs: dict[str, Run]) -> dict[str, Any]:
    assert "datasets" not in runs["datasets"].missing()
    return {dataset["class"]: dataset for dataset in runs["datasets"].program["datasets"]}


@cases(
    ("_OptionsDataset", "options threading.private_threadpool_size", 1),
    ("_OptionsDataset", "options autotune.enabled", False),
    ("_BatchDataset", "options autotune.enabled", None),
    ("_ShuffleDataset", "parameters reshuffle_each_iteration", False),
    # The function that its line calls:
    ("_MapDataset", "made_by", "map"),
    ("_TensorSliceDataset", "made_by", "from_tensor_slices"),
    # Files are counted and weighed (the median of 16 of them), and not named; several for each element all
    # count, and those elsewhere are left alone.
    ("_TensorSliceDataset", "files count", 20),
    ("_TensorSliceDataset", "files bytes", 76),
    ("_TensorSliceDataset", "files scheme", ""),
    ("_ShuffleDataset", "files", None),
    ("_TensorDataset", "files count", 4),
    ("TFRecordDatasetV2", "files", {"count": 2, "scheme": "gs", "bytes": None}),
)
def test_each_stage_is_described(kind: str, path: str, expected: object, datasets: dict[str, Any]) -> None:
    found = datasets[kind]
    for name in path.split(" "):
        found = found.get(name)
    assert found == expected


def test_a_cache_may_stand_behind_what_draws_nothing(runs: dict[str, Run]) -> None:
    program, declined = sure(runs["mapped"].recording.program), []
    paths = {one.at[0] for one in program.datasets if one.at and one.at[0].endswith("train_mapped.py")}
    lines = MAPPED.splitlines()
    first = 1 + lines.index("kept = [")
    for number in range(first + 1, 1 + lines.index("]")):
        try:
            CHECKS["cache"](program, SyntaxTree(MAPPED, *paths), number, "")
        except Declined as why:
            declined.append((number, str(why)))
    assert [number for number, _ in declined] == [at for at, line in enumerate(lines, 1) if "# draws" in line]
    assert not [why for _, why in declined if "no dataset" in why]


def test_operations_have_the_attributes_that_their_cost_depends_on(runs: dict[str, Run]) -> None:
    operations = [one for graph in runs["calls"].program["graphs"] for one in graph["operations"]]
    found = {(one["type"], str(one["attrs"])) for one in operations if one["type"] in {"MatMul", "Mean"}}
    straight, turned = ({"transpose_a": side, "transpose_b": False, "T": "float32"} for side in (False, True))
    assert found == {("MatMul", str(straight)), ("MatMul", str(turned)), ("Mean", str({"T": "float32"}))}


def test_lines_come_from_calls_after_the_window(runs: dict[str, Run]) -> None:
    """Nothing else does."""
    run = runs["calls"]
    window = run.window
    assert (window.steps, window.calls, window.stopped_by) == (20, 20, "steps")
    python = sure(sure(run.recording.program).python)
    measured_us = (sure(window.stopped_unix_ns) - sure(python.began_unix_ns)) / 1e3
    times = sorted(when for place in python.places for when in place.when_us)
    within = sum(time < measured_us for time in times)
    assert within * 8000 < measured_us  # each is followed by a rest of 10 ms at least
    later_us = times[-1] - measured_us  # much more often, however busy the machine is
    assert (len(times) - within) / later_us > 2 * within / measured_us

    chart = chart_of(run.recording)
    assert chart.fact(Steps).count == 20
    trace = chart.fact(Trace)
    assert list(trace.host_events(SAMPLED)) == []
    assert len(list(sure(trace.sampled).host_events(SAMPLED))) > 3
    later: Counter[int] = Counter()
    for place in python.places:
        if place.at is not None and not place.inside:
            later[place.at[1]] += sum(time > measured_us for time in place.when_us)
    assert later.most_common(1)[0][0] == 1 + CALLS[: CALLS.index("range(60_000)")].count("\n")


def test_only_back_propagation_without_use_is_told(runs: dict[str, Run]) -> None:
    """The traps: each gradient of theirs is applied, clipped, logged, kept or differentiated again."""
    lines, source = sure(runs["gradients"].manifest.steps.gradients), GRADIENTS.splitlines()
    assert all(line.followed for line in lines)
    told = [(source[line.at[1] - 1].strip(), line) for line in lines if line.at]
    assert len(told) == 13
    # A constant exponent has an operation of its own, whose result goes nowhere.
    useless = [(text, line) for text, line in told if line.operations > 1]
    assert [(text, line.returned, line.unused) for text, line in useless] == [
        ("return tape.gradient(loss, body + head)", 2, 2),
        ("apply(tape.gradient(loss, head), head)", 0, 2),
        ("penalty = tf.reduce_sum(inner.gradient(loss, x) ** 2)", 0, 4),  # the inner tape follows all variables
        ("return tape.gradient(loss, body + head)", 2, 2),
    ]
    assert useless[-1][1].traced == 5


@each(*LOOPS)
def test_the_padding_of_what_the_call_gets_is_seen(loop: str, runs: dict[str, Run]) -> None:
    run = runs[loop]
    assert "sequence lengths" not in run.missing()
    entry, _ = run.program["sequences"]
    assert entry["steps"] == [120] * BATCHES
    assert (entry["pad"], entry["leading"], entry["mask"]) == (0, False, False)
    assert [5 <= length < 60 for batch in entry["lengths"] for length in batch] == [True] * 8 * BATCHES


@cases(
    ("repeated", "repeated-call", 50, 20, range(10, 30)),
    ("gradient_tape", "eager-gradient", 40, 20, range(10, 30)),
    ("on_batch", "tf-data-loop", 40, 20, range(10, 30)),
    ("gan", "repeated-call", 40, 20, range(10, 30)),
    ("sessions", "session-run", 50, 20, range(10, 30)),
    ("mirrored", "tf-data-loop", 40, 20, (*range(10, 20), *range(21, 31))),
    ("in_graph", "graph-loop", 0, 0, ()),
    ("execution", "keras-fit", 80, 20, range(12, 29, 4)),  # five calls, though two would hold six steps
    ("keras_2", "keras-fit", 64, 20, range(12, 29, 4)),  # Keras' own: a second marker of ours would double them
    ("custom", "tf-data-loop", 36, 25, (*range(1, 12), *range(13, 25), 26, 27)),  # over its epochs
    ("own_profiler", "keras-fit", 60, 60, range(60)),
)
def test_a_style_is_seen(name: str, kind: str, seen: int, traced: int, marked: Any, runs: dict[str, Run]) -> None:
    steps, window = runs[name].manifest.steps, runs[name].window
    assert numbers(runs[name]) == [*marked]
    assert (steps.source, steps.seen, window.source) == (kind, seen, kind)
    assert (window.steps, window.calls, window.first_step) == (traced, len(marked), marked[0] if marked else 0)


def marked_steps(run: Run) -> list[Mark]:
    (trace,) = run.recording.traces
    return [mark for mark in marks(trace) if mark.name == "train"]


def said(run: Run, names: str) -> list[object]:
    """Return what is told of the run's program by these names."""
    return [run.program["run"][name] for name in names.split()]


def feeds(run: Run) -> list[object]:
    (found,) = (dataset for dataset in run.program["datasets"] if dataset["id"] == run.program["feeds"])
    return [found["class"], found["cardinality"], run.program["input_kind"]]


def branches(run: Run) -> tuple[set[str], list[str]]:
    (function,) = (one["function"] for one in run.program["datasets"] if one["class"] == "_MapDataset")
    return {"ReadFile", "DecodeRaw"} & {*function["types"]}, [
        one for one in function["stateful"] if "Random" in one
    ]


def graphs(run: Run) -> bool:
    return bool(run.program["graphs"])


def sources(run: Run) -> list[str]:
    return [Path(path).name for path in run.program["sources"]]


WARM_UP = "the block ended after 7 steps, during warm-up (10): record with warmup=3"

RECORDED: dict[str, tuple[str, Callable[[Run], object], object]] = {
    "two models in turn": ("gan", lambda run: [one.steps for one in run.manifest.steps.candidates], [40, 40, 40]),
    "why the first is traced": ("gan", lambda run: "of 3 training loops" in run.manifest.steps.why, True),
    "a loop inside a function": ("in_graph", lambda run: run.window.at[0], str(STYLES)),
    "its graph": ("in_graph", graphs, True),
    "a strategy": ("mirrored", lambda run: said(run, "strategy replicas"), ["MirroredStrategy", 2]),
    "its line": ("mirrored", lambda run: said(run, "strategy_at"), [line_of(TRAINING, "MirroredStrategy(")]),
    "its devices": ("mirrored", lambda run: said(run, "replica_devices"), [["/physical_device:CPU:0"] * 2]),
    "steps per execution": ("execution", lambda run: {one.stat("steps") for one in marked_steps(run)}, {4}),
    "no graphs without a trace": ("without", graphs, False),
    "graphs of a trace after a block without one": ("with", graphs, True),
    # An optimizer around another is given a rate of 0 by Keras, which it does not use.
    "rates of zero": ("optimizers", lambda run: [one.name for one in run.manifest.steps.zero_rates], ["never"]),
    # It has no graphs: only stack samples point into it. Without its hash no edit of it is possible.
    "the file of an eager loop": ("gradients", sources, ["train_gradients.py"]),
    "its graphs": ("gradients", graphs, False),
    "activities without a number": ("unnumbered", lambda run: "functions 0 1 0 0 number 0\n" in run.stdout, True),
    "layers of Keras 2": ("keras_2", lambda run: run.program["layers"][0]["at"][0], str(STYLES)),
    "its policy": ("keras_2", lambda run: said(run, "policy"), ["float32"]),
    "a custom loop": ("custom", lambda run: said(run, "optimizer batch_size"), ["Adam", 4]),
    "its data": ("custom", feeds, ["_BatchDataset", 12, "tf.data"]),
    "its functions": ("custom", lambda run: {"train", "check"} - {x["name"] for x in run.program["graphs"]}, set()),
    "the branches of a function": ("datasets", branches, ({"ReadFile", "DecodeRaw"}, ["RandomUniform"])),
    "why there is no trace": ("warm_up_only", lambda run: run.missing()["trace"], WARM_UP),
    "no trace": ("warm_up_only", lambda run: (run.recording.traces, run.manifest.window), ((), None)),
    "its layers": ("warm_up_only", lambda run: bool(run.program["layers"]), True),
    "the optimizer of a custom loop": ("scaled", lambda run: type(judged(run, "loss-scaling")), Healthy),
}


@each(*RECORDED)
def test_what_is_recorded(what: str, runs: dict[str, Run]) -> None:
    name, ask, told = RECORDED[what]
    assert ask(runs[name]) == told


def test_datasets_are_named_as_in_the_trace(runs: dict[str, Run]) -> None:
    run = runs["pipelines"]
    assert run.missing().keys() == {"samples"}  # nobody asked for them
    names = iterator_names(run.recording.traces[0])
    datasets = {dataset["id"]: dataset for dataset in run.program["datasets"]}
    chain = [datasets[run.program["feeds"]]]
    while chain[-1]["inputs"]:
        chain.append(datasets[chain[-1]["inputs"][0]])
    known = {dataset["class"]: dataset["trace_name"] for dataset in chain}
    assert None not in known.values()
    seen = {name.rstrip(")").rpartition(",")[2].rpartition("(")[2] for name in names}
    assert {known["_PrefetchDataset"], known["_TakeDataset"], known["_RepeatDataset"]} <= seen


def test_a_session(runs: dict[str, Run]) -> None:
    run = runs["sessions"]
    plain, recorded = run.stdout.split()
    assert (recorded, [*run.missing()]) == (plain, ["samples"])
    types = {operation["type"] for graph in run.program["graphs"] for operation in graph["operations"]}
    assert "ResourceApplyAdam" in types


def test_validation_is_in_no_step(runs: dict[str, Run]) -> None:
    run = runs["custom"]
    kept, told = numbers(run), run.manifest.steps
    # The end of the data, at each epoch's end; a third one may have been traced for samples only:
    assert (told.discarded[:2], [one.source for one in told.candidates]) == ((12, 25), ["tf-data-loop"])
    steps = [mark for mark in marked_steps(run) if mark.stat("step_num") in kept]
    between: list[int] = []
    usual: list[int] = []
    for step, after in pairwise(steps):
        skipped = after.stat("step_num") - step.stat("step_num") - 1
        (between if skipped else usual).append(after.start_ps - step.start_ps - step.duration_ps)
    assert len(between) == 2
    assert min(between) > 3 * sorted(usual)[len(usual) // 2]


def test_the_users_running_profiler_is_marked_and_its_trace_used(runs: dict[str, Run]) -> None:
    run = runs["own_profiler"]
    assert (run.window.stopped_by, run.window.contains_warmup) == ("user-profiler", True)
    assert "own profiler" in run.manifest.steps.why
    (theirs,) = run.out.parent.glob("theirs/plugins/profile/*/*.xplane.pb")
    (ours,) = run.recording.traces
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_broken_hook_is_recorded_and_never_raised(runs: dict[str, Run]) -> None:
    run = runs["broken_agent"]
    digests = [line for line in run.stdout.splitlines() if len(line) == 64]
    assert max(Counter(digests).values()) == 3  # this fit, the one without recording, and that of their profiler
    assert {error.where for error in run.manifest.agent_errors} <= {"dataset", "layer", "fit", "metric"}
    assert "training broke" in run.manifest.agent_errors[0].error
    assert numbers(run)


def test_both_loops_of_a_run_are_found_with_their_lines(runs: dict[str, Run]) -> None:
    verdict = judged(runs["histograms"], "unvectorized-operation")
    assert isinstance(verdict, Finding), verdict
    assert verdict.summary == "vectorized_map runs HistogramFixedWidth once for each element, in two loops"
    lines = [number for number, line in enumerate(HISTOGRAMS.splitlines(), 1) if "tf.vectorized_map(" in line]
    assert [f"line={line}" in str(verdict.evidence) for line in lines] == [True, True]


def test_the_call_and_recurrent_arguments_are_recorded(runs: dict[str, Run]) -> None:
    program = sure(runs["deterministic"].recording.program)
    (aid,) = program.run.debugging
    line = 1 + DETERMINISTIC.splitlines().index("tf.config.experimental.enable_op_determinism()")
    assert (aid.aid, sure(aid.at)[1]) == ("op_determinism", line)
    layers = {layer.kind: layer for layer in program.layers or ()}
    lstm = sure(layers["LSTM"].recurrent)
    assert (lstm.recurrent_dropout, lstm.activation, lstm.recurrent_activation) == (0.5, "relu", "sigmoid")
    assert (lstm.unroll, lstm.use_bias, lstm.use_cudnn) == (False, True, "auto")
    assert (layers["Embedding"].masks, layers["Dense"].recurrent) == (True, None)
