"""calls-per-batch: predict() and fit() of one batch, where the file shows that it is one."""

import ast

import pytest

from tests.edits.editing import edited
from tfdoctor.edits.splice import Declined

SCRIPT = """import random
import keras
import numpy as np

BATCH = 32
rng = np.random.default_rng(0)
model = keras.Sequential([keras.layers.Dense(2)])
data, memory, state = np.zeros((9000, 4)), [], np.zeros(4)
for step in range(100):
    {made}
    {call}
"""


def script(made: str, call: str = "values = model.predict(x, verbose=0)") -> str:
    return SCRIPT.format(made=made, call=call)


ONE_BATCH = [
    "x = state[None]",
    "x = state[np.newaxis, :]",
    "x = np.expand_dims(state, 0)",
    "x = state.reshape(1, -1)",
    "x = np.reshape(state, [1, 4])",
    "x = np.random.normal(0, 1, (BATCH, 4))",
    "x = rng.normal(size=(BATCH, 4)).astype('float32')",
    "x = data[rng.integers(0, 9000, BATCH)]",
    "x = data[rng.choice(9000, size=64)]",
    "i = rng.integers(0, 9000, BATCH); x = data[i]",
    "x = data[step : step + BATCH]",
    "x = np.concatenate([state[None], state[None]])",
    "x = np.array([b[0] for b in random.sample(memory, BATCH)])",
    "x, y = map(np.array, zip(*random.sample(memory, BATCH)))",
]


@pytest.mark.parametrize("made", ONE_BATCH)
def test_predict_of_one_batch_is_called_without_its_data_set(made: str) -> None:
    text = script(made)
    new = edited("calls-per-batch", text, "predict(")
    ast.parse(new)
    assert new == text.replace("predict(x, verbose=0)", "predict_on_batch(x)")


UNKNOWN = [
    "x = data",
    "x = data[step]",
    "x = data[rng.integers(0, 9000, 4000)]",
    "x = data[rng.permutation(9000)]",
    "x = data[:step]",
    "x = np.array([b[0] for b in memory])",
    "x = np.array([b[0] for b in random.sample(memory, BATCH) if b])",
    "x = [state[None], state[None]]",
    "x = load(32)",
    "x = state[None] if step else data",
    "x = data.reshape(-1, 4)",
]


@pytest.mark.parametrize("made", UNKNOWN)
def test_what_may_be_more_than_a_batch_is_left(made: str) -> None:
    with pytest.raises(Declined, match="does not show that predict"):
        edited("calls-per-batch", script(made), "predict(")


def test_a_batch_size_that_is_given_tells_that_it_is_one() -> None:
    text = script("x = data[rng.integers(0, 9000, n)]", "v = model.predict(x, batch_size=n)")
    text = text.replace("BATCH = 32", "n = int(input())")
    assert "v = model.predict_on_batch(x)\n" in edited("calls-per-batch", text, "predict(")


FIT = "model.fit(x, x, batch_size=BATCH, epochs=1, verbose=0)"


def test_fit_of_one_batch_trains_on_it() -> None:
    text = script("x = data[rng.integers(0, 9000, BATCH)]", FIT)
    expected = text.replace(FIT, "model.train_on_batch(x, x)")
    assert edited("calls-per-batch", text, "fit(") == expected


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (FIT.replace("BATCH,", "16,"), "single batch"),
        (FIT.replace("epochs=1", "epochs=2"), "several epochs"),
        (FIT.replace(", verbose=0", ""), "prints its progress"),
        (f"h = {FIT}", "uses the result"),
        (FIT.replace("epochs=1", "callbacks=[c]"), "arguments"),
        (FIT.replace("epochs=1", "validation_data=v"), "arguments"),
        (FIT.replace("x, x", "*b"), "arguments"),
    ],
)
def test_a_fit_that_does_more_is_left(call: str, why: str) -> None:
    text = script("x = data[rng.integers(0, 9000, BATCH)]", call)
    with pytest.raises(Declined, match=why):
        edited("calls-per-batch", text, "fit(")


@pytest.mark.parametrize(
    "changed",
    [
        ("keras.Sequential([keras.layers.Dense(2)])", "LinearRegression()"),
        ("rng = np", "history = model.history\nrng = np"),
        ("keras.layers.Dense(2)])", "keras.layers.Dense(2)])\nmodel.optimizer.use_ema = True"),
    ],
)
def test_other_objects_and_averaged_weights_are_left(changed: tuple[str, str]) -> None:
    with pytest.raises(Declined):
        edited("calls-per-batch", script("x = state[None]").replace(*changed), "predict(")


@pytest.mark.parametrize(("built", "made"), [("keras.Sequential()", True), ("other()", False)])
def test_a_model_of_the_object_is_followed_to_what_made_it(built: str, made: bool) -> None:  # noqa: FBT001
    text = f"""import keras
class Agent:
    def __init__(self):
        self.model = {built}
    def act(self, state):
        return self.model.predict(state[None])
"""
    if made:
        assert "predict_on_batch(state[None])" in edited("calls-per-batch", text, "predict(")
    else:
        with pytest.raises(Declined, match="Keras model"):
            edited("calls-per-batch", text, "predict(")
