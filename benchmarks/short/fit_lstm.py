"""`Model.fit` of a small LSTM on windows of a series."""

import keras
import numpy as np

series = np.sin(np.linspace(0, 200, 5000, dtype="float32"))
x = np.stack([series[i : i + 8, None] for i in range(4000)])
y = series[8:4008]

model = keras.Sequential([keras.Input((8, 1)), keras.layers.LSTM(8), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, y, batch_size=16, epochs=2, verbose=0)
