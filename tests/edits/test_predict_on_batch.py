"""predict-on-batch: the model of a parameter or of a callback is known where the file shows it."""

import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

TEXT = """import keras

one, two = keras.Sequential([keras.layers.Dense(2)]), keras.Sequential([keras.layers.Dense(2)])

def values(net, states):
    return net.predict(states, verbose=0)

while True:
    a, b = values(one, x), values(two, y)
"""

CALLBACK = """import keras

class Watch(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(self.model.predict(self.x, verbose=0))
"""


def test_the_models_of_all_calls_are_known() -> None:
    new = edited_at("predict-on-batch", TEXT, "predict")
    assert new == TEXT.replace("predict(states, verbose=0)", "predict_on_batch(states)")


def test_the_model_of_a_callback_is_known() -> None:
    new = edited_at("predict-on-batch", CALLBACK, "predict")
    assert new == CALLBACK.replace("predict(self.x, verbose=0)", "predict_on_batch(self.x)")


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("values(two, y)", "values(forest, y)"),
        TEXT.replace("values(two, y)", "values(load(), y)"),
        TEXT.replace("values(two, y)", "map(values, y)"),
        TEXT.replace("keras.Sequential([keras.layers.Dense(2)])\n", "Forest()\n"),
        TEXT.replace("verbose=0", "steps=3"),
        TEXT + "def predict(x): ...\n",
        CALLBACK.replace("keras.callbacks.Callback", "Monitor"),
        CALLBACK + "    def set(self, model):\n        self.model = model\n",
        CALLBACK.replace("self.model.predict", "self.other.predict"),
    ],
)
def test_other_objects_decline(text: str) -> None:
    with pytest.raises(Declined):
        edited_at("predict-on-batch", text, "predict")
