"""clear-session: called first in the loop that builds the models, where nothing of Keras outlives a turn."""

import ast

import pytest

from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, spliced
from tfdoctor.rules.tuning_loop.edit import EDITS

IN_LOOP = """import tensorflow as tf

def build(units):
    return tf.keras.Sequential([tf.keras.layers.Dense(units)])

scores = []
for units in (32, 64, 128):
    model = build(units)
    model.compile("adam", "mse")
    history = model.fit(x, y)
    scores.append(history.history["loss"][-1])
"""

IN_FUNCTION = """import keras

def run(units):
    model = keras.Sequential([keras.layers.Dense(units)])
    model.compile("adam", "mse")
    return model.fit(x, y).history

for units in (32, 64):
    print(run(units))
"""


def edited(text: str) -> str:
    number = 1 + next(at for at, line in enumerate(text.splitlines()) if "model.fit" in line)
    new = spliced(text, EDITS["clear-session"](SyntaxTree(text), number, ""))
    ast.parse(new)
    return new


def test_it_is_called_first_in_the_loop() -> None:
    head = "for units in (32, 64, 128):\n"
    assert edited(IN_LOOP) == IN_LOOP.replace(head, head + "    tf.keras.backend.clear_session()\n")


def test_it_is_called_in_the_loop_around_the_function() -> None:
    head = "for units in (32, 64):\n"
    assert edited(IN_FUNCTION) == IN_FUNCTION.replace(head, head + "    keras.backend.clear_session()\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("scores.append(history", "models.append(model)\n    scores.append(history"),  # the models are kept
        ("scores.append(history", "best = model\n    scores.append(history"),
        ("scores = []", "base = tf.keras.layers.Dense(2)"),  # its name would be given again
        ("scores = []", 'tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")'),  # it would be reset
        ("scores = []", "tf.compat.v1.disable_eager_execution()"),  # its graph would be removed
        ("    model = build", "    tf.keras.backend.clear_session()\n    model = build"),
        ("for units in (32, 64, 128):", "if units := 32:"),
        ("build(units)\n    model.compile", "other(units)\n    model.compile"),
    ],
)  # fmt: skip
def test_it_is_left_out_where_something_outlives_a_turn(before: str, after: str) -> None:
    assert before in IN_LOOP
    with pytest.raises(Declined):
        edited(IN_LOOP.replace(before, after))
