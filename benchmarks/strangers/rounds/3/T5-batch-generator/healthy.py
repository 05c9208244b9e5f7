"""Remaining useful life of turbofan engines."""
import numpy as np
from tensorflow import keras

rng = np.random.default_rng(0)
cycles = rng.normal(size=(2560, 40, 14)).astype("float32")
rul = rng.uniform(0, 125, 2560).astype("float32")
BATCH = 32


def batches():
    while True:
        for start in range(0, len(cycles), BATCH):
            yield cycles[start : start + BATCH], rul[start : start + BATCH]


model = keras.Sequential(
    [
        keras.Input((40, 14)),
        keras.layers.LSTM(64, return_sequences=True),
        keras.layers.LSTM(32),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer=keras.optimizers.RMSprop(1e-3), loss="mse")
model.fit(batches(), steps_per_epoch=len(cycles) // BATCH, epochs=1, verbose=2)
