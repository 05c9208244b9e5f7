"""compile-once and function-once: what a loop makes in each turn is made once, where that changes nothing else."""

import ast

import pytest

from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, spliced
from tfdoctor.rules.retracing.edit import EDITS

COMPILED = """import keras

model = keras.Sequential([keras.layers.Dense(2)])
for epoch in range(10):
    rate = 0.1 * 0.9**epoch
    model.compile(
        optimizer=keras.optimizers.Adam(rate, beta_1=0.8),
        loss="mse",
    )
    model.fit(x, y)
"""

FUNCTION = """import tensorflow as tf

for epoch in range(10):
    @tf.function
    def step(x):
        y = x * scale
        return y

    for batch in data:
        step(batch)
"""


def edited(edit_id: str, text: str, marked: str) -> str:
    number = 1 + next(at for at, line in enumerate(text.splitlines()) if marked in line)
    new = spliced(text, EDITS[edit_id](SyntaxTree(text), number, ""))
    ast.parse(new)
    return new


def test_compile_moves_up_and_the_rate_is_assigned() -> None:
    assert (
        edited("compile-once", COMPILED, "model.compile")
        == """import keras

model = keras.Sequential([keras.layers.Dense(2)])
model.compile(
    optimizer=keras.optimizers.Adam(beta_1=0.8),
    loss="mse",
)
for epoch in range(10):
    rate = 0.1 * 0.9**epoch
    model.optimizer.learning_rate = rate
    model.fit(x, y)
"""
    )


@pytest.mark.parametrize(
    ("optimizer", "above", "instead"),
    [
        ('"adam"', '"adam"', ""),
        ("keras.optimizers.SGD(0.1)", "keras.optimizers.SGD(0.1)", ""),
        ("keras.optimizers.SGD(learning_rate=rate)", "keras.optimizers.SGD()", "rate"),
        ("keras.optimizers.Adam(beta_1=0.8, learning_rate=rate)", "keras.optimizers.Adam(beta_1=0.8)", "rate"),
        ("keras.optimizers.Adam(rates[epoch])", "keras.optimizers.Adam()", "rates[epoch]"),
    ],
)  # fmt: skip
def test_only_a_rate_that_changes_stays_in_the_loop(optimizer: str, above: str, instead: str) -> None:
    call = "    model.compile({}, loss='mse')\n"
    a, b = COMPILED.index("    model.compile"), COMPILED.index("    model.fit")
    text = COMPILED[:a] + call.format(optimizer) + COMPILED[b:]
    new = edited("compile-once", text, "model.compile")
    assert f"\nmodel.compile({above}, loss='mse')\nfor epoch" in new
    assert new.count("compile") == 1
    assert (f"    model.optimizer.learning_rate = {instead}\n" in new) == bool(instead)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('loss="mse"', "loss=losses[epoch]"),  # another loss each time
        ('loss="mse"', "loss=make_loss()"),
        ("beta_1=0.8", "beta_1=epoch"),
        ("model.fit(x, y)", "model.layers[0].trainable = True\n    model.fit(x, y)"),  # trap: it needs a compile
        ("for epoch in range(10):", "for model in models:"),  # tuning
        ("    rate = 0.1", "    model = keras.Sequential([keras.layers.Dense(epoch)])\n    rate = 0.1"),
        ("keras.Sequential([keras.layers.Dense(2)])", "sklearn_model()"),
        ("0.1 * 0.9**epoch", "keras.optimizers.schedules.CosineDecay(0.1, epoch)"),
        ("model.fit(x, y)", "model.fit(x, y, callbacks=[keras.callbacks.ReduceLROnPlateau()])"),
        ('loss="mse",\n', 'loss="mse", **options,\n'),
        ("        optimizer=", "        run_id='''a\n        b''', optimizer="),
    ],
)  # fmt: skip
def test_a_compile_that_may_be_needed_stays(before: str, after: str) -> None:
    assert before in COMPILED
    with pytest.raises(Declined):
        edited("compile-once", COMPILED.replace(before, after), "model.compile")


@pytest.mark.parametrize("head", ["if epoch % 2:", "with scope:"])
def test_a_compile_within_a_block_of_the_loop_stays(head: str) -> None:
    text = f"import keras\nm = keras.Sequential()\nfor epoch in e:\n    {head}\n        m.compile()\n    m.fit(x)\n"
    with pytest.raises(Declined, match="no statement of a loop"):
        edited("compile-once", text, "m.compile")


def test_a_function_moves_up() -> None:
    assert (
        edited("function-once", FUNCTION, "step(batch)")
        == """import tensorflow as tf

@tf.function
def step(x):
    y = x * scale
    return y


for epoch in range(10):

    for batch in data:
        step(batch)
"""
    )


def test_a_call_that_makes_a_function_moves_up() -> None:
    text = "import tensorflow as tf\nfor x in data:\n    step = tf.function(train)\n    step(x)\n"
    expected = "import tensorflow as tf\nstep = tf.function(train)\nfor x in data:\n    step(x)\n"
    assert edited("function-once", text, "step(x)") == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x * scale", "x * epoch"),  # another function in each turn
        ("y = x * scale", "y = tf.Variable(x)"),
        ("    for batch", "    step = tf.function(step)\n    for batch"),
        ("    @tf.function", "    scale = epoch\n    @tf.function"),
        ("    @tf.function\n", ""),
    ],
)
def test_a_function_that_may_differ_stays(before: str, after: str) -> None:
    assert before in FUNCTION
    with pytest.raises(Declined):
        edited("function-once", FUNCTION.replace(before, after), "step(batch)")


RATE_SET = """import keras

model = keras.Sequential([keras.layers.Dense(2)])
optimizer = keras.optimizers.Adam()
for epoch in range(10):
    optimizer.learning_rate = 0.1 * 0.9**epoch
    model.compile(optimizer=optimizer, loss="mse")
    model.fit(x, y)
"""


def test_an_optimizer_of_which_only_the_rate_changes_is_the_same() -> None:
    """The recording names the line of fit(), which traces the model again."""
    new = edited("compile-once", RATE_SET, "model.fit")
    line = 'model.compile(optimizer=optimizer, loss="mse")\n'
    assert new == RATE_SET.replace(f"    {line}", "").replace("for epoch", f"{line}for epoch")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("optimizer.learning_rate =", "optimizer.beta_1 ="),
        ("optimizer.learning_rate =", "optimizer = keras.optimizers.SGD(0.1); optimizer.learning_rate ="),
        ("model.fit(x, y)", "model.compile(optimizer=optimizer); model.fit(x, y)"),
    ],
)  # fmt: skip
def test_an_optimizer_that_changes_otherwise_declines(old: str, new: str) -> None:
    with pytest.raises(Declined):
        edited("compile-once", RATE_SET.replace(old, new), "model.fit")
