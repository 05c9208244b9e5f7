"""Train a model so small that the step is the wait after each batch, in s: ``waiting_step.py 0.002``."""

import sys
import time

import keras
import numpy as np

WAIT_S = float(sys.argv[1])


class Wait(keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """Sleep after each batch, as a callback that talks to a server does."""

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:  # noqa: ARG002 - Keras gives it
        """Sleep."""
        time.sleep(WAIT_S)


x = np.zeros((960, 4), dtype="float32")
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, x[:, :1], batch_size=8, epochs=1, verbose=0, callbacks=[Wait()])
