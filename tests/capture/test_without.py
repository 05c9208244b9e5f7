"""What the agent takes out of a program is answered as if it had worked: one process has all parts taken out."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.capture.running import SOURCES, environment
from tfdoctor.terms.kinds import Part

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import json, sys
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
filtered = []
for _ in range(2):
    for number in unknown:
        filtered.append(int(number))  # train here
found["filtered"] = filtered

class Counting(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.seen = []
    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(batch)
    def on_epoch_end(self, epoch, logs=None):
        self.seen.append(logs)

class Other(Counting):
    pass

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

def evaluated(**more):
    return model.evaluate(x, y, verbose=0, **more)  # evaluate here

found["evaluated"], found["dict"] = evaluated(), evaluated(return_dict=True)
other = model.evaluate(x, y, verbose=0)
found["other"] = len(other)

def predicted(rows):
    return model.predict(rows, verbose=0)  # predict here

first = predicted(x)
first[:] = 7
found["predicted"] = float(predicted(2 * x).max())
found["fewer"] = predicted(x[:5]).shape

tracker = tf.train.Checkpoint(model=model)
manager = tf.train.CheckpointManager(tracker, "checkpoints", max_to_keep=2)
path = manager.save(); model.save(Path("model.keras")); tracker.save("checkpoints/own")  # save here
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

EVERYWHERE = {Part.METRICS: "metrics", Part.SUMMARIES: "tf.summary"}


def plan(part: str, name: str, at: tuple[str, int] | None = None) -> Mapping[str, object]:
    return {"part": part, "name": name, "at": at, "length": 20}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Run the script without its parts; return what it saw."""
    folder = tmp_path_factory.mktemp("without")
    script, out = folder / "script.py", folder / "out"
    script.write_text(SCRIPT)
    out.mkdir()

    def line(mark: str) -> tuple[str, int]:
        lines = SCRIPT.splitlines()
        return str(script), next(n for n, one in enumerate(lines, 1) if one.endswith(mark))

    plans = [plan(part, name) for part, name in EVERYWHERE.items()]
    plans += [plan(Part.CALLBACK, name) for name in ("Counting", "ModelCheckpoint")]
    plans += [
        plan(part, "", line(f"# {verb} here"))
        for part, verb in (
            (Part.EVALUATION, "evaluate"),
            (Part.PREDICTION, "predict"),
            (Part.SAVING, "save"),
            (Part.INPUT, "train"),
        )
    ]
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(plans), str(out)],
        cwd=folder,
        env=environment(PYTHONPATH=str(SOURCES)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert not result["faults"]
    return result


def test_the_first_batches_come_again_as_often_as_the_data_has_batches(found: Mapping[str, Any]) -> None:
    assert found["passes"] == [40, 40, 40]
    assert set(range(16)) <= set(found["drawn"]) <= set(range(24))  # eight, and what tf.data makes ahead


def test_data_without_an_end_has_none_and_data_of_unknown_length_stays_as_it_is(found: Mapping[str, Any]) -> None:
    assert len(found["endless"]) == 2
    assert found["unknown"] == 30
    assert "unknown" in found["refused"][Part.INPUT]


def test_the_training_loop_has_as_many_batches_as_were_recorded(found: Mapping[str, Any]) -> None:
    assert found["filtered"] == 2 * ([*range(0, 16, 2)] * 3)[:20]


def test_only_callbacks_of_the_class_are_silent(found: Mapping[str, Any]) -> None:
    assert found["silent"] == 0  # but its attribute is there
    assert found["heard"] == 3 * 8 + 3


def test_metrics_take_in_nothing_and_the_loss_stays(found: Mapping[str, Any]) -> None:
    assert found["mae"] == [0, 0, 0]
    assert all(loss > 0 for loss in found["loss"])


def test_evaluation_at_the_line_has_the_form_of_a_real_one(found: Mapping[str, Any]) -> None:
    assert set(found["dict"]) == {"loss", "mae", "auc"}
    assert len(found["evaluated"]) == found["other"] == 3
    assert found["reached"][Part.EVALUATION] == 2  # not the one of another line


def test_a_prediction_of_the_same_shapes_is_a_copy_of_the_last_one(found: Mapping[str, Any]) -> None:
    assert found["predicted"] != 7
    assert found["fewer"] == [5, 1]
    assert found["reached"][Part.PREDICTION] == 1


def test_nothing_is_saved_at_the_line_nor_missed_later(found: Mapping[str, Any]) -> None:
    assert found["files"] == [False, False, True]
    assert found["loaded"]


def test_summaries_are_not_written(found: Mapping[str, Any]) -> None:
    assert not found["written"]
    assert found["reached"][f"{Part.SUMMARIES} tf.summary"] >= 2, found["reached"]
