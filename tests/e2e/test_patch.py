"""A script is recorded, patched in several places at once by git, and trains as the patch says.

The findings are made up, each at its line: what tfdoctor's own rules find depends on the machine.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.capture.running import together
from tests.edits.kit import EXAMPLES, finding, git_apply, remedy
from tfdoctor.edits import edited
from tfdoctor.recording import Recording
from tfdoctor.terms.verdict import Edit

pytestmark = pytest.mark.tensorflow

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
print("traced", step.experimental_get_tracing_count(), "compiled", step._jit_compile)
x = np.random.rand(200, 4)
model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("sgd", "mse", run_eagerly=True)
model.fit(x, x.sum(1), batch_size=8, verbose=0)
print("eager", model.run_eagerly)
'''

LOOP_EDITS = {"jit-compile": "def step", "prefetch": ".batch(", "run-eagerly-off": "compile("}

GAN = '''"""Trains two models operation by operation."""
import keras
import tensorflow as tf

tf.random.set_seed(1)


class Critic(keras.Model):
    """Built by its first call."""

    def __init__(self):
        super().__init__()
        self.hidden = [keras.layers.Dense(8, activation="relu") for _ in range(2)]
        self.last = keras.layers.Dense(1)

    def call(self, x):
        for layer in self.hidden:
            x = layer(x)
        return self.last(x)


def train_step(critic, maker, optimizers, real):
    """Take a step of both."""
    with tf.GradientTape() as first, tf.GradientTape() as second:
        score = tf.reduce_mean(critic(maker(real[:, :2])) - critic(real))
        other = -score
    for optimizer, tape, loss, model in (
        (optimizers[0], first, score, maker),
        (optimizers[1], second, other, critic),
    ):
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return score


def main():
    """Train."""
    critic, maker = Critic(), keras.Sequential([keras.Input((2,)), keras.layers.Dense(4)])
    optimizers = (keras.optimizers.SGD(0.01), keras.optimizers.Adam(0.01))
    dataset = tf.data.Dataset.from_tensor_slices(tf.random.normal((200, 4))).batch(8)
    for step, real in enumerate(dataset):
        score = train_step(critic, maker, optimizers, real)
    print("trained", step, float(score) < 0.0 or float(score) >= 0.0)


main()
'''

GAN_EDITS = {"tf-function": "for step, real"}

CASES = {"loop": (LOOP, LOOP_EDITS), "gan": (GAN, GAN_EDITS), "fit": (FIT, FIT_EDITS)}
"""The scripts, and the words of the lines that each edit is asked for; the last one sets the type of all layers."""


class Patched(NamedTuple):
    """A script as it was patched, the patch and its edits."""

    text: str
    patch: bytes
    edits: list[Edit]


def patched(folder: Path, name: str) -> Patched:
    """Patch a recorded script by all edits that are asked for."""
    script, (text, asked) = folder / f"{name}.py", CASES[name]
    lines = text.split("\n")
    findings = [
        finding(edit_id, remedy(edit_id, script.name, 1 + next(at for at, one in enumerate(lines) if words in one),
                                EXAMPLES.get(edit_id, "")))
        for edit_id, words in asked.items()
    ]  # fmt: skip
    results, patch = edited(Recording.open(folder / name), findings, None)
    edits = [edit for result in results for edit in result.edits]
    assert [edit.missing for edit in edits] == [""] * len(asked)
    git_apply(patch, folder)
    return Patched(script.read_text("utf-8"), patch, edits)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture(scope="module")
def cases(folder: Path) -> dict[str, Patched]:
    for name, (text, _) in CASES.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    together(folder, {name: ([f"{name}.py"], {"steps": 4, "warmup": 2}) for name in CASES})
    return {name: patched(folder, name) for name in CASES}


@pytest.fixture(scope="module")
def said(folder: Path, cases: dict[str, Patched]) -> str:
    """Run all that were patched; return what they print."""
    return together(folder, {f"patched {name}": ([f"{name}.py"], None) for name in cases})["patched fit"].stdout


def test_all_edits_of_a_fit_go_together_and_it_trains(cases: dict[str, Patched], said: str) -> None:
    case = cases["fit"]
    assert "steps 16 jit True types ['bfloat16', 'float32']" in said
    assert case.text.count("num_parallel_calls=tf.data.AUTOTUNE") == 3
    assert "# cheap\n" in case.text
    assert ".cache()" in case.text
    assert ".batch(4, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)" in case.text
    assert case.patch.count(b"\n-") <= 7  # lines; the other ones stay


def test_a_loop_of_ones_own_is_compiled_and_so_is_a_model_that_was_debugged(
    cases: dict[str, Patched], said: str
) -> None:
    case = cases["loop"]
    assert re.search(r"traced [12] compiled True", said)
    assert "\neager False\n" in said
    assert "@tf.function(jit_compile=True)" in [edit.after for edit in case.edits]


def test_a_step_of_two_models_becomes_a_graph(cases: dict[str, Patched], said: str) -> None:
    assert "\ntrained 24 True\n" in said
    assert "@tf.function\ndef train_step" in cases["gan"].text
