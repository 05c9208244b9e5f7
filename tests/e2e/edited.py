"""Scripts that are edited in several places at once, with the words of the lines that each edit is asked for.

The findings are made up, each at its line: what tfdoctor's own rules find depends on the machine.
"""

from pathlib import Path

from tests.edits.kit import EXAMPLES, finding, remedy
from tfdoctor.edits import edited
from tfdoctor.recording import Recording

FIT = '''"""Trains a small model on files."""
import tensorflow as tf
from tensorflow import keras
for name in "ab":
    tf.io.write_file(f"{name}.txt", "1.5\\n2.5\\n3.5\\n4.5\\n5.5\\n")

def parse(line):
    """Read a number."""
    x = tf.strings.to_number(line)
    return tf.stack([x, x]), x

dataset = tf.data.Dataset.from_tensor_slices(["a.txt", "b.txt"])
dataset = dataset.interleave(tf.data.TextLineDataset, cycle_length=2)
dataset = dataset.map(
    parse,  # cheap
)
dataset = dataset.repeat().batch(4)
model = keras.Sequential(
    [
        keras.layers.Dense(8, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile("sgd", "mse")
model.fit(dataset, epochs=2, steps_per_epoch=16, verbose=0)
told = {layer.name: layer.compute_dtype for layer in model.layers}
print("steps", model.steps_per_execution, "jit", model.jit_compile is True, "types", [*told.values()])
'''

FIT_EDITS = {
    "parallel-interleave": ".interleave(",
    "parallel-map": "dataset.map(",
    "cache": "dataset.map(",
    "parallel-batch": ".batch(",
    "prefetch": ".batch(",
    "mixed-precision": "Dense(8",
    "jit-compile": "compile(",
    "steps-per-execution": "compile(",
}

LOOP = '''"""Trains in a loop of its own, and a model that was debugged once."""
import keras
import numpy as np
import tensorflow as tf

dataset = tf.data.Dataset.range(200).map(lambda x: tf.cast(x, "float32")).batch(4)
weight = tf.Variable(1.0)

@tf.function
def step(x):
    """Take a step."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((weight * x / 200.0) ** 2)
    weight.assign_sub(0.1 * tape.gradient(loss, weight))
    return loss

for x in dataset:
    step(x)
print("traced", step.experimental_get_tracing_count())
x = np.random.rand(200, 4)
model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("sgd", "mse", run_eagerly=True)
model.fit(x, x.sum(1), batch_size=8, verbose=0)
print("eager", model.run_eagerly)
'''

LOOP_EDITS = {"prefetch": ".batch(", "run-eagerly-off": "compile("}

GAN = '''"""Trains two models operation by operation."""
import keras
import tensorflow as tf

tf.random.set_seed(1)

def train_step(critic, maker, slow, fast, real):
    """Take a step of both."""
    with tf.GradientTape() as first, tf.GradientTape() as second:
        score = tf.reduce_mean(critic(maker(real[:, :2])) - critic(real))
        other = -score
    variables = maker.trainable_variables
    slow.apply_gradients(zip(first.gradient(score, variables), variables))
    variables = critic.trainable_variables
    fast.apply_gradients(zip(second.gradient(other, variables), variables))
    return score

def main():
    """Train."""
    critic = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
    maker = keras.Sequential([keras.Input((2,)), keras.layers.Dense(4)])
    slow, fast = keras.optimizers.SGD(0.01), keras.optimizers.Adam(0.01)
    dataset = tf.data.Dataset.from_tensor_slices(tf.random.normal((200, 4))).batch(8)
    for step, real in enumerate(dataset):
        score = train_step(critic, maker, slow, fast, real)
    print("trained", step, float(score) < 0.0 or float(score) >= 0.0)

main()
'''

GAN_EDITS = {"tf-function": "for step, real"}

CASES = {"loop": (LOOP, LOOP_EDITS), "gan": (GAN, GAN_EDITS), "fit": (FIT, FIT_EDITS)}
"""The last one sets the type of all layers."""


def patch(folder: Path, name: str) -> str:
    """Return the patch of a recorded script by all edits that are asked for."""
    text, asked = CASES[name]
    lines = text.split("\n")
    at = {edit_id: 1 + next(at for at, one in enumerate(lines) if words in one) for edit_id, words in asked.items()}
    findings = [finding(one, remedy(one, f"{name}.py", line, EXAMPLES.get(one, ""))) for one, line in at.items()]
    results, made = edited(Recording.open(folder / name), findings, None)
    assert [edit.missing for result in results for edit in result.edits] == [""] * len(asked)
    return made.decode()
