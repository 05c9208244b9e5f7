"""Battery state-of-charge estimation with a GRU."""
import keras
import numpy as np
from keras import layers

STEPS, CHANNELS = 20, 4
rng = np.random.default_rng(0)
current = rng.normal(size=(4800, STEPS, CHANNELS)).astype("float32")
charge = current[..., 0].cumsum(1)[:, -1:] / STEPS

model = keras.Sequential([
    layers.Input((STEPS, CHANNELS)),
    layers.GRU(32, return_sequences=True, unroll=True),
    layers.GRU(32, unroll=True),
    layers.Dense(16, activation="relu"),
    layers.Dense(1, dtype="float32"),
])
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
model.fit(current, charge, batch_size=32, epochs=1, verbose=2)
