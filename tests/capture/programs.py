"""The programs that test_recorded_programs records, and how."""

from tests.capture.running import *
from tests.capture.timed_programs import BEGIN, END, TIMED, TIMED_SESSION
from tfdoctor.terms.kinds import Part

DEVICES = """
import keras, tensorflow as tf
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
"""

EAGER = "from tensorflow import compat\ncompat.v1.reset_default_graph()\ncompat.v1.enable_eager_execution()\n"

SHARED = """
import numpy as np, tensorflow as tf
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
def python(x):
    return x + np.random.normal(size=x.shape).astype("float32")
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
from shared import noise, python, train
layers, rng, numbers = keras.layers, tf.random.Generator.from_seed(1), np.random.default_rng(1)
augment = keras.Sequential([layers.RandomFlip()])
plain = keras.Sequential([layers.Rescaling(2.0), layers.Resizing(4, 4)])
table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1], [2]), 0)
def helped(x):
    return noise(x)
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
from tensorflow.python.framework import config
config.disable_op_determinism()
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

TAKEN_OUT = """
import json
from tfdoctor.capture.agent.process import imports, journal
from tfdoctor.capture.agent.stream import Stream
from tfdoctor.capture.agent.trial.without import TakenOut
log, parts = journal.Journal("."), {}
stream = Stream(log)
for plan in json.load(open("plans.json")):
    part = parts[f"{plan['part']} {plan['name']}".strip()] = TakenOut(plan)
    part.listen(stream)
imports.watch(stream.hooks(), log)
from pathlib import Path
import keras, numpy as np, tensorflow as tf
found, drawn = {}, []
def see(value):
    drawn.append(int(value))
    return value
options = tf.data.Options()
options.autotune.enabled = options.experimental_optimization.inject_prefetch = False  # else more are made ahead
seen = tf.data.Dataset.range(80).map(lambda x: tf.py_function(see, [x], tf.int64)).batch(2).with_options(options)
found["passes"] = [sum(1 for _ in seen) for _ in range(3)]
found["drawn"] = sorted(set(drawn))
endless = iter(tf.data.Dataset.range(3).repeat().batch(2))
found["endless"] = [next(endless).numpy().tolist() for _ in range(30)][-1]
unknown = tf.data.Dataset.range(60).filter(lambda x: x % 2 == 0)
found["unknown"] = len(list(unknown))
found["filtered"] = []
for _ in range(2):
    for number in unknown:
        found["filtered"].append(int(number))  # input here
class Counting(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.seen = []
    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(batch)
    def on_epoch_end(self, epoch, logs=None):
        self.seen.append(logs)
class Other(Counting): ...
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=["mae", keras.metrics.AUC(num_labels=1, multi_label=True, name="auc")])
x, y = np.ones((64, 4), "float32"), np.ones((64, 1), "float32")
silent, heard = Counting(), Other()
checkpoint = keras.callbacks.ModelCheckpoint("best.weights.h5", save_weights_only=True)
history = model.fit(x, y, epochs=3, batch_size=8, verbose=0, callbacks=[silent, [heard], checkpoint])
found["silent"], found["heard"] = len(silent.seen), len(heard.seen)
found["loss"], found["mae"] = history.history["loss"], history.history["mae"]
model.load_weights("best.weights.h5")  # which nobody wrote
evaluated = lambda **more: model.evaluate(x, y, verbose=0, **more)  # evaluation here
found["evaluated"], found["dict"] = evaluated(), evaluated(return_dict=True)
found["other"] = len(model.evaluate(x, y, verbose=0))
predicted = lambda rows: model.predict(rows, verbose=0)  # prediction here
first = predicted(x)
first[:] = 7
found["predicted"] = float(predicted(2 * x).max())
found["fewer"] = predicted(x[:5]).shape
tracker = tf.train.Checkpoint(model=model)
manager = tf.train.CheckpointManager(tracker, "checkpoints", max_to_keep=2)
path = manager.save(); model.save(Path("model.keras")); tracker.save("checkpoints/own")  # saving here
tracker.restore(manager.latest_checkpoint)
found["files"] = [tf.io.gfile.exists(name) for name in ("model.keras", "checkpoints/own-1.index")]
found["loaded"] = keras.models.load_model("model.keras") is model
model.save("other.keras")
found["files"].append(tf.io.gfile.exists("other.keras"))
writer = tf.summary.create_file_writer("summaries")
with writer.as_default(step=0):
    found["written"] = bool(tf.summary.write("loss", 1.0))
    writer.flush()
found["reached"] = {name: part.reached for name, part in parts.items()}
found["refused"] = {name: part.refused for name, part in parts.items() if part.refused}
found["faults"] = log.errors
json.dump(found, open("found.json", "w"))
"""

REVIEWS = """
import keras, numpy as np, tensorflow as tf
keras.utils.set_random_seed(1)
rng = np.random.default_rng(3)
drawn = []
def reviews():
    for _ in range(64):
        length = int(rng.integers(4, 12))
        drawn.append(length)
        yield rng.integers(1, 50, length), float(length > 7)
signature = (tf.TensorSpec((None,), tf.int32), tf.TensorSpec((), tf.float32))
data = tf.data.Dataset.from_generator(reviews, output_signature=signature)
data = data.shuffle(16).padded_batch(8, padded_shapes=([40], [])).map(lambda x, y: (x, y)).prefetch(2)
layers = keras.layers
embedding = [layers.Embedding(50, 8), layers.GlobalAveragePooling1D(), layers.Dense(1)]
model = keras.Sequential([keras.Input((None,), dtype="int32"), *embedding])
model.compile("sgd", "mse")
history = model.fit(data, epochs=2, verbose=0)
weights = [float(np.sum(weight, dtype="float64")).hex() for weight in model.get_weights()]
traced = getattr(model.train_function, "experimental_get_tracing_count", lambda: 1)()
print(weights, history.history["loss"], drawn, traced)
"""

FILES = """
import os
import tensorflow as tf
weights = tf.Variable(tf.zeros((250, 1)))
files = [f"{os.path.abspath('data')}/{number:02}.tfrecord" for number in range(40)]
for file in files:
    with tf.io.TFRecordWriter(file) as writer:
        for _ in range(8):
            writer.write(bytes(250))
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(x, weights) - 1.0) ** 2)
    weights.assign_sub(1e-9 * tape.gradient(loss, weights))
data = tf.data.Dataset.from_tensor_slices(files * 24)
data = data.interleave(tf.data.TFRecordDataset, cycle_length=3, num_parallel_calls=3, block_length=8)
data = data.map(lambda record: tf.cast(tf.io.decode_raw(record, tf.uint8), tf.float32))
for x in data.batch(160, drop_remainder=True).prefetch(2):
    step(x)
"""

PLANS = {  # by the part: names, or what the line ends with
    Part.METRICS: ["metrics"],
    Part.SUMMARIES: ["tf.summary"],
    Part.CALLBACK: ["Counting", "ModelCheckpoint"],
    **{part: [f"# {part} here"] for part in (Part.EVALUATION, Part.PREDICTION, Part.SAVING, Part.INPUT)},
}


def plan(part: str, name: str, script: Path) -> Mapping[str, object]:
    at = line_of(script, name) if name.startswith("#") else None
    return {"part": part, "name": "" if at else name, "at": at, "length": 20}


SCRIPTS = Path(__file__).parents[1] / "e2e" / "scripts"
TRAINING, STYLES, BLOCKS = SCRIPTS / "training.py", SCRIPTS / "loops.py", SCRIPTS / "blocks.py"
TWENTY, FEW = {"steps": 20}, {"warmup": 8, "steps": 5}

PROGRAMS: dict[str, tuple[Any, Any]] = {
    "devices": (DEVICES, None),  # first: it divides the CPU
    "plain reviews": (REVIEWS + "del data\n", None),  # while no hook is installed
    "plain blocks": (["blocks.py", "plain"], None),
    "blocks": (["blocks.py", "record"], None),
    "collected": ("import gc\ngc.collect()\n", None),  # else what is left of blocks is described with others
    "plain": ([STYLES, "session"], None),
    "sessions": ([STYLES, "session"], TWENTY),
    "session": (TEXTS + LOOPS["session"], FEW),
    "timed session": (BEGIN + TIMED_SESSION + END.format("session"), {"trace": False}),
    "eager": (EAGER, None),
    "mirrored": ([TRAINING, "mirrored"], TWENTY),
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
    "deterministic": (DETERMINISTIC, {"warmup": 2, "steps": 3}),
    "files": (FILES, {"warmup": 3, "steps": 20, "sample_every_ms": 50}),
    **{f"timed {name}": (BEGIN + text + END.format(name), {"trace": False}) for name, text in TIMED.items()},
    "reviews": (REVIEWS, {"warmup": 6, "steps": 5}),
    "taken out": (TAKEN_OUT, None),  # last: it changes what these do for good
}


def written(folder: Path, programs: dict[str, tuple[Any, Any]]) -> Programs:
    """Write the scripts of programs that are texts; return all with their words."""
    texts = {name: text for name, (text, _) in programs.items() if isinstance(text, str)}
    for name, text in texts.items():
        (folder / f"train_{name}.py").write_text(text)
    return {
        name: ([f"train_{name}.py"] if name in texts else words, plan) for name, (words, plan) in programs.items()
    }
