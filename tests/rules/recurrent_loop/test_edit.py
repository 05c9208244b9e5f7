"""vectorized-fn: tf.map_fn becomes tf.vectorized_map where its function only computes."""

import ast

import pytest

from tests.edits.editing import edited
from tfdoctor.edits.splice import Declined

SCRIPT = """import tensorflow as tf


def loss(time, risk):
    def members(t):
        inside = tf.where(time >= t, risk, -1e9)
        return tf.reduce_logsumexp(inside)

    return {call}
"""


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("tf.map_fn(members, time)", "tf.vectorized_map(members, time)"),
        ("tf.map_fn(members, time, dtype=tf.float32)", "tf.vectorized_map(members, time)"),
        ("tf.map_fn(lambda t: t[0] * 2.0, (time, risk))", "tf.vectorized_map(lambda t: t[0] * 2.0, (time, risk))"),
    ],
)  # fmt: skip
def test_a_function_that_only_computes_is_computed_at_once(call: str, after: str) -> None:
    new = edited("vectorized-fn", SCRIPT.format(call=call))
    ast.parse(new)
    assert new == SCRIPT.format(call=after)


@pytest.mark.parametrize(
    "call",
    [
        "tf.map_fn(lambda t: tf.random.normal([2]) + t, time)",
        "tf.map_fn(lambda t: t if t > 0 else -t, time)",
        "tf.map_fn(lambda t: tf.py_function(f, [t], tf.float32), time)",
        "tf.map_fn(lambda t: table.lookup(t), time)",
        "tf.map_fn(imported, time)",
        "tf.map_fn(members, time, infer_shape=False)",
        "tf.map_fn(members, *time)",
        "tf.map_fn(members, time) + tf.map_fn(members, risk)",
        "other.map_fn(members, time)",
    ],
)
def test_a_function_that_does_more_is_left(call: str) -> None:
    with pytest.raises(Declined):
        edited("vectorized-fn", SCRIPT.format(call=call))


@pytest.mark.parametrize("line", ["if t > 0:\n            return t", "print(t)", "seen.append(t)"])
def test_branches_and_effects_are_left(line: str) -> None:
    text = SCRIPT.format(call="tf.map_fn(members, time)")
    with pytest.raises(Declined):
        edited("vectorized-fn", text.replace("inside = tf.where", f"{line}\n        inside = tf.where"))
