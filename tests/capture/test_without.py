"""What the agent takes out of a program is answered as if it had worked: one process has all parts taken out.

Before, it runs a program twice: batches that the agent takes from fit's iterator are seen before the window,
and trained on as if they were not.
"""

from tests.capture.kit import *
from tests.capture.running import Run, ended, line_of
from tfdoctor.terms.kinds import Part

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import json, runpy, sys, tfdoctor

# First, as nobody has taken anything out: a program without and with a recording of it
runpy.run_path("without.py")
with tfdoctor.record("recording", warmup=6, steps=5, sample_every_ms=0):
    runpy.run_path("with.py")

from tfdoctor.capture.agent.process import imports, journal
from tfdoctor.capture.agent.stream import Stream
from tfdoctor.capture.agent.trial.without import TakenOut

log, parts = journal.Journal(sys.argv[2]), {}
stream = Stream(log)
for plan in json.loads(sys.argv[1]):
    part = parts[f"{plan['part']} {plan['name']}".strip()] = TakenOut(plan)
    part.listen(stream)
imports.watch(stream.hooks(), log)

from pathlib import Path
import keras
import numpy as np
import tensorflow as tf
found, drawn = {}, []

def see(value):
    drawn.append(int(value))
    return value

options = tf.data.Options()
options.autotune.enabled = False  # else the more are made ahead, the busier the machine is
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

def model_of():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae", keras.metrics.AUC(num_labels=1, multi_label=True, name="auc")])
    return model

model, x, y = model_of(), np.ones((64, 4), "float32"), np.ones((64, 1), "float32")
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
print(json.dumps(found))
"""

PASSED = """
import keras
import numpy as np
import tensorflow as tf

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
model = keras.Sequential([
    keras.Input((None,), dtype="int32"),
    keras.layers.Embedding(50, 8),
    keras.layers.GlobalAveragePooling1D(),
    keras.layers.Dense(1),
])
model.compile("sgd", "mse")
history = model.fit(data, epochs=2, verbose=0)
weights = [float(np.sum(weight, dtype="float64")).hex() for weight in model.get_weights()]
counts = model.train_function.experimental_get_tracing_count() if hasattr(
    model.train_function, "experimental_get_tracing_count") else 1
open(OUT, "w").write(repr((weights, history.history["loss"], drawn, counts)))
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the script without its parts, and return where it wrote."""
    folder = tmp_path_factory.mktemp("without")
    for name in ("with", "without"):
        (folder / f"{name}.py").write_text(f"OUT = {str(folder / name)!r}\n{PASSED}")
    (folder / "script.py").write_text(SCRIPT)
    (folder / "out").mkdir()
    plans = [plan(part, name, folder / "script.py") for part, names in PLANS.items() for name in names]
    words = [sys.executable, "script.py", json.dumps(plans), str(folder / "out")]
    done = ended(words, folder, env=environment(PYTHONPATH=str(SOURCES)))
    assert done.returncode == 0, done.stderr[-3000:]
    (folder / "found.json").write_text(done.stdout.splitlines()[-1])
    return folder


def test_what_is_taken_out_is_answered_as_if_it_had_worked(
    folder: Path, golden: Callable[[str, str], None]
) -> None:
    found = json.loads((folder / "found.json").read_text())
    assert set(range(16)) <= set(found.pop("drawn")) <= set(range(24))  # eight, and what tf.data makes ahead
    assert min(found["loss"]) > 0
    reached = found.pop("reached")
    found["reached"] = {part: reached[part] for part in (Part.EVALUATION, Part.PREDICTION)}  # at their lines alone
    assert reached[f"{Part.SUMMARIES} tf.summary"] >= 2, reached
    assert found.pop("predicted") != 7  # it is a copy of the last one of the same shapes
    for name in ("loss", "evaluated", "dict"):
        found[name] = sorted(found[name]) if name == "dict" else len(found[name])
    golden("without.json", json.dumps(found, indent=1, sort_keys=True))


def test_the_padding_of_batches_that_fit_takes_is_seen(folder: Path) -> None:
    run = Run(0, "", "", folder / "recording")
    (entry,) = [entry for entry in run.program["sequences"] if not entry["leading"]]
    assert (entry["batches"], entry["steps"]) == (True, [40] * len(entry["lengths"]))
    assert all(4 <= length < 12 for batch in entry["lengths"] for length in batch)
    assert not run.manifest.agent_errors


def test_training_and_the_users_generator_are_the_same_to_the_last_bit(folder: Path) -> None:
    assert (folder / "with").read_text() == (folder / "without").read_text()
