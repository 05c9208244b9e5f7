"""An image user: filter counts taken from a search over hyperparameters."""

import keras
import numpy as np

from stopwatch import tick

keras.utils.set_random_seed(16)
rng = np.random.default_rng(16)
x = rng.random((32 * 25, 40, 40, 3), dtype=np.float32)
y = rng.integers(0, 10, len(x))
FILTERS = 34

model = keras.Sequential(
    [
        keras.Input((40, 40, 3)),
        keras.layers.Conv2D(FILTERS, 3, activation="relu"),
        keras.layers.Conv2D(FILTERS, 3, activation="relu"),
        keras.layers.Conv2D(FILTERS, 3, activation="relu"),
        keras.layers.MaxPooling2D(4),
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(x, y, batch_size=32, epochs=3, verbose=2, callbacks=[watch])
