"""row-lookup and row-penalty: rows are looked up where the file multiplies or sums a whole table."""

from typing import Any

import numpy as np
import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

ONE_HOT = """import tensorflow as tf
import keras

def rows(ids):
    return {}  # here
"""

PENALTY = """import tensorflow as tf

class Model(tf.Module):
    def loss(self, u, b):
        pu, qb = tf.nn.embedding_lookup(self.p, u), tf.gather(self.q, b)
        penalty = tf.nn.l2_loss(self.p) + tf.reduce_sum(tf.square(self.q))  # here
        return tf.reduce_sum(pu * qb) + penalty
"""


@pytest.mark.parametrize(
    ("product", "lookup"),
    [
        ("tf.matmul(tf.one_hot(ids, 100), table)", "tf.gather(table, ids)"),
        ("tf.one_hot(ids, depth=100) @ self.table", "tf.gather(self.table, ids)"),
        ("tf.matmul(tf.one_hot(ids, 100, dtype=tf.float32), table)", "tf.gather(table, ids)"),
        ("keras.ops.matmul(keras.ops.one_hot(ids, 9), t)", "keras.ops.take(t, ids, axis=0)"),
    ],
)  # fmt: skip
def test_rows_are_looked_up(product: str, lookup: str) -> None:
    assert edited_at("row-lookup", ONE_HOT.format(product), "here") == ONE_HOT.format(lookup)


@pytest.mark.parametrize(
    "product",
    [
        "tf.matmul(tf.one_hot(ids, 100), table, transpose_b=True)",
        "tf.matmul(tf.one_hot(ids, 100, 0.9, 0.1), table)",  # smoothed
        "tf.matmul(tf.one_hot(ids, 100, axis=0), table)",
        "tf.matmul(tf.one_hot(ids, 100, on_value=2.0), table)",
        "tf.matmul(table, tf.one_hot(ids, 100))",
        "tf.one_hot(ids, 100) * table",
        "tf.matmul(one_hot(ids, 100), table)",
        "tf.matmul(tf.one_hot(ids, 9), a) + tf.matmul(tf.one_hot(ids, 9), b)",
        "tf.matmul(*pair)",
    ],
)
def test_other_products_decline(product: str) -> None:
    with pytest.raises(Declined):
        edited_at("row-lookup", ONE_HOT.format(product), "here")


@pytest.mark.tensorflow
def test_both_forms_compute_the_same() -> None:
    text = ONE_HOT.format("tf.matmul(tf.one_hot(ids, 100), table)")
    for one in (text, edited_at("row-lookup", text, "here")):
        namespace: dict[str, Any] = {"table": np.arange(300.0, dtype="float32").reshape(100, 3)}
        exec(one, namespace)
        found = namespace["rows"](np.array([[5, 99], [0, 5]]))
        assert found.numpy().tolist() == [[[15, 16, 17], [297, 298, 299]], [[0, 1, 2], [15, 16, 17]]]


def test_the_line_of_the_layer_is_enough() -> None:
    text = ONE_HOT.format("tf.matmul(tf.one_hot(ids, 100), table)")
    assert "tf.gather(table, ids)" in edited_at("row-lookup", text, "import keras")


def test_the_looked_up_rows_are_penalized() -> None:
    new = edited_at("row-penalty", PENALTY, "here")
    assert "penalty = tf.nn.l2_loss(pu) + tf.reduce_sum(tf.square(qb))  # here" in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("embedding_lookup(self.p, u)", "embedding_lookup(self.r, u)"),
        ("tf.nn.embedding_lookup(self.p, u)", "lookup(self.p, u)"),
        ("pu, qb =", "pu = qb ="),
        ("        penalty =", "        pu = pu * 2\n        penalty ="),
        ("        penalty =", "        other = tf.gather(self.p, b)\n        penalty ="),
        ("tf.nn.embedding_lookup(self.p, u)", "tf.gather(self.p, u, axis=1)"),
    ],
)
def test_a_table_without_known_rows_is_left(old: str, new: str) -> None:
    text = PENALTY.replace(" + tf.reduce_sum(tf.square(self.q))", "").replace(old, new)
    with pytest.raises(Declined, match="looks up no rows"):
        edited_at("row-penalty", text, "here")
