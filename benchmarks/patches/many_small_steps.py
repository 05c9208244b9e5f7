"""A tabular user: a small model and small batches, one Python call each."""

import keras
import numpy as np

from stopwatch import tick

keras.utils.set_random_seed(43)
x = np.random.default_rng(43).standard_normal((16 * 256, 20)).astype("float32")
y = x.sum(axis=1)

model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(32), keras.layers.Dense(1)])
model.compile("sgd", "mse")
watch = keras.callbacks.LambdaCallback(
    on_epoch_begin=lambda epoch, logs: tick(256), on_epoch_end=lambda epoch, logs: tick(0)
)
model.fit(x, y, batch_size=16, epochs=8, verbose=2, callbacks=[watch])
