"""every-hundred-batches: a callback that only looks may look at every 100th batch."""

import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

TEXT = """import keras
import numpy as np
import tensorflow as tf

class Watch(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        {}  # here
"""


@pytest.mark.parametrize(
    "body",
    [
        "self.curve.append(float(np.mean(self.model.predict(self.probe, verbose=0))))",
        "tf.summary.histogram('w', self.model.layers[0].get_weights()[0], step=batch)",
        "self.last = logs['loss']",
        "print(batch, logs)",
    ],
)
def test_it_returns_at_once_at_other_batches(body: str) -> None:
    text = TEXT.format(body)
    guard = "        if batch % 100:\n            return\n"
    assert edited_at("every-hundred-batches", text, "here") == text.replace(
        f"        {body}", f"{guard}        {body}"
    )


def test_a_docstring_stays_first() -> None:
    text = TEXT.format('"""Print."""\n        print(batch)')
    new = edited_at("every-hundred-batches", text, "here")
    assert '"""Print."""\n        if batch % 100:\n            return\n        print(batch)' in new


@pytest.mark.parametrize(
    "body",
    [
        "self.seen += 1",
        "self.model.optimizer.learning_rate = self.schedule(batch)",
        "self.model.optimizer.learning_rate.assign(0.1)",
        "self.model.stop_training = logs['loss'] < 0.1",
        "self.model.set_weights(self.average)",
        "self.average(self.model)",
        "self.ema.apply(self.model.trainable_variables)",
        "super().on_train_batch_end(batch, logs)",
        "np.random.seed(batch)",
        "keras.backend.set_value(self.model.optimizer.lr, 0.1)",
        "[v.assign(v * 0.9) for v in self.model.weights]",
        "batch = batch + 1",
        "logs['mine'] = self.model.evaluate(self.x)",
        "raise RuntimeError(batch)",
    ],
)
def test_what_may_change_the_training_declines(body: str) -> None:
    with pytest.raises(Declined):
        edited_at("every-hundred-batches", TEXT.format(body), "here")


@pytest.mark.parametrize(("method", "number"), [("on_epoch_end", 10), ("on_train_batch_end", 100)])
def test_a_callback_of_epochs_works_at_every_tenth(method: str, number: int) -> None:
    text = TEXT.replace("on_train_batch_end(self, batch", f"{method}(self, at").format("print(at)")
    new = edited_at("rarer-callback", text, "here")
    assert f"        if at % {number}:\n            return\n        print(at)" in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("on_train_batch_end", "on_epoch_end"),
        ("on_train_batch_end", "helper"),
        ("(self, batch, logs=None)", "(self, *given)"),
        ("def on_train_batch_end(self, batch, logs=None):\n        ", "def on_train_batch_end(self, batch): "),
    ],
)  # fmt: skip
def test_other_methods_decline(old: str, new: str) -> None:
    with pytest.raises(Declined):
        edited_at("every-hundred-batches", TEXT.replace(old, new).format("print(1)"), "here")
