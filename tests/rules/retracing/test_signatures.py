"""reduce-retracing and tensor-argument: a function is traced once for all shapes, or for all numbers."""

import ast

import pytest

from tests.edits.editing import EXAMPLES, KINDS
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, spliced

SCRIPT = """import keras
import tensorflow as tf

model = keras.Sequential([keras.layers.Dense(2)])


def scaled(x):
    return x * 0.5


@tf.function
def train_step(x, beta):
    loss = tf.reduce_mean(model(scaled(x))) + beta * tf.reduce_sum(x)
    return loss


for step in range(100):
    beta = min(1.0, step / 10)
    loss = train_step(batch(step), beta)
"""

CALL = "    loss = train_step(batch(step), beta)\n"
SUM = "beta * tf.reduce_sum(x)"


def made(edit_id: str, text: str) -> str:
    example = "loss = train_step(x)" if edit_id == "tensor-argument" else "def train_step(x): ..."
    assert edit_id not in EXAMPLES
    new = spliced(text, KINDS[edit_id](SyntaxTree(text), 0, example))
    ast.parse(new)
    return new


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@tf.function", "@tf.function(reduce_retracing=True)"),
        ("@tf.function()", "@tf.function(reduce_retracing=True)"),
        ("@tf.function(autograph=False)", "@tf.function(autograph=False, reduce_retracing=True)"),
    ],
)
def test_a_function_keeps_one_graph_for_all_shapes(before: str, after: str) -> None:
    text = SCRIPT.replace("@tf.function", before)
    assert made("reduce-retracing", text) == SCRIPT.replace("@tf.function", after)


@pytest.mark.parametrize(
    "changed",
    [
        ("x * 0.5", "x * x.shape[0]"),
        ("x * 0.5", "sum(x[i] for i in range(4))"),
        ("x * 0.5", "len(x) * x"),
        ("x * 0.5", "tf.add_n(tf.unstack(x))"),
        ("keras.layers.Dense(2)", "keras.layers.Flatten()"),
        ("@tf.function", "@tf.function(jit_compile=True)"),
        ("@tf.function", "@tf.function(input_signature=spec)"),
        ("@tf.function", "@other"),
        ("def train_step", "def another"),
    ],
)
def test_a_shape_that_is_needed_stays_known(changed: tuple[str, str]) -> None:
    with pytest.raises(Declined):
        made("reduce-retracing", SCRIPT.replace(*changed))


@pytest.mark.parametrize(
    "number", ["min(1.0, step / 10)", "step / 10", "0.5 * step", "float(step)", "0.1 if step else 0.2"]
)
def test_a_number_that_changes_is_passed_as_a_tensor(number: str) -> None:
    text = SCRIPT.replace("min(1.0, step / 10)", number)
    new = CALL.replace("beta)", "tf.constant(beta, tf.float32))")
    assert made("tensor-argument", text) == text.replace(CALL, new)


@pytest.mark.parametrize(
    "changed",
    [
        ("min(1.0, step / 10)", "step"),
        ("min(1.0, step / 10)", "step // 10"),
        (SUM, "(tf.reduce_sum(x) if beta > 0.5 else 0.0)"),
        (SUM, "scaled(beta)"),
        (SUM, "keras.layers.Dropout(beta)(x)"),
        ("return loss", "return loss, beta"),
        ("x * 0.5", "tf.cast(x, tf.float64)"),
        ("import keras", "import keras\nkeras.mixed_precision.set_global_policy('mixed_float16')"),
    ],
)
def test_a_number_that_python_needs_is_left(changed: tuple[str, str]) -> None:
    with pytest.raises(Declined):
        made("tensor-argument", SCRIPT.replace(*changed))


@pytest.mark.parametrize("passed", ["step", "tf.constant(step)"])
def test_a_number_that_changes_besides_is_not_left(passed: str) -> None:
    text = SCRIPT.replace("(x, beta)", "(x, beta, number)").replace("step), beta)", f"step), beta, {passed})")
    example = "loss = train_step(x, y, tf.constant(beta), tf.constant(number))"
    with pytest.raises(Declined, match="number"):
        KINDS["tensor-argument"](SyntaxTree(text), 0, example)
    assert KINDS["tensor-argument"](SyntaxTree(text), 0, example.replace("number", "step"))
