"""A user who watches weights: a callback looks at all of them after each batch."""

import keras
import numpy as np

from stopwatch import tick

EVERY = 1

keras.utils.set_random_seed(22)
rng = np.random.default_rng(22)
x = rng.standard_normal((128 * 60, 128)).astype("float32")
y = rng.integers(0, 10, len(x))


class Weights(keras.callbacks.Callback):
    """Keeps the quartiles of each layer's weights."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        """Look at them."""
        if batch % EVERY == 0:
            values = [weight.flatten() for weight in self.model.get_weights()]
            self.seen.append([np.percentile(value, [25, 50, 75]) for value in values])


model = keras.Sequential(
    [
        keras.Input((128,)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(x, y, batch_size=128, epochs=3, verbose=2, callbacks=[Weights(), watch])
