"""mixed-precision with classes of the file: only where every operand of call() has the policy's type."""

import pytest

from tests.edits.editing import edited
from tfdoctor.edits.splice import Declined

TEXT = """import keras
import numpy as np
import tensorflow as tf

TABLE, SCALE = tf.ones([4]), 2.0


class Block(keras.layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.inner = keras.layers.Dense(width)
        self.width = width

    def call(self, x):
        return tf.nn.relu(self.inner(x)) + x


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [Block(4) for _ in range(2)]
        self.head = keras.layers.Dense(2)
        self.weight = tf.Variable(1.0)

    def call(self, x, training=False):
        for block in self.blocks:
            x = block(x)
        {body}
        return {result}

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean({loss})
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {{"loss": loss}}


model = Net()
model.compile("sgd", "mse")
model.fit(data)
{after}
"""

HEAD = "self.head(x)"
LOSS = "self(x) - y"


def made(body: str = "pass", result: str = HEAD, loss: str = LOSS, after: str = "") -> str:
    text = TEXT.format(body=body, result=result, loss=loss, after=after)
    return edited("mixed-precision", text, "model = Net")


@pytest.mark.parametrize(
    "body", ["pass", "x = x * 2.0", "x = x * SCALE", "x = tf.concat([x, x], -1)", "x = tf.reshape(x, [-1, 4])"]
)
def test_the_head_of_an_own_model_stays_float32(body: str) -> None:
    text = made(body)
    assert 'self.head = keras.layers.Dense(2, dtype="float32")' in text
    assert 'keras.mixed_precision.set_global_policy("mixed_bfloat16")' in text
    assert text.count("float32") == 1


@pytest.mark.parametrize(
    ("body", "result", "loss", "after"),
    [
        ("x = x + tf.random.normal([4])", HEAD, LOSS, ""),
        ("x = x * TABLE", HEAD, LOSS, ""),
        ("x = x * np.pi", HEAD, LOSS, ""),
        ("x = x * self.weight", HEAD, LOSS, ""),
        ("x = tf.cast(x, tf.float32)", HEAD, LOSS, ""),
        ("x = tf.matmul(x, TABLE)", HEAD, LOSS, ""),
        ("x = helper(x)", HEAD, LOSS, ""),
        ("pass", "tf.nn.softmax(self.head(x))", LOSS, ""),
        ("pass", "self.head(x), x", LOSS, ""),
        ("pass", "self.blocks(x)", LOSS, ""),
        ("pass", HEAD, "self.head(x) - y", ""),
        ("pass", HEAD, LOSS, "print(model.head(data))"),
        ("pass", HEAD, LOSS, "other = keras.Model(a, b)"),
    ],
)
def test_what_may_mix_two_types_declines(body: str, result: str, loss: str, after: str) -> None:
    with pytest.raises(Declined):
        made(body, result, loss, after)


def test_a_call_of_several_inputs_declines() -> None:
    text = TEXT.format(body="pass", result=HEAD, loss=LOSS, after="")
    with pytest.raises(Declined, match="several inputs"):
        edited("mixed-precision", text.replace("call(self, x):", "call(self, x, y):"), "model = Net")


TWO = """import keras

first = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(4)])
second = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
"""


def test_the_last_layers_of_several_models_stay_float32() -> None:
    text = edited("mixed-precision", TWO, "first =")
    assert 'Dense(4, dtype="float32")' in text
    assert 'Dense(1, dtype="float32")' in text
    assert text.count("float32") == 2
