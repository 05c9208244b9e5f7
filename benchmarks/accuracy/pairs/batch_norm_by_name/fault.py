"""A trap: layers called `batch_norm`, which are layer normalizations."""

import keras
import numpy as np

from stopwatch import tick

keras.utils.set_random_seed(32)
rng = np.random.default_rng(32)
x = rng.standard_normal((64 * 70, 40, 32)).astype("float32")
y = x[:, :, 0].mean(axis=1)
NAME = "batch_norm"

model = keras.Sequential([keras.Input((40, 32))])
for number in range(2):
    model.add(keras.layers.GRU(24, return_sequences=True))
    model.add(keras.layers.LayerNormalization(name=f"{NAME}_{number}"))
model.add(keras.layers.GlobalAveragePooling1D())
model.add(keras.layers.Dense(1))
model.compile("adam", "mse")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(x, y, batch_size=64, epochs=2, verbose=2, callbacks=[watch])
