"""dataset-once: a dataset is made before the loop where nothing in it changes with the loop."""

import ast

import pytest

from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, spliced
from tfdoctor.rules.epoch_boundary.edit import EDITS

HEAD = """import numpy as np
import tensorflow as tf

x = np.zeros((9000, 4))
"""

LOOP = """for epoch in range(9):
{made}    for batch in dataset:
        train_step(batch)
"""

MADE = "    dataset = tf.data.Dataset.from_tensor_slices(x).shuffle(9000).batch(32)\n"


def edited(text: str, mark: str = "dataset = ") -> str:
    line = next(n for n, one in enumerate(text.split("\n"), 1) if mark in one)
    new = spliced(text, EDITS["dataset-once"](SyntaxTree(text), line, ""))
    ast.parse(new)
    return new


def script(made: str = MADE, head: str = HEAD) -> str:
    return head + LOOP.format(made=made)


def test_a_dataset_is_made_before_the_loop() -> None:
    assert edited(script()) == HEAD + MADE.strip() + "\n" + LOOP.format(made="")


def test_a_statement_of_several_lines_keeps_its_shape() -> None:
    made = "    dataset = (\n        tf.data.Dataset.range(9)\n        .batch(2)\n    )  # all\n"
    moved = "dataset = (\n    tf.data.Dataset.range(9)\n    .batch(2)\n)  # all\n"
    assert edited(script(made)) == HEAD + moved + LOOP.format(made="")


def test_a_loop_in_a_function_keeps_its_indent() -> None:
    loop = LOOP.format(made=MADE)
    text = HEAD + "def train():\n" + "".join(f"    {line}\n" for line in loop.splitlines())
    expected = f"def train():\n{MADE}    for epoch in range(9):\n        for batch in dataset:\n"
    assert expected in edited(text)


FUNCTION = """def make(rows):
    parts = []
    for row in rows:
        parts.append(row * 2)
    return tf.data.Dataset.from_tensor_slices(np.stack(parts)).batch(32)

"""


def test_the_line_in_a_function_leads_to_the_call_of_it() -> None:
    head = HEAD + FUNCTION
    text = script("    dataset = make(x)\n", head)
    assert edited(text, "return tf.data") == head + "dataset = make(x)\n" + LOOP.format(made="")


def test_the_line_of_a_helper_leads_to_the_dataset_as_well() -> None:
    helper = "def double(row):\n    return row * 2\n\n"
    head = HEAD + helper + FUNCTION.replace("row * 2", "double(row)")
    text = script("    dataset = make(x)\n", head)
    assert edited(text, "return row * 2") == head + "dataset = make(x)\n" + LOOP.format(made="")


LEFT = [
    MADE.replace("(x)", "(x[epoch:])"),
    MADE.replace("(x)", "(np.random.permutation(x))"),
    MADE.replace("9000)", "9000, seed=epoch)"),
    MADE.replace("9000)", "9000, seed=1)"),
    MADE.replace(".batch", ".map(augment).cache().batch"),
    "    x = load()\n" + MADE,
    "    x[0] = 1\n" + MADE,
    "    x += 1\n" + MADE,
    "    rng.shuffle(x)\n" + MADE,
    MADE + "    dataset = dataset.prefetch(2)\n",
    "    if epoch:\n    " + MADE,
    MADE.replace("dataset = ", "dataset, other = 1, "),
    "    dataset = load()\n",
    "    dataset = x.copy()\n",
]


@pytest.mark.parametrize("made", LEFT)
def test_what_may_differ_in_each_epoch_is_left(made: str) -> None:
    with pytest.raises(Declined):
        edited(script(made), "dataset")


@pytest.mark.parametrize("changed", ["random.random()", "next(rows)", "np.random.rand()"])
def test_a_function_that_may_make_another_dataset_is_left(changed: str) -> None:
    head = HEAD + FUNCTION.replace("row * 2", changed)
    with pytest.raises(Declined, match="another dataset"):
        edited(script("    dataset = make(x)\n", head), "    dataset = make")


def test_a_line_outside_of_loops_is_left() -> None:
    with pytest.raises(Declined, match="at each turn of a loop"):
        edited(HEAD + MADE.strip() + "\n", "dataset")
