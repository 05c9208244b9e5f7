"""assign-weights: get_weights and set_weights become assignments in a graph, where they only mix two models."""

import ast

import pytest

from tests.edits.editing import edited
from tfdoctor.edits.splice import Declined

HEAD = """import keras
import tensorflow as tf

TAU = 0.01
slow = keras.Sequential([keras.layers.Dense(2)])
fast = keras.Sequential([keras.layers.Dense(2)])


"""

NAMED = """def update():
    new = [TAU * f + (1 - TAU) * s for s, f in zip(slow.get_weights(), fast.get_weights())]
    slow.set_weights(new)


for step in range(9):
    update()
"""

INLINE = """def update(tau=0.01):
    \"\"\"Follow.\"\"\"
    slow.set_weights([tau * f + s * 0.9 for f, s in zip(fast.get_weights(), slow.get_weights())])


for step in range(9):
    update()
"""

LOOP = """def update(target, original):
    a = target.get_weights()
    b = original.get_weights()
    for i in range(len(a)):
        a[i] = b[i] * TAU + a[i] * (1 - TAU)
    target.set_weights(a)


for step in range(9):
    update(slow, fast)
"""

MADE = [
    (NAMED, "    for s, f in zip(slow.weights, fast.weights):\n        s.assign(TAU * f + (1 - TAU) * s)\n"),
    (INLINE, "    for f, s in zip(fast.weights, slow.weights):\n        s.assign(tau * f + s * 0.9)\n"),
    (
        LOOP,
        "        target_variable.assign(original_variable * TAU + target_variable * (1 - TAU))\n",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), MADE)
@pytest.mark.parametrize("mark", ["set_weights", "    update("])
def test_a_mixture_of_weights_is_assigned_in_a_graph(text: str, expected: str, mark: str) -> None:
    made = edited("assign-weights", HEAD + text, mark)
    ast.parse(made)
    assert expected in made
    assert "@tf.function\ndef update(" in made
    assert "et_weights" not in made


TRAPS = [
    NAMED.replace("TAU * f", "np.clip(f, 0, 1)"),
    NAMED.replace("TAU * f", "f[0] * f"),
    NAMED.replace("    slow.set", "    print(new)\n    slow.set"),
    NAMED.replace("slow.set_weights", "other.set_weights"),
    NAMED.replace("def update", "@timed\ndef update"),
    NAMED.replace("    slow.set", "    # the slow one\n    slow.set"),
    NAMED + "TAU = 0.5\n",
    INLINE.replace(", slow.get_weights())", ", slow.get_weights()) if tau"),
    INLINE.replace("    update()", "    update(step / 9)"),
    LOOP.replace("a[i] = b[i]", "a[i] = b[0]"),
    LOOP.replace("range(len(a))", "range(2)"),
    LOOP.replace("update(slow, fast)", "update(slow, keras.models.clone_model(fast))"),
]


@pytest.mark.parametrize("text", TRAPS)
def test_what_does_more_than_mix_is_left(text: str) -> None:
    with pytest.raises(Declined):
        edited("assign-weights", HEAD + text, "set_weights")
