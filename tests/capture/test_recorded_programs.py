"""What the agent writes of programs that train: pipelines, lines, learning rates, and what calls are given.

One process records all of them one after the other: TensorFlow starts once.
"""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import Programs, Run, line_of, together
from tests.capture.spans import iterator_names, marks, numbers
from tfdoctor.capture.agent.program.given import BATCHES
from tfdoctor.diagnose.diagnose import chart_of, diagnose
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording.program import SeenPlace
from tfdoctor.rules import all_rules
from tfdoctor.terms.verdict import Finding, Healthy, Outcome
from tfdoctor.trace import Trace
from tfdoctor.trace.names import SAMPLED

pytestmark = pytest.mark.tensorflow

DATASETS = """
import pathlib
import tensorflow as tf

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

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(tf.reshape(x, (4, 64)), weights))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))

for _ in range(4):
    for x in data:
        step(x)
"""

CALLS = """
import tensorflow as tf

weights = tf.Variable(tf.ones((64, 64)))
x = tf.ones((8, 64))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights) ** 2)
    weights.assign_sub(1e-6 * tape.gradient(loss, weights))

def log():
    return sum(n * n % 7 for n in range(60_000))

for _ in range(400):
    step(x)
    log()
"""

EAGER = """
import tensorflow as tf

weights = [tf.Variable(tf.ones((64, 64))) for _ in range(6)]
optimizer = tf.keras.optimizers.SGD(1e-6)

for _ in range(200):
    with tf.GradientTape() as tape:
        x = tf.ones((8, 64))
        for weight in weights:
            x = tf.tanh(x @ weight)
        loss = tf.reduce_mean(x**2)
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
"""

GRADIENTS = """
import tensorflow as tf

def weights(*shapes):
    return [tf.Variable(tf.random.normal(shape) * 0.1) for shape in shapes]

body, head = weights((64, 64), (64, 64)), weights((64, 8), (8,))
x, kept, rate = tf.random.normal((16, 64)), [], tf.constant(0.01)

def features(body):
    return tf.nn.relu(tf.nn.relu(x @ body[0]) @ body[1])

def loss_of(body, head):
    return tf.reduce_mean((features(body) @ head[0] + head[1]) ** 2)

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
        loss = tf.reduce_mean((found @ head[0] + head[1]) ** 2)
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
    unit, logged = 1.0, []
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

LOG = 1 + next(n for n, line in enumerate(CALLS.splitlines()) if "range(60_000)" in line)

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
model.fit(np.ones((320, 8), "float32"), np.ones((320, 1), "float32"), batch_size=8, verbose=0)
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
model = keras.Sequential([
    keras.layers.Embedding(50, 8), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)
])
model.compile("sgd", "mse")
for tokens, y in batches():
    model.train_on_batch(tokens, y)
"""

LOOPS = {
    "function": """
table = tf.Variable(tf.random.normal((50, 8)))

@tf.function
def step(batch, scale):
    with tf.GradientTape() as tape:
        loss = scale * tf.reduce_mean((tf.gather(table, batch["tokens"]) - batch["y"][:, None]) ** 2)
    table.assign_sub(0.1 * tf.convert_to_tensor(tape.gradient(loss, table)))

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

SHARED = """
import tensorflow as tf
weight = tf.Variable(tf.ones([8, 8]))

@tf.function
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(x @ weight)
    weight.assign_sub(0.01 * tape.gradient(loss, weight))
"""
AGAIN = """
import tensorflow as tf
from shared import train
for _ in range(60):
    train(tf.ones([8, 8]))
"""

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

weights = tf.Variable(tf.zeros((16, 1)))


def histogram(image):
    return tf.cast(tf.histogram_fixed_width(image, [0.0, 1.0], nbins=16), tf.float32)


def features(images):
    return images, tf.vectorized_map(histogram, images)


images = tf.random.uniform((512, 32, 32, 1))
data = tf.data.Dataset.from_tensor_slices(images).repeat().batch(64).map(features).take(60)


@tf.function
def step(images, first):
    again = tf.vectorized_map(histogram, tf.tile(images, [8, 1, 1, 1]))[:64]
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(first + again, weights) - 1.0) ** 2)
    weights.assign_sub(1e-7 * tape.gradient(loss, weights))


for images, first in data:
    step(images, first)
"""

DETERMINISTIC = """
import tensorflow as tf
tf.keras.utils.set_random_seed(1)
tf.config.experimental.enable_op_determinism()
model = tf.keras.Sequential([
    tf.keras.layers.Embedding(9, 4, mask_zero=True),
    tf.keras.layers.LSTM(4, recurrent_dropout=0.5, activation="relu"),
    tf.keras.layers.Dense(1),
])
model.compile("sgd", "mse")
model.fit(tf.ones((96, 5)), tf.ones((96, 1)), batch_size=4, verbose=0)
"""

SCRIPTS = Path(__file__).parents[1] / "e2e" / "scripts"
TRAINING, STYLES = SCRIPTS / "training.py", SCRIPTS / "loops.py"

PROGRAMS: Programs = {
    "mirrored": ([TRAINING, "mirrored"], {"steps": 20}),  # first: it divides the CPU
    "on_batch": ([TRAINING, "on_batch"], {"steps": 20}),
    "execution": ([TRAINING, "execution"], {"steps": 6}),
    "pipelines": ([TRAINING, "pipelines"], {"steps": 20}),
    "custom": ([TRAINING, "custom"], {"warmup": 4, "steps": 25}),
    **{name: ([STYLES, name], {"steps": 20}) for name in ("repeated", "gradient_tape", "gan", "in_graph")},
    "keras_2": ([STYLES, "keras_2", "4"], {"steps": 20}),
    "without": (["train_again.py"], {"steps": 5, "trace": False}),
    "with": (["train_again.py"], {"steps": 5}),
    "calls": (["train_calls.py"], {"steps": 20}),
    "eager": (["train_eager.py"], {"steps": 60}),
    "datasets": (["train_datasets.py"], {"warmup": 2, "steps": 3}),
    "gradients": (["train_gradients.py"], {"warmup": 30, "steps": 5}),
    "optimizers": (["train_optimizers.py"], {"warmup": 8, "steps": 5}),
    **{name: ([f"train_{name}.py"], {"warmup": 8, "steps": 5}) for name in LOOPS if name != "session"},
    "scaled": (["train_scaled.py"], {"warmup": 8, "steps": 5}),
    "histograms": (["train_histograms.py"], {"warmup": 3, "steps": 20, "sample_every_ms": 500}),
    "warm_up_only": ([TRAINING, "warm_up_only"], {"steps": 20}),
    "own_profiler": ([TRAINING, "own_profiler_first", "theirs"], {"steps": 20}),
    "fit": ([TRAINING, "fit"], None),
    "broken_agent": ([TRAINING, "broken_agent"], {"steps": 20}),
    "deterministic": (["train_deterministic.py"], {"steps": 8}),  # last: it changes operations for good
}

ALONE: Programs = {
    "plain": ([STYLES, "session"], None),
    "sessions": ([STYLES, "session"], {"steps": 20}),
    "session": (["train_session.py"], {"warmup": 8, "steps": 5}),
}
"""Programs that make TensorFlow's functions graphs for good."""

TEXTS_OF = {
    "again": AGAIN,
    "calls": CALLS,
    "eager": EAGER,
    "datasets": DATASETS,
    "gradients": GRADIENTS,
    "optimizers": OPTIMIZERS,
    "scaled": SCALED,
    "histograms": HISTOGRAMS,
    "deterministic": DETERMINISTIC,
    **{name: TEXTS + loop for name, loop in LOOPS.items()},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Return the recordings of all programs: those that run eagerly, in one process."""
    folder = tmp_path_factory.mktemp("programs")
    for name, text in TEXTS_OF.items():
        (folder / f"train_{name}.py").write_text(text)
    (folder / "shared.py").write_text(SHARED)
    runs = together(folder, PROGRAMS) | together(folder, ALONE)
    recorded = {name: run for name, run in runs.items() if run.out.exists()}
    assert [name for name, run in recorded.items() if run.manifest.agent_errors] == ["broken_agent"]
    return runs


# Pipelines


@pytest.fixture(scope="module")
def datasets(runs: dict[str, Run]) -> dict[str, Any]:
    run = runs["datasets"]
    assert "datasets" not in run.missing()
    return {dataset["class"]: dataset for dataset in run.program["datasets"]}


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
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
    ],
)
def test_each_stage_is_described(datasets: dict[str, Any], kind: str, path: str, expected: object) -> None:
    found = datasets[kind]
    for name in path.split(" "):
        found = found.get(name)
    assert found == expected


def test_what_the_branches_of_a_function_do_counts(datasets: dict[str, Any]) -> None:
    function = datasets["_MapDataset"]["function"]
    assert {"ReadFile", "DecodeRaw"} < set(function["types"])
    assert [name for name in function["stateful"] if "Random" in name] == ["RandomUniform"]


# Lines


def seen(places: tuple[SeenPlace, ...]) -> list[int]:
    return sorted(when for place in places for when in place.when_us)


def test_operations_have_the_attributes_that_their_cost_depends_on(runs: dict[str, Run]) -> None:
    graphs = runs["calls"].program["graphs"]
    kinds = {"MatMul", "Mean"}
    seen_attributes = {
        (op["type"], tuple(sorted(op["attrs"].items())))
        for graph in graphs
        for op in graph["operations"]
        if op["type"] in kinds
    }
    straight, turned = (
        ("MatMul", (("T", "float32"), ("transpose_a", side), ("transpose_b", False))) for side in (False, True)
    )
    assert seen_attributes == {straight, turned, ("Mean", (("T", "float32"),))}


def test_lines_come_from_calls_after_the_window(runs: dict[str, Run]) -> None:
    """Nothing else does."""
    run = runs["calls"]
    window = run.window
    assert (window.steps, window.calls, window.stopped_by) == (20, 20, "steps")
    program = run.recording.program
    python = program.python if program else None
    assert python is not None
    assert python.began_unix_ns is not None
    assert window.stopped_unix_ns is not None
    measured_us = (window.stopped_unix_ns - python.began_unix_ns) / 1e3
    times = seen(python.places)
    within = sum(time < measured_us for time in times)
    assert within * 8000 < measured_us  # each is followed by a rest of 10 ms at least
    later_us = times[-1] - measured_us  # much more often, however busy the machine is
    assert (len(times) - within) / later_us > 2 * within / measured_us

    chart = chart_of(run.recording)
    assert chart.fact(Steps).count == 20
    trace = chart.fact(Trace)
    assert trace.sampled is not None
    assert list(trace.host_events(SAMPLED)) == []
    assert len(list(trace.sampled.host_events(SAMPLED))) > 3
    later: Counter[int] = Counter()
    for place in python.places:
        if place.at is not None and not place.inside:
            later[place.at[1]] += sum(time > measured_us for time in place.when_us)
    assert later.most_common(1)[0][0] == LOG


def test_a_trace_after_a_block_without_one_has_its_graphs(runs: dict[str, Run]) -> None:
    assert not runs["without"].program["graphs"]
    assert runs["with"].program["graphs"]


# Learning rates


def test_of_keras_optimizers_only_one_trains_nothing(runs: dict[str, Run]) -> None:
    """An optimizer around another is given a rate of 0 by Keras, which it does not use."""
    zero_rates = runs["optimizers"].manifest.steps.zero_rates
    assert zero_rates is not None
    assert [entry.name for entry in zero_rates] == ["never"]


def test_the_file_of_an_eager_loop_is_known(runs: dict[str, Run]) -> None:
    """It has no graphs: only stack samples point into it. Without its hash no edit of it is possible."""
    sources = runs["eager"].program["sources"]
    assert [Path(path).name for path in sources] == ["train_eager.py"]


# Gradients


def test_only_back_propagation_without_use_is_told(runs: dict[str, Run]) -> None:
    """The traps: each gradient of theirs is applied, clipped, logged, kept or differentiated again."""
    lines = runs["gradients"].manifest.steps.gradients
    assert lines is not None
    source = GRADIENTS.splitlines()
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


# What training calls are given: whatever made it, a Python generator, arrays, feeds


@pytest.mark.parametrize("loop", LOOPS)
def test_the_padding_of_what_the_call_gets_is_seen(loop: str, runs: dict[str, Run]) -> None:
    run = runs[loop]
    assert "sequence lengths" not in run.missing()
    entry, _ = run.program["sequences"]
    assert entry["steps"] == [120] * BATCHES
    assert (entry["pad"], entry["leading"], entry["mask"]) == (0, False, False)
    lengths = [length for batch in entry["lengths"] for length in batch]
    assert len(lengths) == 8 * BATCHES
    assert all(5 <= length < 60 for length in lengths)


# Styles of loops


@pytest.mark.parametrize(
    ("name", "source", "seen"),
    [("repeated", "repeated-call", 50), ("gradient_tape", "eager-gradient", 40), ("on_batch", "tf-data-loop", 40)],
)
def test_a_style_is_seen(runs: dict[str, Run], name: str, source: str, seen: int) -> None:
    run = runs[name]
    assert numbers(run) == list(range(10, 30))
    assert (run.manifest.steps.source, run.manifest.steps.seen) == (source, seen)


def test_two_models_in_turn(runs: dict[str, Run]) -> None:
    run = runs["gan"]
    assert numbers(run) == list(range(10, 30))
    assert [candidate.steps for candidate in run.manifest.steps.candidates] == [40, 40, 40]
    assert "of 3 training loops" in run.manifest.steps.why


def test_a_loop_inside_a_function(runs: dict[str, Run]) -> None:
    run = runs["in_graph"]
    assert numbers(run) == []
    assert run.manifest.steps.source == "graph-loop"
    assert run.window.at is not None
    assert run.window.at[0] == str(STYLES)
    assert run.program["graphs"]


def test_a_loop_over_a_distributed_dataset(runs: dict[str, Run]) -> None:
    run = runs["mirrored"]
    assert len(numbers(run)) == 20
    assert run.manifest.steps.seen == 40
    told = run.program["run"]
    assert (told["strategy"], told["replicas"]) == ("MirroredStrategy", 2)
    assert told["strategy_at"] == line_of(TRAINING, "MirroredStrategy(")
    assert told["replica_devices"] == ["/physical_device:CPU:0"] * 2


def test_steps_per_execution_aligns_the_window_to_calls(runs: dict[str, Run]) -> None:
    run = runs["execution"]
    assert numbers(run) == [12, 16, 20, 24, 28]  # five calls, though two would hold six steps
    (trace,) = run.recording.traces
    assert {mark.stat("steps") for mark in marks(trace) if mark.name == "train"} == {4}
    assert (run.window.steps, run.window.calls) == (20, 5)
    assert run.manifest.steps.seen == 80


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
    plain, *recorded = run.stdout.split()
    assert recorded == [plain]
    assert numbers(run) == list(range(10, 30))
    assert run.manifest.steps.source == "session-run"
    assert run.manifest.steps.seen == 50
    assert run.missing().keys() == {"samples"}
    types = {operation["type"] for graph in run.program["graphs"] for operation in graph["operations"]}
    assert "ResourceApplyAdam" in types


def test_keras_2_with_several_steps_in_each_call(runs: dict[str, Run]) -> None:
    steps, calls, run = 20, 5, runs["keras_2"]
    assert (run.window.source, run.window.steps, run.window.calls) == ("keras-fit", steps, calls)
    assert len(numbers(run)) == calls  # Keras' own: a second marker of ours would double them
    assert run.manifest.steps.seen == 64
    layers = {layer["name"]: layer for layer in run.program["layers"]}
    assert layers["dense"]["at"][0] == str(STYLES)
    assert run.program["run"]["policy"] == "float32"


def test_a_custom_loop_is_traced_over_epochs(runs: dict[str, Run]) -> None:
    custom = runs["custom"]
    assert len(numbers(custom)) == 25
    assert custom.window.source == "tf-data-loop"
    assert (custom.window.first_step, custom.window.steps) == (1, 25)
    assert custom.manifest.steps.seen == 36
    # The end of the data, at each epoch's end; a third one may have been traced for samples only:
    assert custom.manifest.steps.discarded[:2] == (12, 25)
    assert [c.source for c in custom.manifest.steps.candidates] == ["tf-data-loop"]


def test_validation_is_in_no_step(runs: dict[str, Run]) -> None:
    kept = numbers(runs["custom"])
    (trace,) = runs["custom"].recording.traces
    steps = [mark for mark in marks(trace) if mark.name == "train" and mark.stat("step_num") in kept]
    between: list[int] = []
    usual: list[int] = []
    for step, after in pairwise(steps):
        gap = after.start_ps - step.start_ps - step.duration_ps
        skipped = after.stat("step_num") - step.stat("step_num") - 1
        (between if skipped else usual).append(gap)
    assert len(between) == 2
    assert min(between) > 3 * sorted(usual)[len(usual) // 2]


def test_the_loop_is_described(runs: dict[str, Run]) -> None:
    program = runs["custom"].program
    assert (program["run"]["optimizer"], program["run"]["batch_size"]) == ("Adam", 4)
    assert program["input_kind"] == "tf.data"
    datasets = {dataset["id"]: dataset for dataset in program["datasets"]}
    feeds = datasets[program["feeds"]]
    assert feeds["class"] == "_BatchDataset"
    assert feeds["cardinality"] == 12
    names = {graph["name"] for graph in program["graphs"]}
    assert {"train", "check"} <= names


# How it goes on


def test_a_block_that_ends_in_warm_up_says_so(runs: dict[str, Run]) -> None:
    run = runs["warm_up_only"]
    assert run.recording.traces == ()
    assert run.manifest.window is None
    assert run.missing()["trace"] == "the block ended after 7 steps, during warm-up (10): record with warmup=3"
    assert run.program["layers"]


def test_the_users_running_profiler_is_marked_and_its_trace_used(runs: dict[str, Run]) -> None:
    run = runs["own_profiler"]
    assert numbers(run) == list(range(60))
    assert (run.window.stopped_by, run.window.contains_warmup) == ("user-profiler", True)
    assert "own profiler" in run.manifest.steps.why
    (theirs,) = run.out.parent.glob("theirs/plugins/profile/*/*.xplane.pb")
    (ours,) = run.recording.traces
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_broken_hook_is_recorded_and_never_raised(runs: dict[str, Run]) -> None:
    run = runs["broken_agent"]
    digests = [line for line in run.stdout.splitlines() if len(line) == 64]
    assert max(Counter(digests).values()) == 3  # this fit, the one without recording, and that of their profiler
    assert run.manifest.agent_errors
    assert {error.where for error in run.manifest.agent_errors} <= {"dataset", "layer", "fit", "metric"}
    assert "training broke" in run.manifest.agent_errors[0].error
    assert numbers(run)


# What rules find in it


def judged(run: Run, name: str) -> Outcome:
    rules = [rule for rule in all_rules() if rule.name == name]
    (verdict,) = (result.outcome for result in diagnose(run.recording, rules, "", ask_xprof=False).results)
    return verdict


def test_a_custom_loop_is_judged_by_its_optimizer(runs: dict[str, Run]) -> None:
    assert isinstance(judged(runs["scaled"], "loss-scaling"), Healthy)


def test_both_loops_of_a_run_are_found_with_their_lines(runs: dict[str, Run]) -> None:
    verdict = judged(runs["histograms"], "unvectorized-operation")
    assert isinstance(verdict, Finding), verdict
    assert verdict.summary == "vectorized_map runs HistogramFixedWidth once for each element, in two loops"
    lines = [number for number, line in enumerate(HISTOGRAMS.splitlines(), 1) if "tf.vectorized_map(" in line]
    assert [f"line={line}" in str(verdict.evidence) for line in lines] == [True, True]


def test_the_call_and_recurrent_arguments_are_recorded(runs: dict[str, Run]) -> None:
    program = runs["deterministic"].recording.program
    assert program is not None
    (aid,) = program.run.debugging or ()
    assert aid.aid == "op_determinism"
    assert aid.at is not None
    assert aid.at[1] == 1 + DETERMINISTIC.splitlines().index("tf.config.experimental.enable_op_determinism()")
    layers = {layer.kind: layer for layer in program.layers or ()}
    lstm = layers["LSTM"].recurrent
    assert lstm is not None
    assert (lstm.recurrent_dropout, lstm.activation, lstm.recurrent_activation) == (0.5, "relu", "sigmoid")
    assert (lstm.unroll, lstm.use_bias, lstm.use_cudnn) == (False, True, "auto")
    assert layers["Embedding"].masks
    assert layers["Dense"].recurrent is None
