"""A user who once debugged: `run_eagerly=True` was never taken out."""

import keras
import numpy as np

from stopwatch import tick

keras.utils.set_random_seed(20)
rng = np.random.default_rng(20)
x = rng.standard_normal((128 * 60, 40)).astype("float32")
y = x.sum(axis=1)

model = keras.Sequential([keras.Input((40,))])
for _ in range(6):
    model.add(keras.layers.Dense(256, activation="relu"))
model.add(keras.layers.Dense(1))
model.compile("adam", "mse")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(x, y, batch_size=128, epochs=4, verbose=2, callbacks=[watch])
