"""predict-once: a loop of predictions becomes one call, where the file shows that nothing else changes."""

import ast

import pytest

from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, spliced
from tfdoctor.rules.slow_prediction.edit import EDITS

HEAD = """import keras
import numpy as np

model = keras.Sequential([keras.layers.Dense(2)])
xs = np.zeros((9000, 4), np.float32)
ys = np.zeros(9000)
out = []
"""


def edited(body: str, head: str = HEAD) -> str:
    text = head + body
    line = next(n for n, one in enumerate(text.split("\n"), 1) if ".predict(" in one)
    new = spliced(text, EDITS["predict-once"](SyntaxTree(text), line, ""))
    ast.parse(new)
    assert new.startswith(head)
    return new.removeprefix(head)


MADE = [
    ("p = [model.predict(x[None])[0] for x in xs]\n", "p = list(model.predict(xs))\n"),
    (
        "p = [model.predict(x[np.newaxis, ...], verbose=0) for x in xs]\n",
        "p = [row[None] for row in model.predict(xs, verbose=0)]\n",
    ),
    (
        "for x in xs:\n    p = model.predict(x[None], verbose=0)\n    out.append(p[0])\n",
        (
            "predictions = model.predict(xs, verbose=0)\nfor x, prediction in zip(xs, predictions):\n"
            "    p = prediction[None]\n    out.append(p[0])\n"
        ),
    ),
    (
        "for x in xs:\n    out.append(model.predict(np.expand_dims(x, axis=0))[0])\n",
        "predictions = model.predict(xs)\nfor x, prediction in zip(xs, predictions):\n    out.append(prediction)\n",
    ),
    (
        "for i in range(len(xs)):\n    out.append(model.predict(xs[i:i+1], batch_size=1)[0] - ys[i])\n",
        "predictions = model.predict(xs)\nfor i in range(len(xs)):\n    out.append(predictions[i] - ys[i])\n",
    ),
    (
        "for i in range(len(xs)):\n    p = model.predict(np.array([xs[i]]))\n",
        "predictions = model.predict(xs)\nfor i in range(len(xs)):\n    p = predictions[i : i + 1]\n",
    ),
    (
        "for i in range(200):\n    out.append(model.predict(xs[i : i + 1])[0])\n",
        "predictions = model.predict(xs[:200])\nfor i in range(200):\n    out.append(predictions[i])\n",
    ),
    (
        "for x, (a, b) in zip(xs, out):\n    p = model.predict(x[None])[0] == a\n",
        (
            "predictions = model.predict(xs)\nfor x, (a, b), prediction in zip(xs, out, predictions):\n"
            "    p = prediction == a\n"
        ),
    ),
    (
        "for i, x in enumerate(xs):\n    p = i, model.predict(x[None])\n",
        "predictions = model.predict(xs)\nfor i, x in enumerate(xs):\n    p = i, predictions[i : i + 1]\n",
    ),
    (
        "for x, y in zip(xs, ys):\n    out.append(model.predict(x[None])[0] == y)\n",
        (
            "predictions = model.predict(xs)\nfor x, y, prediction in zip(xs, ys, predictions):\n"
            "    out.append(prediction == y)\n"
        ),
    ),
    (
        "def run():\n    for x in xs:\n        print(model.predict(x[None]))\n",
        (
            "def run():\n    predictions = model.predict(xs)\n    for x, prediction in zip(xs, predictions):\n"
            "        print(prediction[None])\n"
        ),
    ),
]


@pytest.mark.parametrize(("body", "expected"), MADE)
def test_a_loop_of_predictions_becomes_one(body: str, expected: str) -> None:
    assert edited(body) == expected


LEFT = [
    "for x in xs:\n    model.fit(xs, ys)\n    out.append(model.predict(x[None]))\n",  # the model changes
    "for x in xs:\n    x = x / 255\n    out.append(model.predict(x[None]))\n",
    "for x in xs:\n    x /= 255\n    out.append(model.predict(x[None]))\n",
    "for x in xs:\n    scale(x)\n    out.append(model.predict(x[None]))\n",
    "for x in xs:\n    p = model.predict(x[None])\n    xs[3] = p\n",
    "for x in xs:\n    p = model.predict(x[None])\n    if p > 1:\n        break\n",
    "for x in xs:\n    if x[0]:\n        p = model.predict(x[None])\n",
    "state = xs[0]\nfor x in xs:\n    state = model.predict(state[None])[0]\n",  # depends on the last one
    "for x in xs:\n    p = model.predict((x + out[-1])[None])\n",
    "for x in load():\n    p = model.predict(x[None])\n",
    "p = [model.predict(x[None]) for x in out]\n",
    "p = [model.predict(x[None]) for x in xs if x[0]]\n",
    "p = [(x, model.predict(x[None])) for x in xs]\n",
    "p = [other.predict(x[None]) for x in xs]\n",
    "for x in xs:\n    p = model.predict(x[None], callbacks=[c])\n",
    "while xs:\n    p = model.predict(xs[:1])\n",
    "p = model.predict(xs)\n",
    "for i in range(len(ys)):\n    p = model.predict(xs[i:i+1])\n",  # as long as another array
    "for i in range(9):\n    p = model.predict(xs[i:i+2])\n",
]


@pytest.mark.parametrize("body", LEFT)
def test_what_may_change_the_result_is_left(body: str) -> None:
    with pytest.raises(Declined):
        edited(body)


def test_a_stateful_model_is_left() -> None:
    head = HEAD.replace("Dense(2)", "LSTM(2, stateful=True)")
    with pytest.raises(Declined, match="depend on the one before"):
        edited(MADE[0][0], head)


@pytest.mark.parametrize(
    ("made", "known"),
    [
        ("np.random.rand(90, 4).astype('float32')", True),
        ("np.load('x.npy')[:100]", False),  # it may hold objects
        ("table.to_numpy()", True),
        ("np.array([[1.0], [2.0]])", True),
        ("np.array(rows, 'float32')", True),
        ("np.array(rows)", False),  # rows of different lengths are objects
        ("[np.zeros(4), np.zeros(4)]", False),
        ("np.zeros((9, 4)) / 255", True),
        ("load()", False),
    ],
)
def test_the_file_has_to_show_an_array(made: str, *, known: bool) -> None:
    head = HEAD.replace("np.zeros((9000, 4), np.float32)", made)
    if known:
        assert edited(MADE[0][0], head) == MADE[0][1]
    else:
        with pytest.raises(Declined, match="is an array"):
            edited(MADE[0][0], head)


def test_a_data_set_of_keras_is_an_array() -> None:
    loaded = "(xs, ys), _ = keras.datasets.mnist.load_data()"
    head = HEAD.replace("xs = np.zeros((9000, 4), np.float32)\nys = np.zeros(9000)", loaded)
    assert edited(MADE[0][0], head) == MADE[0][1]
    words = head.replace("mnist", "imdb")
    with pytest.raises(Declined, match="is an array"):
        edited(MADE[0][0], words)
