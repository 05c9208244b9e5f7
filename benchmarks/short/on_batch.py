"""`train_on_batch` with batches of NumPy arrays, made anew for each step."""

import keras
import numpy as np

rng = np.random.default_rng(0)
model = keras.Sequential(
    [keras.Input((24,)), keras.layers.Dense(48, activation="relu"), keras.layers.Dense(1)]
)
model.compile("adam", "mse")

for step in range(400):
    x = rng.normal(size=(32, 24)).astype("float32")
    loss = model.train_on_batch(x, x.mean(axis=1, keepdims=True))
