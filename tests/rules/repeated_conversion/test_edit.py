"""convert-once: arrays become tensors before the loop, under new names, where nothing can change them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.edits.editing import KINDS
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, spliced

HEAD = "import tensorflow as tf\n"
FIRST = "array_0 = tf.constant(array_0, tf.float32)  # before the loop"
SECOND = "array_1 = tf.constant(array_1)  # before the loop"
MASK = "array_mask = tf.constant(array_mask)  # before the loop"


def edited(text: str, example: str = FIRST) -> str:
    number = 1 + next(n for n, line in enumerate(text.split("\n")) if "step(" in line)
    return spliced(text, KINDS["convert-once"](SyntaxTree(text), number, example))


MADE = [
    (
        "for i in range(9):\n    loss = step(x, y)\n",
        FIRST,
        "x_tensor = tf.constant(x, tf.float32)\nfor i in range(9):\n    loss = step(x_tensor, y)\n",
    ),
    (
        "def train(x):\n    for e in range(2):\n        for i in range(len(x)):\n            step(x)\n",
        FIRST,
        (
            "def train(x):\n    x_tensor = tf.constant(x, tf.float32)\n    for e in range(2):\n"
            "        for i in range(len(x)):\n            step(x_tensor)\n"
        ),
    ),
    ("while go():\n    step(x, mask=mask)\n", f"{FIRST}\n{MASK}", None),
    (
        "for i in range(9):\n    step(*given)\n",
        f"{FIRST}\n{SECOND}",
        (
            "given_tensor = (tf.constant(given[0], tf.float32), tf.constant(given[1]), *given[2:])\n"
            "for i in range(9):\n    step(*given_tensor)\n"
        ),
    ),
    (
        "given = a, b\nfor i in range(9):\n    step(*given)\n",
        f"{FIRST}\n{SECOND}",
        (
            "given = a, b\ngiven_tensor = (tf.constant(given[0], tf.float32), tf.constant(given[1]))\n"
            "for i in range(9):\n    step(*given_tensor)\n"
        ),
    ),
    (
        "for e in range(9):\n    x = load(e)\n    for i in range(9):\n        step(x)\n",
        FIRST,
        (
            "for e in range(9):\n    x = load(e)\n    x_tensor = tf.constant(x, tf.float32)\n"
            "    for i in range(9):\n        step(x_tensor)\n"
        ),
    ),
    (
        "x_tensor = 1\nfor i in range(9):\n    step(x)\n",
        FIRST,
        "x_tensor = 1\nx_tensor_ = tf.constant(x, tf.float32)\nfor i in range(9):\n    step(x_tensor_)\n",
    ),
]


@pytest.mark.parametrize(("before", "example", "after"), MADE)
def test_the_arrays_are_converted_before_the_loop(before: str, example: str, after: str | None) -> None:
    made = edited(HEAD + before, example)
    if after is not None:
        assert made == HEAD + after
    else:
        assert "mask=mask_tensor" in made
        assert sorted(re.findall(r"(\w+)_tensor =", made)) == ["mask", "x"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("for i in range(9):\n    step(x)\n    x[0] = i\n", "other ways"),
        ("for i in range(9):\n    step(x)\n    rng.shuffle(x)\n", "other ways"),
        ("for i in range(9):\n    x = x + 1\n    step(x)\n", "other ways"),
        ("for x in parts:\n    step(x)\n", "other ways"),
        ("for i in range(9):\n    x.sort()\n    step(x)\n", "other ways"),
        ("step(x)\n", "no loop"),
        ("for i in range(9):\n    step(x[:64])\n", "plain names"),
        ("for i in range(9):\n    step(self.x)\n", "plain names"),
        ("def grow():\n    x[:] += 1\nfor i in range(9):\n    grow()\n    step(x)\n", "may change it"),
        ("f = tf.function(g, input_signature=s)\nfor i in range(9):\n    step(x)\n", "input_signature"),
    ],
)
def test_what_may_change_an_array_declines(text: str, why: str) -> None:
    with pytest.raises(Declined, match=why):
        edited(HEAD + text)


def test_a_file_without_tensorflow_declines() -> None:
    with pytest.raises(Declined, match="import of tensorflow"):
        edited("for i in range(9):\n    step(x)\n")


SCRIPT = """\
import numpy as np
import tensorflow as tf

matrix = np.arange(12.0).reshape(3, 4)
labels = np.ones((3,), np.float32)
given = (matrix, labels)


@tf.function
def step(x, y):
    x = tf.cast(x, tf.float32)
    return tf.reduce_sum(x) + tf.reduce_sum(y)


total = 0.0
for i in range(3):
    total += float(step(*given))
print(total, matrix.dtype)
"""


@pytest.mark.tensorflow
def test_the_edited_script_runs_and_computes_the_same(tmp_path: Path) -> None:
    number = SCRIPT.split("\n").index("    total += float(step(*given))") + 1
    splices = KINDS["convert-once"](SyntaxTree(SCRIPT), number, f"{FIRST}\n{SECOND}")
    for name, text in (("before.py", SCRIPT), ("after.py", spliced(SCRIPT, splices))):
        (tmp_path / name).write_text(text)
    both = "import runpy\nfor name in ('before.py', 'after.py'):\n    runpy.run_path(name)\n"
    done = subprocess.run([sys.executable, "-c", both], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    assert done.stdout == 2 * b"207.0 float64\n"
