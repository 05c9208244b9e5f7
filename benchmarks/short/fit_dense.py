"""`Model.fit` of two dense layers on NumPy arrays."""

import keras
import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=(9600, 20)).astype("float32")
y = (x.sum(axis=1) > 0).astype("float32")

model = keras.Sequential(
    [
        keras.Input((20,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=2, verbose=0)
