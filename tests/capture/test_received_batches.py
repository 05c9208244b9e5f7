"""What training calls are given is looked at, whatever made it: a Python generator, arrays, feeds."""

from pathlib import Path

import pytest

from tests.capture.running import profiled
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


@pytest.mark.parametrize("loop", LOOPS)
def test_the_padding_of_what_the_call_gets_is_seen(loop: str, tmp_path: Path) -> None:
    if loop == "tf_keras":
        pytest.importorskip("tf_keras")
    script = tmp_path / "train.py"
    script.write_text(TEXTS + LOOPS[loop])
    run = profiled(script, tmp_path / "out", warmup=8, steps=5)
    assert run.code == 0, run.stderr
    assert "sequence lengths" not in run.missing()
    entry, _ = run.program["sequences"]
    assert entry["steps"] == [120] * BATCHES
    assert (entry["pad"], entry["leading"], entry["mask"]) == (0, False, False)
    lengths = [length for batch in entry["lengths"] for length in batch]
    assert len(lengths) == 8 * BATCHES
    assert all(5 <= length < 60 for length in lengths)
