"""What training calls are given is looked at, whatever made it: a Python generator, arrays, feeds."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.capture.running import SOURCES, Run, environment
from tfdoctor.capture.agent.program.padding import BATCHES

pytestmark = pytest.mark.tensorflow

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
train = tf1.train.AdagradOptimizer(0.1).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for given, wanted in batches():
        session.run(train, feed_dict={tokens: given, y: wanted})
""",
}


EACH = """
import runpy, sys, tfdoctor
for name in sys.argv[1:]:
    with tfdoctor.record(name, warmup=8, steps=5, sample_every_ms=0):
        runpy.run_path(f"train_{name}.py")
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the recordings of all loops: those that run eagerly, in one process."""
    folder = tmp_path_factory.mktemp("received")
    for name, loop in LOOPS.items():
        (folder / f"train_{name}.py").write_text(TEXTS + loop)
    eager = [name for name in LOOPS if name != "session"]
    for names in (eager, ["session"]):
        done = subprocess.run(
            [sys.executable, "-c", EACH, *names],
            cwd=folder,
            env=environment(PYTHONPATH=str(SOURCES)),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("loop", LOOPS)
def test_the_padding_of_what_the_call_gets_is_seen(loop: str, recorded: Path) -> None:
    run = Run(0, "", "", recorded / loop)
    assert "sequence lengths" not in run.missing()
    entry, _ = run.program["sequences"]
    assert entry["steps"] == [120] * BATCHES
    assert (entry["pad"], entry["leading"], entry["mask"]) == (0, False, False)
    lengths = [length for batch in entry["lengths"] for length in batch]
    assert len(lengths) == 8 * BATCHES
    assert all(5 <= length < 60 for length in lengths)
